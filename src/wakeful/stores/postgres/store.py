"""The store in PostgreSQL: pools of connections, one transaction an ``execute``, the steps driven sync or async.

Rules of the file:

- Before an operation runs, its scope is set for the transaction; row-level security shows nothing else.
- A transaction takes all its locks first, in one order.
- No connection is held while anything but the database works.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.types import TypeInfo
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from wakeful import ops as op
from wakeful.errors import MemoryContractError, StoreError
from wakeful.stores import rules
from wakeful.stores.postgres import reading, working, writing
from wakeful.stores.postgres.codec import adapt
from wakeful.stores.postgres.failures import wrap
from wakeful.stores.postgres.locks import needed
from wakeful.stores.postgres.migrate import prepare
from wakeful.stores.postgres.nearness import PROBES, build
from wakeful.stores.postgres.steps import Result, Statement, Steps, run, sql
from wakeful.stores.protocol import EmbeddingSpace, settle_embedding

_LOCK_SECONDS = 15
"""How long a statement waits for another transaction's lock before ``StoreBusy``."""

Handler = Callable[[Any], Steps[Any]]

_HANDLERS: dict[type, Handler] = {
    op.PutNodes: writing.put_nodes,
    op.PutEdges: writing.put_edges,
    op.GetNodes: reading.get_nodes,
    op.GetEdges: reading.get_edges,
    op.QueryNodes: reading.query_nodes,
    op.QuerySubtree: reading.query_subtree,
    op.SearchText: reading.search_text,
    op.SearchVector: reading.search_vector,
    op.FindCandidates: reading.find_candidates,
    op.Adjacent: reading.adjacent,
    op.UpdateNodes: writing.update_nodes,
    op.Touch: writing.touch,
    op.DeleteNodes: writing.delete_nodes,
    op.DeleteEdges: writing.delete_edges,
    op.History: reading.get_history,
    op.Log: writing.log,
    op.ClaimDue: working.claim_due,
    op.AckDue: working.ack_due,
    op.Erase: working.erase,
    op.Stats: reading.stats,
    op.AcquireLease: working.acquire_lease,
    op.RenewLease: working.renew_lease,
    op.ReleaseLease: working.release_lease,
    op.Fence: working.fence,
    op.GetState: reading.get_state,
    op.PutState: writing.put_state,
    op.SetEmbedding: writing.set_embedding,
    op.ListScopes: reading.list_scopes,
}


def _transaction(ops: Sequence[op.MemoryOp]) -> Steps[tuple[Any, ...]]:
    """The statements of one ``execute``."""
    keys, shared = needed(ops)
    if keys:
        yield Statement(sql("lock"), {"keys": keys, "shared": shared})
    results = []
    entered: tuple[str, str] | None = None
    for each in ops:
        where = _place(each)
        if where is not None and where != entered:
            yield from run("enter", path=where[0], reach=where[1])
            entered = where
        results.append((yield from _HANDLERS[type(each)](each)))
    return tuple(results)


def _place(each: op.MemoryOp) -> tuple[str, str] | None:
    """Give the scope that an operation acts for and how far it reaches, as row-level security is told."""
    if isinstance(each, op.SetEmbedding):
        return None
    if each.scope is None:
        return ("", "names")
    down = isinstance(each, op.QuerySubtree | op.Erase | op.ListScopes)
    return (each.scope.path, "down" if down else "up")


class PostgresStore:
    """Keep memory in PostgreSQL with pgvector, for many workers.

    ``url`` is a libpq connection string or URL. ``pool_size`` bounds the connections of this object, sync and async
    apart. The schema is made or upgraded when it is opened by a role that may. Raises ``EmbeddingMismatch``,
    ``SchemaError``, ``StoreError``.
    """

    kind = "postgresql"
    supports_updated_since = True
    stores_native_scopes = True

    def __init__(
        self, url: str, *, embedding: EmbeddingSpace | None = None, adopt: bool = False, pool_size: int = 8
    ) -> None:
        self.url = url
        self._size = pool_size
        self._closed = False
        self._async_pools: weakref.WeakKeyDictionary[Any, AsyncConnectionPool[Any]] = weakref.WeakKeyDictionary()
        self._async_connections: weakref.WeakSet[AsyncConnection[Any]] = weakref.WeakSet()
        self._vector: TypeInfo | None = None
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                prepare(connection)
                self._vector = TypeInfo.fetch(connection, "halfvec")
                adapt(connection, self._vector)
                with connection.transaction():
                    held = _drive(writing.get_embedding(), connection)
                    settled = settle_embedding(held, embedding, adopt=adopt)
                    if settled != held:
                        _drive(writing.declare_embedding(settled), connection)
        except psycopg.Error as error:
            raise wrap(error) from error
        self._pool = ConnectionPool(
            url, min_size=0, max_size=pool_size, open=True, timeout=_LOCK_SECONDS, configure=self._configure
        )

    def _configure(self, connection: Connection[Any]) -> None:
        adapt(connection, self._vector)
        connection.execute(_SETTINGS)
        connection.commit()

    async def _aconfigure(self, connection: AsyncConnection[Any]) -> None:
        self._async_connections.add(connection)
        adapt(connection, self._vector)
        await connection.execute(_SETTINGS)
        await connection.commit()

    @property
    def embedding(self) -> EmbeddingSpace | None:
        """The declared model of the vectors, as the database has it now."""
        held: EmbeddingSpace | None = self._run(writing.get_embedding())
        return held

    def execute(self, ops: Sequence[op.MemoryOp]) -> tuple[Any, ...]:
        """Run operations in one transaction; one result an operation."""
        _check(ops)
        results: tuple[Any, ...] = self._run(_transaction(ops))
        return results

    def _run(self, steps: Steps[Any]) -> Any:
        if self._closed:
            raise StoreError("the store is closed")
        try:
            with self._pool.connection() as connection:
                return _drive(steps, connection)
        except psycopg.Error as error:
            raise wrap(error) from error

    async def aexecute(self, ops: Sequence[op.MemoryOp]) -> tuple[Any, ...]:
        """Run operations in one transaction, awaited."""
        _check(ops)
        if self._closed:
            raise StoreError("the store is closed")
        try:
            pool = await self._async_pool()
            async with pool.connection() as connection:
                result: tuple[Any, ...] = await _adrive(_transaction(ops), connection)
                return result
        except psycopg.Error as error:
            raise wrap(error) from error

    async def _async_pool(self) -> AsyncConnectionPool[Any]:
        """Give this event loop's pool; connections can't move between loops."""
        loop = asyncio.get_running_loop()
        pool = self._async_pools.get(loop)
        if pool is None:
            pool = AsyncConnectionPool(
                self.url,
                min_size=0,
                max_size=self._size,
                open=False,
                timeout=_LOCK_SECONDS,
                configure=self._aconfigure,
            )
            self._async_pools[loop] = pool
            await pool.open()
        return pool

    def index_vectors(self) -> bool:
        """Build the approximate index over the vectors of the declared model, when a scope needs it.

        Gives whether it is there. Up to ``EXACT_ROWS`` rows of the scopes read all vectors are compared, so no index is
        built until a scope holds more. Writers and readers go on meanwhile. Call it again when the rows have grown much: an
        index that they have outgrown is built anew. Takes half a minute for 200,000 vectors, and a role that owns the
        tables.
        """
        space = self.embedding
        if space is None or not space.dimensions:
            return False
        try:
            with psycopg.connect(self.url, autocommit=True) as connection:
                return build(connection, space)
        except psycopg.Error as error:
            raise wrap(error) from error

    def close(self) -> None:
        """Give back every connection."""
        self._closed = True
        self._pool.close()
        for connection in list(self._async_connections):
            connection.pgconn.finish()

    async def aclose(self) -> None:
        """Give back every connection, awaited."""
        pool = self._async_pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()
        self.close()


_SETTINGS = (
    f"SET lock_timeout = '{_LOCK_SECONDS}s'; SET plan_cache_mode = force_generic_plan; "
    f"SET jit = off; SET ivfflat.iterative_scan = relaxed_order; SET ivfflat.probes = {PROBES}"
)
"""Statements are few and their plans do not depend on their values, so they are planned once a connection."""


def _check(ops: Sequence[op.MemoryOp]) -> None:
    for each in ops:
        if type(each) not in _HANDLERS:
            raise MemoryContractError(f"{type(each).__name__} is not a memory operation")
        rules.check_names(each)


def _drive(steps: Steps[Any], connection: Connection[Any]) -> Any:
    cursor = connection.cursor(binary=True)
    try:
        statement = next(steps)
        while True:
            cursor.execute(statement.sql, statement.values)
            rows = cursor.fetchall() if cursor.description is not None else []
            statement = steps.send(Result(rows, cursor.rowcount))
    except StopIteration as stop:
        return stop.value


async def _adrive(steps: Steps[Any], connection: AsyncConnection[Any]) -> Any:
    cursor = connection.cursor(binary=True)
    try:
        statement = next(steps)
        while True:
            await cursor.execute(statement.sql, statement.values)
            rows = await cursor.fetchall() if cursor.description is not None else []
            statement = steps.send(Result(rows, cursor.rowcount))
    except StopIteration as stop:
        return stop.value
