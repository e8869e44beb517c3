"""The store: one transaction for each ``execute``, one handler for each operation."""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from wakeful import ops as op
from wakeful.errors import MemoryContractError, StoreBusy
from wakeful.stores import rules
from wakeful.stores.protocol import EmbeddingSpace, settle_embedding
from wakeful.stores.sidecar import Sidecar
from wakeful.stores.sqlite import erasure, graph, nodes, queries, search, work
from wakeful.stores.sqlite.connect import BUSY_SECONDS, connect, translated
from wakeful.stores.sqlite.migrate import migrate
from wakeful.stores.sqlite.transaction import Transaction
from wakeful.stores.sqlite_pool import Pool

SIDECAR_BYTES = 512 * 1024 * 1024
"""Memory for search, bytes. Owners whose rows do not fit are searched in the file."""


class SqliteStore:
    """Keep memory in one SQLite file that many threads and processes share.

    ``sidecar_bytes`` 0 searches in the file always. Raises ``SchemaError``, ``EmbeddingMismatch``, ``StoreBusy`` and
    ``StoreError`` when the file can't be opened so.
    """

    kind = "sqlite"
    supports_updated_since = True
    stores_native_scopes = True

    def __init__(
        self,
        path: str,
        *,
        embedding: EmbeddingSpace | None = None,
        adopt: bool = False,
        sidecar_bytes: int = SIDECAR_BYTES,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self.url = f"sqlite:///{path}"
        self._pool = Pool(partial(connect, path, busy_seconds), "the store")
        has_numpy = importlib.util.find_spec("numpy") is not None
        self.sidecar = Sidecar(sidecar_bytes) if sidecar_bytes and has_numpy else None
        try:
            with self._pool.lend() as connection, translated():
                migrate(connection)
            if embedding is not None:
                self._declare(embedding, adopt)
        except BaseException:
            self._pool.close()
            raise

    def _declare(self, wanted: EmbeddingSpace, adopt: bool) -> None:
        settled = settle_embedding(self.embedding, wanted, adopt=adopt)
        if settled is not None and settled != self.embedding:
            self.execute((op.SetEmbedding(settled.model, settled.dimensions),))

    @property
    def embedding(self) -> EmbeddingSpace | None:
        """The declared model of the vectors."""
        with self._pool.lend() as connection, translated():
            return Transaction(connection, self.sidecar).embedding()

    def execute(self, ops: Sequence[op.MemoryOp]) -> tuple[Any, ...]:
        """Run operations, all or nothing; one result an operation."""
        for each in ops:
            if type(each) not in _HANDLERS:
                raise MemoryContractError(f"{type(each).__name__} is not a memory operation")
            rules.check_names(each)
        writes = any(type(each) not in _READS for each in ops)
        with self._pool.lend() as connection, translated():
            results = self._transact(connection, ops, writes)
            if any(type(each) is op.Erase for each in ops):
                pending = erasure.purge(connection)
                results = tuple(
                    {**result, "pending": pending} if type(each) is op.Erase else result
                    for each, result in zip(ops, results, strict=True)
                )
        return results

    def _transact(self, connection: sqlite3.Connection, ops: Sequence[op.MemoryOp], writes: bool) -> tuple[Any, ...]:
        # A write takes the lock at once: a transaction that reads first could be refused when it comes to write.
        connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        tx = Transaction(connection, self.sidecar)
        try:
            results = tuple(_HANDLERS[type(each)](tx, each) for each in ops)
            if writes:
                tx.mark()
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            for scope in tx.touched_scopes:
                # A search inside the transaction may have taken over rows that are not to be.
                tx.forget_scope(scope)
            raise
        return results

    async def aexecute(self, ops: Sequence[op.MemoryOp]) -> tuple[Any, ...]:
        """Run operations in a thread."""
        import asyncio

        return await asyncio.to_thread(self.execute, ops)

    def purge(self) -> tuple[str, ...]:
        """Clean the file of what erasures left behind; give the steps that are still pending."""
        with self._pool.lend() as connection, translated():
            return erasure.purge(connection)

    def close(self) -> None:
        """Close every connection, after a last try at what an erasure left pending. Closing twice does nothing more."""
        if self._pool.closed:
            return
        with suppress(StoreBusy), self._pool.lend() as connection, translated():
            if erasure.is_pending(connection):
                erasure.purge(connection)
        self._pool.close()

    async def aclose(self) -> None:
        """Close, in a thread."""
        import asyncio

        await asyncio.to_thread(self.close)


_READS = frozenset(
    (
        *(op.GetNodes, op.GetEdges, op.QueryNodes, op.QuerySubtree, op.SearchText, op.SearchVector),
        *(op.FindCandidates, op.Adjacent, op.History, op.Stats, op.Fence, op.GetState, op.ListScopes),
    )
)


def _set_embedding(tx: Transaction, each: op.SetEmbedding) -> None:
    tx.set_embedding(None if each.model is None else EmbeddingSpace(each.model, each.dimensions))


_HANDLERS: dict[type, Callable[[Transaction, Any], Any]] = {
    op.PutNodes: nodes.put_nodes,
    op.UpdateNodes: nodes.update_nodes,
    op.Touch: nodes.touch,
    op.DeleteNodes: nodes.delete_nodes,
    op.Log: nodes.log,
    op.History: nodes.history,
    op.GetNodes: queries.get_nodes,
    op.QueryNodes: queries.query_nodes,
    op.QuerySubtree: queries.query_subtree,
    op.FindCandidates: search.find_candidates,
    op.Adjacent: queries.adjacent,
    op.Stats: queries.stats,
    op.ListScopes: queries.list_scopes,
    op.SearchText: search.search_text,
    op.SearchVector: search.search_vector,
    op.PutEdges: graph.put_edges,
    op.GetEdges: graph.get_edges,
    op.DeleteEdges: graph.delete_edges,
    op.ClaimDue: work.claim_due,
    op.AckDue: work.ack_due,
    op.AcquireLease: work.acquire_lease,
    op.RenewLease: work.renew_lease,
    op.ReleaseLease: work.release_lease,
    op.Fence: work.fence,
    op.GetState: work.get_state,
    op.PutState: work.put_state,
    op.SetEmbedding: _set_embedding,
    op.Erase: erasure.erase,
}
