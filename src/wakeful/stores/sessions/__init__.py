"""Stores of sessions: operations as data behind two methods, and the door that opens one by its URL.

| URL | store |
|---|---|
| ``memory://`` | in the process, gone with it |
| ``sqlite:///relative.db``, ``sqlite:////absolute.db`` | one file, many processes and threads |
| ``postgresql://user@host/name`` | PostgreSQL (extra ``postgres``) |

``conformance.SessionStoreContract`` is the suite that every store passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable
from urllib.parse import unquote

from wakeful.errors import ConfigError
from wakeful.ops_session import SessionOp


@runtime_checkable
class SessionStore(Protocol):
    """Keep sessions. ``execute`` runs its operations in order in one transaction; when one raises, nothing was changed."""

    def execute(self, ops: Sequence[SessionOp]) -> tuple[Any, ...]:
        """Run operations, all or nothing; one result an operation."""
        ...

    async def aexecute(self, ops: Sequence[SessionOp]) -> tuple[Any, ...]:
        """Run operations without blocking the event loop."""
        ...

    def close(self) -> None:
        """Give back every resource."""
        ...


def open_session_store(url: str) -> SessionStore:
    """Open the session store at a URL, making it when it is not there.

    Raises ``ConfigError`` for a URL of no known kind, ``MissingExtra`` when its driver is not installed, ``SchemaError``
    for a file that is no session store of this version.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "memory":
        from wakeful.stores.sessions.inmemory import InMemorySessions

        return InMemorySessions()
    if separator and scheme == "sqlite":
        from wakeful.stores.sessions.sqlite import SqliteSessions

        path = unquote(rest.removeprefix("/"))
        if not path:
            raise ConfigError("sqlite:// needs a file: sqlite:///sessions.db, or four slashes for an absolute path")
        return SqliteSessions(path)
    if separator and scheme in ("postgresql", "postgres"):
        from wakeful.stores.sessions.postgres import PostgresSessions

        return PostgresSessions(url)
    raise ConfigError(f"{scheme or url!r} is no session store; write memory://, sqlite:///file.db or postgresql://...")
