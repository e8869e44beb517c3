"""Session operations over SQL: written once; the two databases differ in their statements and connections only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, assert_never

from wakeful.errors import NotFound, StoreError
from wakeful.ops_session import (
    Claimed,
    SessionAppend,
    SessionClaim,
    SessionCompact,
    SessionErase,
    SessionFork,
    SessionList,
    SessionLoad,
    SessionMoveHead,
    SessionOp,
    SessionSaveTurn,
    SessionUndo,
    StoredCompaction,
    StoredEntry,
    StoredSession,
)
from wakeful.stores.sessions.rules import stale, unknown, viewed_ids

READS = (SessionLoad, SessionList)
"""Operations that write nothing."""


class Connection(Protocol):
    """A transaction that is open."""

    def rows(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run a named statement and give its rows; none for one without."""
        ...

    def many(self, name: str, values: Sequence[Mapping[str, Any]]) -> None:
        """Run a named statement for each set of values."""
        ...


def run_op(db: Connection, op: SessionOp) -> Any:
    """Run one operation inside a transaction."""
    match op:
        case SessionClaim():
            return _claim(db, op)
        case SessionAppend():
            return _append(db, op)
        case SessionSaveTurn():
            _writable(db, op.session, op.epoch)
            db.rows("save_turn", session=op.session, turn=None if op.state is None else _json(op.state))
            return None
        case SessionCompact():
            return _compact(db, op)
        case SessionUndo():
            return _undo(db, op)
        case SessionMoveHead():
            _writable(db, op.session, op.epoch)
            if op.head is not None:
                _seq_of(db, op.session, op.head)
            db.rows("set_head", session=op.session, head=op.head)
            _find_compaction(db, op.session, op.head)
            return None
        case SessionLoad():
            return _load(db, op)
        case SessionFork():
            return _fork(db, op)
        case SessionErase():
            return bool(db.rows("erase", session=op.session))
        case SessionList():
            after = "" if op.after is None else op.after
            return tuple(row[0] for row in db.rows("list", prefix=op.prefix, after=after, limit=op.limit))
        case _:
            assert_never(op)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, default=str)


def _writable(db: Connection, session: str, epoch: int) -> tuple[str | None, int]:
    """Lock the session's row and compare the epoch. Give its head and its last place."""
    rows = db.rows("lock", session=session)
    if not rows:
        raise unknown(session)
    current, head, seq = rows[0]
    if current != epoch:
        raise stale(session, epoch, current)
    return head, seq


def _claim(db: Connection, op: SessionClaim) -> Claimed:
    created = db.rows("create", session=op.session, dialect=op.dialect, at=op.at.isoformat(), epoch=1)
    if created:
        return Claimed(epoch=1, fresh=False, created=True)
    ((current, _, _),) = db.rows("lock", session=op.session)
    if current == op.epoch:
        return Claimed(epoch=current, fresh=True)
    db.rows("set_epoch", session=op.session, epoch=current + 1)
    return Claimed(epoch=current + 1, fresh=False)


def _append(db: Connection, op: SessionAppend) -> tuple[StoredEntry, ...]:
    head, seq = _writable(db, op.session, op.epoch)
    known = {row[0]: _entry(row) for row in db.rows("by_id", session=op.session, ids=_json([e.id for e in op.entries]))}
    stored: list[StoredEntry] = []
    fresh: list[dict[str, Any]] = []
    for given in op.entries:
        entry = replace(given, message=_safe(given.message))
        if entry.id in known:
            if known[entry.id].message != entry.message:
                raise StoreError(f"entry {entry.id!r} is in session {op.session!r} with another message")
            stored.append(known[entry.id])
            continue
        seq += 1
        placed = replace(entry, parent_id=head, seq=seq)
        known[entry.id] = placed
        stored.append(placed)
        fresh.append(_row(op.session, placed))
        head = entry.id
    if fresh:
        db.many("insert_entry", fresh)
        db.rows("advance", session=op.session, head=head, seq=seq)
    return tuple(stored)


def _row(session: str, entry: StoredEntry) -> dict[str, Any]:
    return {
        "session": session,
        "id": entry.id,
        "seq": entry.seq,
        "parent_id": entry.parent_id,
        "turn_id": entry.turn_id,
        "pinned": int(entry.pinned),
        "message": entry.message,
    }


def _safe(text: str) -> str:
    """Write lone surrogates, which no database keeps, as JSON escapes: the message is JSON and reads back the same."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _entry(row: Sequence[Any]) -> StoredEntry:
    entry_id, seq, parent_id, turn_id, pinned, message = row
    return StoredEntry(id=entry_id, message=message, turn_id=turn_id, pinned=bool(pinned), parent_id=parent_id, seq=seq)


def _seq_of(db: Connection, session: str, entry_id: str) -> int:
    rows = db.rows("by_id", session=session, ids=_json([entry_id]))
    if not rows:
        raise NotFound(f"session {session!r} has no entry {entry_id!r}")
    return int(rows[0][1])


def _compact(db: Connection, op: SessionCompact) -> None:
    head, seq = _writable(db, op.session, op.epoch)
    made = op.compaction
    if made.after is not None:
        _seq_of(db, op.session, made.after)
    db.many("insert_compaction", [_compaction_row(op.session, replace(made, seq=seq + 1))])
    db.rows("advance", session=op.session, head=head, seq=seq + 1)
    db.rows("set_compaction", session=op.session, compaction=seq + 1)


def _compaction_row(session: str, made: StoredCompaction) -> dict[str, Any]:
    return {
        "session": session,
        "seq": made.seq,
        "id": made.id,
        "after_id": made.after,
        "shown": _json(made.view),
        "covered": _json(made.covered),
        "meta": _json(made.meta),
    }


def _compaction(row: Sequence[Any]) -> StoredCompaction:
    seq, made_id, after, shown, covered, meta = row
    return StoredCompaction(
        id=made_id,
        after=after,
        view=tuple(json.loads(shown)),
        covered=tuple(json.loads(covered)),
        meta=json.loads(meta),
        seq=seq,
    )


def _undo(db: Connection, op: SessionUndo) -> bool:
    head, _ = _writable(db, op.session, op.epoch)
    current = _current(db, op.session)
    if current is None:
        return False
    db.rows("delete_compaction", session=op.session, seq=current.seq)
    _find_compaction(db, op.session, head)
    return True


def _current(db: Connection, session: str) -> StoredCompaction | None:
    rows = db.rows("current_compaction", session=session)
    return _compaction(rows[0]) if rows else None


def _find_compaction(db: Connection, session: str, head: str | None) -> None:
    """Point the session to the newest compaction of the branch that ends at ``head``."""
    rows = db.rows("compaction_on_path", session=session, head=head)
    db.rows("set_compaction", session=session, compaction=rows[0][0] if rows else None)


def _load(db: Connection, op: SessionLoad) -> StoredSession | None:
    rows = db.rows("read", session=op.session)
    if not rows:
        return None
    epoch, dialect, head, turn = rows[0]
    current = None if op.full else _current(db, op.session)
    if op.full:
        entries = [_entry(row) for row in db.rows("all", session=op.session)]
    else:
        after = None if current is None else current.after
        found = {e.id: e for e in map(_entry, db.rows("path", session=op.session, head=head, after=after))}
        if current is not None:
            ids = _json(list(viewed_ids(current)))
            found |= {e.id: e for e in map(_entry, db.rows("by_id", session=op.session, ids=ids))}
        entries = sorted(found.values(), key=lambda e: e.seq)
    return StoredSession(
        id=op.session,
        epoch=epoch,
        dialect=dialect,
        head=head,
        entries=tuple(entries),
        compaction=current,
        turn=json.loads(turn) if turn is not None else None,
    )


def _fork(db: Connection, op: SessionFork) -> None:
    rows = db.rows("read", session=op.session)
    if not rows:
        raise unknown(op.session)
    _, dialect, head, _ = rows[0]
    if op.at is not None:
        _seq_of(db, op.session, op.at)
        head = op.at
    if not db.rows("create", session=op.new, dialect=dialect, at=op.at_time.isoformat(), epoch=0):
        raise StoreError(f"session {op.new!r} exists; fork into another id")
    path = [_entry(row) for row in db.rows("path", session=op.session, head=head, after=None)]
    ids = {entry.id for entry in path}
    made = [_compaction(row) for row in db.rows("compactions", session=op.session)]
    kept = [each for each in made if each.after is None or each.after in ids]
    seq = max([entry.seq for entry in path] + [each.seq for each in kept] + [0])
    if path:
        db.many("insert_entry", [_row(op.new, entry) for entry in path])
    if kept:
        db.many("insert_compaction", [_compaction_row(op.new, each) for each in kept])
    db.rows("advance", session=op.new, head=head, seq=seq)
    _find_compaction(db, op.new, head)
