"""Reminders, leases, small state."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from wakeful import ops as op
from wakeful.errors import StaleWriter
from wakeful.records import MemoryNode
from wakeful.stores import rules
from wakeful.stores.sqlite.nodes import note_use
from wakeful.stores.sqlite.rows import micros, visibility_parameters
from wakeful.stores.sqlite.transaction import Transaction


def claim_due(tx: Transaction, each: op.ClaimDue) -> tuple[MemoryNode, ...]:
    """Claim what is due: the write lock makes it one caller's."""
    parameters = {
        **visibility_parameters(op.Visibility(at=each.at)),
        "scope": tx.scope_id(each.scope),
        "limit": each.limit,
        "event": each.event,
    }
    due = tx.numbered_nodes("due_nodes" if each.event is None else "event_nodes", parameters)
    until = micros(each.at + timedelta(seconds=each.lease_seconds))
    tx.run("claim_rows", {"rows": json.dumps([row for row, _ in due]), "until": until})
    return tuple(node for _, node in due)


def ack_due(tx: Transaction, each: op.AckDue) -> bool:
    """Settle a claimed occurrence."""
    held = tx.whole_nodes("held_nodes", {"ids": json.dumps([each.id])})
    if not held or held[0][1].scope.levels != each.scope.levels:
        return False
    row, node = held[0]
    reminder = rules.reminder_of(node)
    if reminder is None or not rules.same_occurrence(reminder, each.occurrence):
        return False
    node = rules.settled(node, each.until)
    after = rules.reminder_of(node)
    tx.run(
        "settle_row",
        {
            "row": row,
            "properties": rules.check_properties(node.properties),
            "due": micros(after.due_at) if after is not None else None,
            "event": after.event if after is not None else None,
        },
    )
    note_use(tx, {"ids": json.dumps([each.id]), "scope": tx.own_scope_id(each.scope)})
    return True


def acquire_lease(tx: Transaction, each: op.AcquireLease) -> int | None:
    """Take the scope's lease when it is free, ended or ours."""
    scope = tx.own_scope_id(each.scope)
    held = tx.one("lease_of", {"scope": scope})
    if held is not None and held[0] != each.owner and held[2] > (micros(each.at) or 0):
        return None
    token = int(tx.run("next_token").fetchall()[0][0])
    until = micros(each.at + timedelta(seconds=each.seconds))
    tx.run("put_lease", {"scope": scope, "owner": each.owner, "token": token, "until": until})
    return token


def renew_lease(tx: Transaction, each: op.RenewLease) -> bool:
    """Prolong a lease that is still ours."""
    values = {
        "scope": tx.scope_id(each.scope),
        "owner": each.owner,
        "token": each.token,
        "at": micros(each.at),
        "until": micros(each.at + timedelta(seconds=each.seconds)),
    }
    return tx.run("renew_lease", values).rowcount == 1


def release_lease(tx: Transaction, each: op.ReleaseLease) -> bool:
    """Give a lease back."""
    values = {"scope": tx.scope_id(each.scope), "owner": each.owner, "token": each.token}
    return tx.run("drop_lease", values).rowcount == 1


def fence(tx: Transaction, each: op.Fence) -> None:
    """Stop a writer whose token is not the current one."""
    held = tx.one("lease_of", {"scope": tx.scope_id(each.scope)})
    if held is None or held[1] != each.token:
        raise StaleWriter(f"token {each.token} is not the current one of {each.scope.path}; another worker has it")


def get_state(tx: Transaction, each: op.GetState) -> Any:
    """Give a small value."""
    held = tx.one("get_state", {"scope": tx.scope_id(each.scope), "key": each.key})
    return None if held is None else json.loads(held[0])


def put_state(tx: Transaction, each: op.PutState) -> None:
    """Keep a small value."""
    key = {"scope": tx.own_scope_id(each.scope), "key": each.key}
    if each.value is None:
        tx.run("drop_state", key)
    else:
        tx.run("put_state", {**key, "value": rules.state_text(each.value)})
