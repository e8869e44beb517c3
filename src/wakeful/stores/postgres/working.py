"""What workers need: reminders given once, leases with rising tokens, erasure with a receipt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from wakeful import ops as op
from wakeful.errors import StaleWriter, StoreError
from wakeful.records import MemoryNode
from wakeful.stores import rules
from wakeful.stores.postgres.codec import COLUMNS, node_of
from wakeful.stores.postgres.steps import Steps, run, run_count, shown
from wakeful.stores.postgres.writing import Held, _change, mark, own_scope

_LEFTOVERS = ("vacuum", "wal")
"""What still holds erased bytes after the commit: dead rows until a vacuum, the log until its segments are recycled."""


def claim_due(each: op.ClaimDue) -> Steps[tuple[MemoryNode, ...]]:
    """Claim what is due: rows that another transaction is claiming are passed over, never waited for."""
    values: dict[str, Any] = {"path": each.scope.path, **shown(op.Visibility(at=each.at)), "limit": each.limit}
    if each.event is None:
        rows = yield from run("due", **values)
    else:
        rows = yield from run("due_event", **values, event=each.event)
    if rows:
        places = [row[COLUMNS] for row in rows]
        until = each.at + timedelta(seconds=each.lease_seconds)
        yield from run_count("claim", path=each.scope.path, places=places, until=until)
    return tuple(map(node_of, rows))


def ack_due(each: op.AckDue) -> Steps[bool]:
    """Settle a claimed occurrence."""
    rows = yield from run("owned", path=each.scope.path, ids=[each.id])
    if not rows:
        return False
    held = Held(rows[0])
    reminder = rules.reminder_of(held.node)
    if reminder is None or not rules.same_occurrence(reminder, each.occurrence):
        return False
    owner, _ = yield from own_scope(each.scope)
    yield from _change(owner, [(held, rules.settled(held.node, each.until))])
    return True


def erase(each: op.Erase) -> Steps[dict[str, Any]]:
    """Erase the subtree, look whether anything is left, and say what was there."""
    path = each.scope.path
    ((nodes, edges, history, reminders, vectors, state, leases, scopes),) = yield from run("count_below", path=path)
    yield from run_count("tombstone", mark=mark(each.scope), at=each.at)
    for name in ("words", "edges", "states", "leases", "nodes"):
        yield from run_count(f"erase_{name}", path=path)
    ((left,),) = yield from run("left_below", path=path)
    if left:
        raise StoreError(f"{left} rows of {path} could not be erased; nothing was changed")
    yield from run_count("erase_scopes", path=path)
    return {
        "nodes": nodes,
        "edges": edges,
        "history": history,
        "reminders": reminders,
        "vectors": vectors,
        "state": state,
        "leases": leases,
        "scopes": scopes,
        "pending": _LEFTOVERS if nodes or edges or state else (),
    }


def acquire_lease(each: op.AcquireLease) -> Steps[int | None]:
    """Take the scope's lease."""
    owner, _ = yield from own_scope(each.scope)
    until = each.at + timedelta(seconds=each.seconds)
    rows = yield from run("acquire_lease", owner=owner, holder=each.owner, at=each.at, until=until)
    return rows[0][0] if rows else None


def renew_lease(each: op.RenewLease) -> Steps[bool]:
    """Prolong a lease that is still ours."""
    until = each.at + timedelta(seconds=each.seconds)
    changed = yield from run_count(
        "renew_lease", path=each.scope.path, holder=each.owner, token=each.token, at=each.at, until=until
    )
    return changed == 1


def release_lease(each: op.ReleaseLease) -> Steps[bool]:
    """Give a lease back."""
    changed = yield from run_count("release_lease", path=each.scope.path, holder=each.owner, token=each.token)
    return changed == 1


def fence(each: op.Fence) -> Steps[None]:
    """Fail unless the token is current; it stays so until the transaction ends."""
    rows = yield from run("fence", path=each.scope.path)
    if not rows or rows[0][0] != each.token:
        raise StaleWriter(f"token {each.token} is not the current one of {each.scope.path}; another worker has it")
