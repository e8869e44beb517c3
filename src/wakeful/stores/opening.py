"""Open a memory store or an archive by its URL; what a kind needs is imported when it is first opened.

| URL | store |
|---|---|
| ``memory://`` | in the process, gone with it |
| ``sqlite:///relative.db``, ``sqlite:////absolute.db`` | one file, many processes and threads |
| ``postgresql://user@host/name`` | PostgreSQL with pgvector (extra ``postgres``); memory alone |
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from wakeful.errors import ConfigError
from wakeful.stores.archive import Archive, MemoryArchive
from wakeful.stores.protocol import EmbeddingSpace, Store


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


def open_archive(value: Any) -> Archive:
    """Make an archive of what the caller has: an archive, ``memory://``, ``sqlite:///file.db``, or a file's path.

    Raises ``ConfigError`` for anything else, ``SchemaError`` for a file that is no archive.
    """
    if isinstance(value, Archive) and not isinstance(value, type):
        return value
    name = value if isinstance(value, str) else getattr(value, "__fspath__", str)()
    if not isinstance(name, str) or not name:
        raise ConfigError(f"archive is an archive, a URL or a file's path, not {type(value).__name__}")
    if name == "memory://":
        return MemoryArchive()
    from wakeful.stores.archive_sqlite import SqliteArchive

    if name.startswith("sqlite://"):
        return SqliteArchive(sqlite_path(name))
    if "://" in name:
        raise ConfigError(f"no archive is known for {name!r}; write memory://, sqlite:///file.db or a file's path")
    return SqliteArchive(name)
