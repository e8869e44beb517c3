"""Sessions in the process: the reference that the other stores are compared with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

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


@dataclass(slots=True)
class _Held:
    dialect: str
    epoch: int = 1
    head: str | None = None
    seq: int = 0
    entries: dict[str, StoredEntry] = field(default_factory=dict)
    compactions: list[StoredCompaction] = field(default_factory=list)
    turn: Mapping[str, Any] | None = None

    def path(self, head: str | None) -> Iterator[StoredEntry]:
        while head is not None:
            entry = self.entries[head]
            yield entry
            head = entry.parent_id

    def current(self) -> StoredCompaction | None:
        """The newest compaction that was made on the active branch."""
        if not self.compactions:
            return None
        on_path = {entry.id for entry in self.path(self.head)}
        return next((each for each in reversed(self.compactions) if each.after is None or each.after in on_path), None)


class InMemorySessions:
    """Sessions in a dict, under one lock."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Held] = {}
        self._lock = threading.RLock()
        self._undo: list[Callable[[], object]] = []

    def execute(self, ops: Sequence[SessionOp]) -> tuple[Any, ...]:
        """Run operations, all or nothing."""
        with self._lock:
            self._undo = []
            try:
                return tuple(self._run(op) for op in ops)
            except BaseException:
                for undo in reversed(self._undo):
                    undo()
                raise

    async def aexecute(self, ops: Sequence[SessionOp]) -> tuple[Any, ...]:
        """Run operations; nothing here blocks."""
        return self.execute(ops)

    def close(self) -> None:
        """Do nothing."""

    def _run(self, op: SessionOp) -> Any:
        match op:
            case SessionClaim():
                return self._claim(op)
            case SessionAppend():
                return self._append(op)
            case SessionSaveTurn():
                held = self._writable(op.session, op.epoch)
                self._set(held, "turn", deepcopy(op.state))
                return None
            case SessionCompact():
                return self._compact(op)
            case SessionUndo():
                return self._take_back(op)
            case SessionMoveHead():
                held = self._writable(op.session, op.epoch)
                if op.head is not None and op.head not in held.entries:
                    raise NotFound(f"session {op.session!r} has no entry {op.head!r}")
                self._set(held, "head", op.head)
                return None
            case SessionLoad():
                return self._load(op)
            case SessionFork():
                return self._fork(op)
            case SessionErase():
                held_or_none = self._sessions.pop(op.session, None)
                if held_or_none is None:
                    return False
                gone = held_or_none
                self._undo.append(lambda: self._sessions.__setitem__(op.session, gone))
                return True
            case SessionList():
                found = sorted(each for each in self._sessions if each.startswith(op.prefix))
                return tuple(each for each in found if op.after is None or each > op.after)[: op.limit]
            case _:
                assert_never(op)

    def _set(self, held: _Held, name: str, value: Any) -> None:
        before = getattr(held, name)
        setattr(held, name, value)
        self._undo.append(lambda: setattr(held, name, before))

    def _writable(self, session: str, epoch: int) -> _Held:
        held = self._sessions.get(session)
        if held is None:
            raise unknown(session)
        if held.epoch != epoch:
            raise stale(session, epoch, held.epoch)
        return held

    def _claim(self, op: SessionClaim) -> Claimed:
        held = self._sessions.get(op.session)
        if held is None:
            self._sessions[op.session] = _Held(op.dialect)
            self._undo.append(lambda: self._sessions.pop(op.session, None))
            return Claimed(epoch=1, fresh=False, created=True)
        if op.epoch == held.epoch:
            return Claimed(epoch=held.epoch, fresh=True)
        self._set(held, "epoch", held.epoch + 1)
        return Claimed(epoch=held.epoch, fresh=False)

    def _append(self, op: SessionAppend) -> tuple[StoredEntry, ...]:
        held = self._writable(op.session, op.epoch)
        stored = []
        for entry in op.entries:
            known = held.entries.get(entry.id)
            if known is not None:
                if known.message != entry.message:
                    raise StoreError(f"entry {entry.id!r} is in session {op.session!r} with another message")
                stored.append(known)
                continue
            self._set(held, "seq", held.seq + 1)
            placed = replace(entry, parent_id=held.head, seq=held.seq)
            held.entries[entry.id] = placed
            self._undo.append(lambda id=entry.id: held.entries.pop(id))  # type: ignore[misc]  # bound now
            self._set(held, "head", entry.id)
            stored.append(placed)
        return tuple(stored)

    def _compact(self, op: SessionCompact) -> None:
        held = self._writable(op.session, op.epoch)
        if op.compaction.after is not None and op.compaction.after not in held.entries:
            raise NotFound(f"session {op.session!r} has no entry {op.compaction.after!r}")
        self._set(held, "seq", held.seq + 1)
        self._set(held, "compactions", [*held.compactions, replace(deepcopy(op.compaction), seq=held.seq)])

    def _take_back(self, op: SessionUndo) -> bool:
        held = self._writable(op.session, op.epoch)
        current = held.current()
        if current is None:
            return False
        self._set(held, "compactions", [each for each in held.compactions if each is not current])
        return True

    def _load(self, op: SessionLoad) -> StoredSession | None:
        held = self._sessions.get(op.session)
        if held is None:
            return None
        current = held.current()
        if op.full:
            entries = list(held.entries.values())
        else:
            shown = [] if current is None else [held.entries[i] for i in viewed_ids(current) if i in held.entries]
            later = []
            for entry in held.path(held.head):
                if current is not None and entry.id == current.after:
                    break
                later.append(entry)
            entries = sorted({e.id: e for e in (*shown, *later)}.values(), key=lambda e: e.seq)
        return StoredSession(
            id=op.session,
            epoch=held.epoch,
            dialect=held.dialect,
            head=held.head,
            entries=tuple(entries),
            compaction=None if op.full else current,
            turn=deepcopy(held.turn),
        )

    def _fork(self, op: SessionFork) -> None:
        held = self._sessions.get(op.session)
        if held is None:
            raise unknown(op.session)
        if op.new in self._sessions:
            raise StoreError(f"session {op.new!r} exists; fork into another id")
        head = op.at if op.at is not None else held.head
        if head is not None and head not in held.entries:
            raise NotFound(f"session {op.session!r} has no entry {head!r}")
        path = sorted(held.path(head), key=lambda e: e.seq)
        ids = {entry.id for entry in path}
        kept = [each for each in held.compactions if each.after is None or each.after in ids]
        self._sessions[op.new] = _Held(held.dialect, 0, head, held.seq, {entry.id: entry for entry in path}, kept, None)
        self._undo.append(lambda: self._sessions.pop(op.new, None))
