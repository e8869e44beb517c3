"""The SQLite store: one file, many processes and threads. SQL stands in ``queries/``, the schema in ``schema.sql``.

| module | owns |
|---|---|
| ``store`` | the ``Store``: dispatch, transactions, embedding |
| ``connect`` | connections, their settings, the pool, busy and foreign errors |
| ``migrate`` | the schema and the way to it from earlier ones |
| ``transaction`` | what one transaction knows: scopes, counters, time |
| ``rows`` | records to columns and back |
| ``nodes`` ``queries`` ``graph`` ``work`` ``search`` ``erasure`` | the operations |
"""

from wakeful.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
