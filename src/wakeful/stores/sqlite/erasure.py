"""Erase a subtree, then clean the file of what SQLite keeps behind: merged index pages, free pages, the log."""

from __future__ import annotations

import sqlite3
from typing import Any

from wakeful import ops as op
from wakeful.records import MemoryScope
from wakeful.stores import rules
from wakeful.stores.sqlite.rows import micros
from wakeful.stores.sqlite.transaction import Transaction, statements

PATIENCE_MILLISECONDS = 1_000
"""How long the clean-up waits for other connections before it is left pending."""

_COUNTED = ("nodes", "edges", "history", "reminders", "vectors", "state", "leases")
_STEPS = (
    *("unindex_scope", "erase_edges", "erase_edges_from", "erase_edges_to", "erase_history", "erase_vectors"),
    *("erase_revisions", "erase_state", "erase_lease", "erase_nodes", "erase_scope"),
)


def erase(tx: Transaction, each: op.Erase) -> dict[str, Any]:
    """Erase the subtree; the store cleans the file after the commit and completes the receipt."""
    receipt: dict[str, Any] = dict.fromkeys((*_COUNTED, "scopes"), 0)
    for scope, path in tx.scopes_below(each.scope):
        counts = tx.one("count_scope", {"scope": scope})
        for name, count in zip(_COUNTED, counts, strict=True):
            receipt[name] += count
        receipt["scopes"] += counts[0] > 0
        for step in _STEPS:
            tx.run(step, {"scope": scope})
        tx.forget_scope(scope)
        assert each.scope.contains(MemoryScope.parse(path))
    tx.run("put_tombstone", {"mark": rules.tombstone_key(each.scope), "at": micros(each.at)})
    tx.run("want_purge")
    receipt["pending"] = ("vacuum", "checkpoint")
    return receipt


def is_pending(connection: sqlite3.Connection) -> bool:
    """Whether an erasure still waits for the file to be cleaned."""
    wanted: bool = connection.execute(statements()["counters"]).fetchone()[5] == 1
    return wanted


def purge(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Clean the file; give the steps that another connection kept from being done.

    The full-text index still holds deleted words until its parts are merged; ``VACUUM`` rewrites every page; the log
    holds old pages until a checkpoint truncates it.
    """
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {PATIENCE_MILLISECONDS}")
    try:
        return _purge(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute(f"PRAGMA busy_timeout = {patience}")


def _purge(connection: sqlite3.Connection) -> tuple[str, ...]:
    named = statements()
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(named["optimize_lexemes"])
        connection.execute("COMMIT")
        connection.execute("VACUUM")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise
        return ("vacuum", "checkpoint")
    if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        return ("checkpoint",)
    connection.execute(named["purged"])
    return ()
