"""Embedders that the user brings: an OpenAI-compatible client, sentence-transformers, any function."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from wakeful.errors import ConfigError, MissingExtra, ModelError
from wakeful.models.embed.protocol import Kind, LocalEmbedder, clean, pack, zero
from wakeful.models.retry import wrap

_PROBE = "dimensions"
"""The text that is embedded to learn how long a model's vectors are."""

_OPENAI_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
"""Source: https://platform.openai.com/docs/guides/embeddings"""
_MAX_INPUTS = 2048
_MAX_BYTES = 250_000
"""Most inputs and bytes of one request: 2,048 inputs and 300,000 tokens, and a token is at least a byte.
Source: https://platform.openai.com/docs/api-reference/embeddings/create"""


class _Brought:
    """What the brought embedders share: blanks are kept away from the model, and lengths must agree."""

    model_id: str
    _dimensions: int | None

    def _checked(self, vectors: Sequence[Any], asked: int) -> list[bytes]:
        if len(vectors) != asked:
            raise ModelError(f"{self.model_id} gave {len(vectors)} vectors for {asked} texts")
        found = [pack(vector, source=self.model_id) for vector in vectors]
        for raw in found:
            size = len(raw) // 4
            if self._dimensions is None:
                self._dimensions = size
            elif size != self._dimensions:
                raise ModelError(
                    f"{self.model_id} gave a vector of {size} numbers where {self._dimensions} were agreed"
                )
        return found

    @staticmethod
    def _sift(texts: Sequence[str]) -> tuple[list[str], list[int]]:
        cleaned = [clean(text) for text in texts]
        full = [row for row, text in enumerate(cleaned) if text.strip()]
        return [cleaned[row] for row in full], full

    def _spread(self, vectors: list[bytes], rows: list[int], total: int, dimensions: int) -> list[bytes]:
        found = [zero(dimensions)] * total
        for row, vector in zip(rows, vectors, strict=True):
            found[row] = vector
        return found


class OpenAIEmbedder(_Brought):
    """Embed through an OpenAI-compatible client: ``OpenAI()``, ``AsyncOpenAI()`` or one that answers like them.

    ``dimensions`` asks the API for shorter vectors where the model offers it. For a model that is not in our table the
    length is learnt by embedding one word, which an async client can't do in ``dimensions``: give ``length=`` then.
    Blank texts are not sent. Raises the ``ModelError`` of the failure, with the client's own as its cause.
    """

    def __init__(
        self,
        client: Any,
        model: str = "text-embedding-3-small",
        *,
        dimensions: int | None = None,
        length: int | None = None,
    ) -> None:
        create = getattr(getattr(client, "embeddings", None), "create", None)
        if not callable(create):
            raise ConfigError(f"an OpenAI-compatible client with embeddings.create is needed, not {client!r}")
        self._create: Callable[..., Any] = create
        self._model, self._asked = model, dimensions
        self._dimensions = dimensions or length or _OPENAI_DIMENSIONS.get(model)
        self.model_id = f"openai:{model}" + (f"@{dimensions}" if dimensions else "")

    @property
    def dimensions(self) -> int:
        """Numbers in a vector."""
        if self._dimensions is None:
            self.embed([_PROBE])
        assert self._dimensions is not None
        return self._dimensions

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> list[bytes]:
        """Embed texts; ``kind`` makes no difference here."""
        full, rows = self._sift(texts)
        vectors: list[bytes] = []
        for batch in _batches(full):
            try:
                answer = self._create(**self._request(batch))
            except Exception as error:
                raise wrap(error) from error
            if inspect.isawaitable(answer):
                _close(answer)
                raise ConfigError("the client is async; use the awaited verbs, or give an OpenAI() client")
            vectors += self._read(answer, len(batch))
        return self._spread(vectors, rows, len(texts), self._dimensions or self.dimensions)

    async def aembed(self, texts: Sequence[str], kind: Kind = "document") -> list[bytes]:
        """Embed texts; a client that is not async works in a worker thread."""
        import asyncio

        full, rows = self._sift(texts)
        vectors: list[bytes] = []
        for batch in _batches(full):
            try:
                if inspect.iscoroutinefunction(self._create):
                    answer = await self._create(**self._request(batch))
                else:
                    answer = await asyncio.to_thread(self._create, **self._request(batch))
                    if inspect.isawaitable(answer):
                        answer = await answer
            except Exception as error:
                raise wrap(error) from error
            vectors += self._read(answer, len(batch))
        if self._dimensions is None and not vectors:
            await self.aembed([_PROBE])
        assert self._dimensions is not None
        return self._spread(vectors, rows, len(texts), self._dimensions)

    def _request(self, batch: list[str]) -> dict[str, Any]:
        request: dict[str, Any] = {"model": self._model, "input": batch, "encoding_format": "float"}
        if self._asked is not None:
            request["dimensions"] = self._asked
        return request

    def _read(self, answer: Any, asked: int) -> list[bytes]:
        items = sorted(answer.data, key=lambda item: item.index)
        return self._checked([item.embedding for item in items], asked)


class SentenceTransformerEmbedder(_Brought, LocalEmbedder):
    """Embed with a sentence-transformers model: a loaded one, or a name or folder that is already on this machine.

    A name is never looked up on a hub unless ``download=True``. Raises ``MissingExtra`` when a name is given and the
    extra ``sentence-transformers`` is not installed.
    """

    def __init__(self, model: Any, *, model_id: str | None = None, download: bool = False) -> None:
        name = model if isinstance(model, str) else None
        if name is not None:
            if find_spec("sentence_transformers") is None:
                raise MissingExtra("sentence-transformers", needed_for=f"the embedder {name}")
            from sentence_transformers import SentenceTransformer

            model = SentenceTransformer(name, local_files_only=not download)
        if not callable(getattr(model, "encode", None)):
            raise ConfigError(f"a sentence-transformers model with encode() is needed, not {model!r}")
        card = getattr(getattr(model, "model_card_data", None), "base_model", None)
        named = model_id or (name and f"sentence-transformers:{name}") or (card and f"sentence-transformers:{card}")
        if not named:
            raise ConfigError("this sentence-transformers model does not tell its name; give model_id=...")
        self.model_id = named
        self._model = model
        size = getattr(model, "get_sentence_embedding_dimension", lambda: None)()
        self._dimensions = int(size) if size else None

    @property
    def dimensions(self) -> int:
        """Numbers in a vector."""
        if self._dimensions is None:
            self.embed([_PROBE])
        assert self._dimensions is not None
        return self._dimensions

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> list[bytes]:
        """Embed texts; a model with prompts for queries and documents uses them."""
        full, rows = self._sift(texts)
        encode = getattr(self._model, f"encode_{kind}", None) or self._model.encode
        vectors = self._checked(list(encode(full, show_progress_bar=False)), len(full)) if full else []
        return self._spread(vectors, rows, len(texts), self.dimensions)


class CallableEmbedder(_Brought):
    """Embed with any function from a list of texts to a list of vectors, sync or async.

    ``model_id`` names the model, since a store refuses to mix vectors of two; for a named function it may be left out.
    ``query`` is another function for queries, when they are embedded differently. ``dimensions`` is learnt from one
    word when not given (an async function: it must be given).
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        model_id: str | None = None,
        dimensions: int | None = None,
        query: Callable[[list[str]], Any] | None = None,
    ) -> None:
        if not callable(function):
            raise ConfigError(f"a function from texts to vectors is needed, not {function!r}")
        if model_id is None:
            name = getattr(function, "__qualname__", "")
            if not name or "<" in name:
                raise ConfigError(
                    "this function has no lasting name; write CallableEmbedder(function, model_id='...'), so that the "
                    "store can tell its vectors from another model's"
                )
            model_id = f"callable:{function.__module__}.{name}"
        self.model_id = model_id
        self._dimensions = dimensions
        self._function = function
        self._query = query if query is not None else function

    @property
    def dimensions(self) -> int:
        """Numbers in a vector."""
        if self._dimensions is None:
            self.embed([_PROBE])
        assert self._dimensions is not None
        return self._dimensions

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> list[bytes]:
        """Embed texts."""
        full, rows = self._sift(texts)
        answer = self._call(kind)(full) if full else []
        if inspect.isawaitable(answer):
            _close(answer)
            raise ConfigError(f"{self.model_id} is async; use the awaited verbs, and give dimensions=...")
        vectors = self._checked(list(answer), len(full))
        return self._spread(vectors, rows, len(texts), self.dimensions)

    async def aembed(self, texts: Sequence[str], kind: Kind = "document") -> list[bytes]:
        """Embed texts; a function that is not async works in a worker thread."""
        import asyncio

        full, rows = self._sift(texts)
        answer: Any = await asyncio.to_thread(self._call(kind), full) if full else []
        if inspect.isawaitable(answer):
            answer = await answer
        vectors = self._checked(list(answer), len(full))
        if self._dimensions is None:
            await self.aembed([_PROBE])
        assert self._dimensions is not None
        return self._spread(vectors, rows, len(texts), self._dimensions)

    def _call(self, kind: Kind) -> Callable[[list[str]], Any]:
        return self._query if kind == "query" else self._function


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        weight = len(text.encode("utf-8"))
        if batch and (len(batch) == _MAX_INPUTS or size + weight > _MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += weight
    if batch:
        yield batch


def _close(answer: Awaitable[Any]) -> None:
    close = getattr(answer, "close", None)
    if close is not None:
        close()
