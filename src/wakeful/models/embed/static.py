"""The light default: averaged word-piece vectors, hundreds of times faster than a transformer, all offline.

Source: WordLlama (https://github.com/dleemiller/WordLlama, MIT), weights ``l2_supercat`` at 256 dimensions, which the
package ``wordllama`` carries. Its own loader asks a model hub for the tokenizer; this one reads the package's files and
imports none of its code.

A text is folded (NFKC, lower case), cut at spaces and punctuation, and each word is tokenised alone, so a word's pieces
are looked up once per process. Folding and cutting raise evidence recall@10 of the vectors alone on LoCoMo's first five
conversations from 0.394 to 0.457 against the verbatim text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from wakeful.errors import MissingExtra, ModelError
from wakeful.models.embed.protocol import Kind, LocalEmbedder, clean, zero

_WEIGHTS = ("weights", "l2_supercat_256.safetensors")
_TOKENIZER = ("tokenizers", "l2_supercat_tokenizer_config.json")

_MAX_WORD = 32
"""Characters of the longest word whose pieces are remembered; longer ones (scripts without spaces) seldom come back."""
_MAX_WORDS = 200_000
"""Words remembered at most (about 40 MB); then the memory starts afresh."""
_CHUNK = 512
"""Word pieces gathered at once: 0.5 MB of vectors stays in the processor's cache (34,000 short turns a second against
13,500 with 8 MB)."""
_LONG = 16_384
"""A text of more word pieces is summed by distinct piece, so that a book needs no more memory than the vocabulary."""

_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¡¿«»‘’“”„…–—·、。《》「」『』【】〈〉（），：；！？"
_SPACES = str.maketrans(dict.fromkeys(_PUNCTUATION, " "))


def words(text: str) -> list[str]:
    """Fold a text and cut it into words; a text of punctuation alone is its own words."""
    text = clean(text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = text.lower()
    return text.translate(_SPACES).split() or text.split()


class StaticEmbedder(LocalEmbedder):
    """Embed by averaging word-piece vectors: the default of the extra ``memory``.

    256 dimensions. The weights are read at the first use (about 0.2 s of processor time); then a query or a short turn
    takes some 0.04 ms. Queries and documents are embedded alike. Raises ``MissingExtra`` without the extra.
    """

    model_id = "wordllama-l2-supercat-256/folded-mean-1"
    dimensions = 256

    def __init__(self) -> None:
        self._root = _package()
        self._pieces: dict[str, tuple[int, ...]] = {}
        self._lock = Lock()

    @cached_property
    def _model(self) -> tuple[Any, Any]:
        with self._lock:
            if "_model" in self.__dict__:
                loaded: tuple[Any, Any] = self.__dict__["_model"]
                return loaded
            return _load(self._root)

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> list[bytes]:
        """Embed texts; ``kind`` makes no difference here."""
        table, _ = self._model
        found = [zero(self.dimensions)] * len(texts)
        ids: list[int] = []
        starts: list[int] = []
        rows: list[int] = []
        for row, text in enumerate(texts):
            begin = len(ids)
            self._spell(text, ids)
            if len(ids) > begin:
                starts.append(begin)
                rows.append(row)
            if len(ids) >= _CHUNK:
                _fill(found, rows, _means(table, ids, starts))
                ids, starts, rows = [], [], []
        if rows:
            _fill(found, rows, _means(table, ids, starts))
        return found

    def _spell(self, text: str, ids: list[int]) -> None:
        known = self._pieces
        for word in words(text):
            pieces = known.get(word)
            if pieces is None:
                pieces = tuple(self._model[1].encode(word, add_special_tokens=False).ids)
                if len(word) <= _MAX_WORD:
                    if len(known) >= _MAX_WORDS:
                        known.clear()
                    known[word] = pieces
            ids.extend(pieces)


def _means(table: Any, ids: list[int], starts: list[int]) -> Any:
    """Give one unit vector for each run of pieces; ``starts`` are the runs' first places."""
    import numpy as np

    if len(ids) <= _LONG:
        sums = np.add.reduceat(table[np.array(ids)], starts, axis=0)
    else:
        runs = np.split(np.array(ids), starts[1:])
        distinct = [np.unique(run, return_counts=True) for run in runs]
        sums = np.stack([counts.astype(np.float32) @ table[pieces] for pieces, counts in distinct])
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))[:, None]
    return (sums / np.where(lengths > 0, lengths, 1)).astype("<f4", copy=False)


def _fill(found: list[bytes], rows: list[int], vectors: Any) -> None:
    for row, vector in zip(rows, vectors, strict=True):
        found[row] = vector.tobytes()


def _package() -> Path:
    spec = find_spec("wordllama")
    missing = [name for name in ("numpy", "tokenizers", "safetensors") if find_spec(name) is None]
    if spec is None or not spec.submodule_search_locations or missing:
        raise MissingExtra("memory", needed_for="the static embedder")
    return Path(next(iter(spec.submodule_search_locations)))


def _load(root: Path) -> tuple[Any, Any]:
    import numpy as np
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    weights, tokenizer = root.joinpath(*_WEIGHTS), root.joinpath(*_TOKENIZER)
    for file in (weights, tokenizer):
        if not file.is_file():
            raise ModelError(f"the package wordllama holds no {file.name}; install wordllama 0.4")
    table = np.ascontiguousarray(load_file(str(weights))["embedding.weight"], dtype=np.float32)
    return table, Tokenizer.from_file(str(tokenizer))
