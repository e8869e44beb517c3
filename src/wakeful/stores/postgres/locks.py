"""Which locks a transaction takes, all at its start and in one order, so that no two wait for each other.

| lock | shared | alone |
|---|---|---|
| ``tree/<path>`` | whoever writes at the path or below it | erasing the path, deleting rows that edges below may reach |
| ``own/<path>`` | | whoever writes rows of the path |

Readers take none. Locks are advisory, by a 64-bit hash of their name, and end with the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from wakeful import ops as op

_READS = (
    *(op.GetNodes, op.GetEdges, op.QueryNodes, op.QuerySubtree, op.SearchText, op.SearchVector),
    *(op.FindCandidates, op.Adjacent, op.History, op.Stats, op.GetState, op.ListScopes),
)
_BESIDE = (op.ClaimDue, op.AcquireLease, op.RenewLease, op.ReleaseLease, op.Fence)
"""Writes to single rows that the database's own row locks guard."""


def is_read(each: op.MemoryOp) -> bool:
    """Whether an operation changes nothing."""
    return isinstance(each, _READS)


def needed(ops: Iterable[op.MemoryOp]) -> tuple[Sequence[int], Sequence[bool]]:
    """Give the keys of the locks that operations need, in order, and which of them may be shared."""
    shared: dict[int, bool] = {}

    def take(name: str, share: bool) -> None:
        key = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)
        shared[key] = share and shared.get(key, True)

    for each in ops:
        if is_read(each):
            continue
        if isinstance(each, op.SetEmbedding):
            take("embedding", False)
            continue
        scope = each.scope
        if scope is None:
            continue
        for above in scope.ancestors():
            take(f"tree/{above.path}", True)
        take(f"tree/{scope.path}", not isinstance(each, op.Erase | op.DeleteNodes))
        if not isinstance(each, _BESIDE):
            take(f"own/{scope.path}", False)
    keys = sorted(shared)
    return keys, [shared[key] for key in keys]
