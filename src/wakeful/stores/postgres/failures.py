"""Failures of the driver and the server, as errors of ours; the foreign one is the cause."""

from __future__ import annotations

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from wakeful.errors import MemoryContractError, StoreBusy, StoreError, WakefulError

_BUSY = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.LockNotAvailable,
    errors.QueryCanceled,
    errors.TooManyConnections,
    errors.CannotConnectNow,
    PoolTimeout,
    TooManyRequests,
)


def wrap(error: Exception) -> WakefulError:
    """Give the error of ours that a foreign one means; one of ours is given back as it is."""
    if isinstance(error, WakefulError):
        return error
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, PoolClosed):
        return StoreError("the store is closed")
    if isinstance(error, _BUSY):
        return StoreBusy(f"PostgreSQL is busy; nothing was changed, try again ({text})")
    if isinstance(error, errors.UniqueViolation):
        name = error.diag.constraint_name or ""
        if name.startswith("edges"):
            return MemoryContractError("an edge id can't be used here; let MemoryEdge.new make it")
        return MemoryContractError("an id can't be used in this scope; choose another")
    if isinstance(error, errors.ProgramLimitExceeded):
        return MemoryContractError(f"a name is too long for an index of PostgreSQL ({text})")
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreError(f"PostgreSQL refused: {text}. The role needs what wakeful.stores.postgres.grant gives")
    if isinstance(error, psycopg.OperationalError):
        return StoreError(f"the connection to PostgreSQL failed; what was not acknowledged may be undone ({text})")
    return StoreError(f"PostgreSQL failed: {text}")
