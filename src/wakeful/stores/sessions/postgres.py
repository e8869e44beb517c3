"""Sessions in PostgreSQL, for many workers: the session's row is locked while its epoch is compared and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wakeful.errors import MissingExtra, StoreBusy, StoreError, WakefulError
from wakeful.ops_session import SessionOp
from wakeful.stores.named_sql import named_sql
from wakeful.stores.sessions.sqlstore import run_op

try:
    import psycopg
    from psycopg import errors
    from psycopg_pool import ConnectionPool, PoolTimeout
except ImportError as error:
    raise MissingExtra("postgres", needed_for="A session store in PostgreSQL") from error

SCHEMA_LOCK = 7_316_001
"""Advisory lock under which the tables are made; any constant of our own."""

_BUSY = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.LockNotAvailable,
    errors.QueryCanceled,
    errors.TooManyConnections,
    errors.CannotConnectNow,
    PoolTimeout,
)


class PostgresSessions:
    """Sessions in PostgreSQL. ``url`` is a libpq connection string or URL; ``pool_size`` bounds the connections."""

    def __init__(self, url: str, *, pool_size: int = 8, timeout: float = 30.0) -> None:
        self._sql = named_sql("postgres.sql", "wakeful.stores.sessions")
        self._pool: ConnectionPool[Any] = ConnectionPool(
            url, min_size=1, max_size=pool_size, timeout=timeout, open=False, kwargs={"application_name": "wakeful"}
        )
        try:
            self._pool.open(wait=True, timeout=timeout)
            with self._pool.connection() as db:
                db.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK,))
                db.execute(self._sql["schema"])
        except Exception as error:
            self._pool.close()
            raise _wrapped(error) from error

    def execute(self, ops: Sequence[SessionOp]) -> tuple[Any, ...]:
        """Run operations in one transaction, all or nothing."""
        try:
            with self._pool.connection() as db:
                bound = _Bound(db, self._sql)
                return tuple(run_op(bound, op) for op in ops)
        except WakefulError:
            raise
        except Exception as error:
            raise _wrapped(error) from error

    async def aexecute(self, ops: Sequence[SessionOp]) -> tuple[Any, ...]:
        """Run operations in a thread."""
        import asyncio

        return await asyncio.to_thread(self.execute, ops)

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


class _Bound:
    """A connection inside a transaction, with the named statements."""

    def __init__(self, db: psycopg.Connection[Any], sql: Mapping[str, str]) -> None:
        self._db = db
        self._sql = sql

    def rows(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        cursor = self._db.execute(self._sql[name], values)
        return cursor.fetchall() if cursor.description is not None else []

    def many(self, name: str, values: Sequence[Mapping[str, Any]]) -> None:
        with self._db.cursor() as cursor:
            cursor.executemany(self._sql[name], values)


def _wrapped(error: Exception) -> WakefulError:
    if isinstance(error, WakefulError):
        return error
    text = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if isinstance(error, _BUSY):
        return StoreBusy(f"PostgreSQL is busy; nothing was changed, try again ({text})")
    return StoreError(f"the session store in PostgreSQL failed: {text}")
