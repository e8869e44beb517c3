"""What a memory store is: operations as data behind two methods, and the door that opens one by its URL.

| URL | store |
|---|---|
| ``memory://`` | in the process, gone with it |
| ``sqlite:///relative.db``, ``sqlite:////absolute.db`` | one file, many processes and threads |
| ``postgresql://user@host/name`` | PostgreSQL with pgvector (extra ``postgres``) |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from urllib.parse import unquote

from wakeful.errors import ConfigError, EmbeddingMismatch
from wakeful.ops import MemoryOp


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """The model that made a store's vectors, and their size."""

    model: str
    dimensions: int


@runtime_checkable
class Store(Protocol):
    """Keep memory and answer operations on it.

    ``execute`` runs its operations in order in one transaction and gives one result each; when one raises, nothing
    was changed. Reads write nothing. A store may be shared by threads; ``StoreBusy`` may be tried again.
    """

    kind: str
    """``memory``, ``sqlite`` or ``postgresql``."""
    url: str
    supports_updated_since: bool
    """True: ``updated_since`` is a range in an index."""
    stores_native_scopes: bool
    """True: rows keep the whole path of their scope."""

    @property
    def embedding(self) -> EmbeddingSpace | None:
        """The declared model of the vectors; None while none was declared or written."""

    def execute(self, ops: Sequence[MemoryOp]) -> tuple[Any, ...]:
        """Run operations, all or nothing; one result an operation."""

    async def aexecute(self, ops: Sequence[MemoryOp]) -> tuple[Any, ...]:
        """Run operations without blocking the event loop."""

    def close(self) -> None:
        """Give back every resource. A closed store raises ``StoreError`` when used."""

    async def aclose(self) -> None:
        """Close, awaited."""


def open_store(url: str, *, model_id: str | None = None, dimensions: int | None = None, adopt: bool = False) -> Store:
    """Open the store at a URL, making it when it is not there.

    ``model_id`` and ``dimensions`` name the embedder in use: a store without vectors adopts it, one with vectors of
    another model or size raises ``EmbeddingMismatch`` that names both. ``adopt`` opens it all the same and declares the
    given model, so that ``reembed`` can mend the rows while they stay searchable by words.

    Raises: ``ConfigError`` for a URL of no known kind, ``MissingExtra`` when the kind's driver is not installed,
    ``SchemaError`` for a file that another version made, ``StoreBusy`` when it stays locked.
    """
    space = EmbeddingSpace(model_id, dimensions or 0) if model_id is not None else None
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise ConfigError(f"{url!r} is not a store's URL; write memory://, sqlite:///file.db or postgresql://...")
    if scheme == "memory":
        from wakeful.stores.inmemory import InMemoryStore

        return InMemoryStore(embedding=space)
    if scheme == "sqlite":
        from wakeful.stores.sqlite import SqliteStore

        return SqliteStore(sqlite_path(url), embedding=space, adopt=adopt)
    if scheme in ("postgresql", "postgres"):
        from wakeful.stores.postgres import open_postgres

        opened: Store = open_postgres(url, embedding=space, adopt=adopt)
        return opened
    raise ConfigError(f"no store is known for {scheme}://; known: memory, sqlite, postgresql ({rest!r} was given)")


def sqlite_path(url: str) -> str:
    """Give the file of a ``sqlite://`` URL: three slashes relative, four absolute."""
    rest = url.removeprefix("sqlite://")
    if not rest.startswith("/") or len(rest) < 2:
        raise ConfigError(f"{url!r} names no file; write sqlite:///relative.db or sqlite:////absolute.db")
    return unquote(rest[1:])


def settle_embedding(
    held: EmbeddingSpace | None, wanted: EmbeddingSpace | None, *, adopt: bool = False
) -> EmbeddingSpace | None:
    """Decide the embedding of a store that is opened with ``wanted``. Raises ``EmbeddingMismatch``."""
    if wanted is None or held is None or adopt:
        return wanted or held
    if held.model != wanted.model or (held.dimensions and wanted.dimensions and held.dimensions != wanted.dimensions):
        raise EmbeddingMismatch(
            f"the store holds vectors of {held.model!r} ({held.dimensions} dimensions), the embedder given is "
            f"{wanted.model!r} ({wanted.dimensions} dimensions); run reembed to move the store to it, or open the "
            f"store with {held.model!r}"
        )
    return EmbeddingSpace(held.model, held.dimensions or wanted.dimensions)
