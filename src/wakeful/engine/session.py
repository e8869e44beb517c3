"""A session: one conversation, its place in a store, and the right to write it.

Rules of the file:

- Without a store a session lives in the process. With one, what a turn appends and the turn's state are written in one
  transaction, by the session's one writer; a writer that was overtaken raises ``StaleWriter`` and keeps nothing.
- The store keeps messages as they came. Neighbours that a format wants merged are merged when read, by one rule
  (``extend``), so a reload gives the same view.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wakeful.conversation import AgentMemory, Entry
from wakeful.dialects.protocol import Dialect
from wakeful.engine.stream import UsageEvent
from wakeful.engine.trace import NO_SPAN, Span
from wakeful.errors import InputError
from wakeful.ids import content_id
from wakeful.needs import Flow, now, run
from wakeful.ops_session import (
    Claimed,
    SessionAppend,
    SessionClaim,
    SessionCompact,
    SessionLoad,
    SessionMoveHead,
    SessionOp,
    SessionUndo,
    StoredCompaction,
    StoredEntry,
    StoredSession,
)
from wakeful.turn.states import TurnState

REPAIRED = (
    "No result: this call was interrupted before it was answered. It may have taken effect; check before repeating it."
)


@dataclass(slots=True)
class Session:
    """A conversation as this process holds it. Made by ``Agent.session``; changed by turns, one at a time."""

    id: str
    dialect: Dialect
    durable: bool = False
    """Whether a store keeps it."""
    memory: AgentMemory = field(default_factory=AgentMemory)
    epoch: int | None = None
    turn: TurnState | None = None
    """The turn that runs, waits for approval, or was interrupted."""
    busy: bool = False
    """A turn of this process runs."""
    settled: bool = True
    """Everything that the last turn did is written, and only its result is left to be told."""
    before: AgentMemory | None = None
    """The conversation as it was before the last compaction, for ``undo``."""
    made: frozenset[str] = frozenset()
    """Ids of shown entries that compactions made (summaries): the store keeps them in views only."""
    compactor: Any = None
    """The agent's compactor, bound to this session."""
    gauge: dict[str, Any] = field(default_factory=dict)
    """Numbers of the last look at the window: tokens, window, prompt_tokens."""
    succeeded: set[str] = field(default_factory=set)
    """Tools that returned without an error in this process; no store keeps it."""
    span: Span = NO_SPAN
    """The running turn's span."""
    internal: list[UsageEvent] = field(default_factory=list)
    """Internal model calls that the running turn has not reported yet."""
    _sent: list[Any] = field(default_factory=list)
    _sent_of: AgentMemory | None = None

    def messages(self) -> tuple[Any, ...]:
        """The active branch's messages, oldest first."""
        if self._sent_of is not self.memory:
            self._sent = self.memory.history()
            self._sent_of = self.memory
        return tuple(self._sent)

    def append(self, entries: Sequence[Entry]) -> None:
        """Append entries to the conversation in the process."""
        cached = self._sent_of is self.memory
        before = self.memory
        self.memory = extend(self.memory, entries, self.dialect)
        if cached and len(self.memory.active) == len(before.active) + len(entries):
            self._sent.extend(entry.message for entry in entries)
            self._sent_of = self.memory

    def stored(self, entries: Sequence[Entry]) -> SessionOp:
        """Give the operation that keeps the entries."""
        assert self.epoch is not None
        return SessionAppend(
            session=self.id,
            epoch=self.epoch,
            entries=tuple(
                StoredEntry(id=e.id, message=self.dialect.dumps(e.message), turn_id=e.turn_id, pinned=e.pinned)
                for e in entries
            ),
        )


def extend(memory: AgentMemory, entries: Iterable[Entry], dialect: Dialect) -> AgentMemory:
    """Append entries; in a format whose roles alternate, a user's message joins the one before it."""
    for entry in entries:
        last = memory.active[-1] if memory.active else None
        if dialect.facts.alternates and last is not None and _same_side(dialect, last.message, entry.message):
            parts = (*(last.parts or (replace(last, parent_id=last.parent_id),)), entry)
            merged = dialect.merge([last.message, entry.message])
            joined = Entry(last.id, merged, last.parent_id, entry.turn_id, last.pinned or entry.pinned, None, parts)
            memory = memory.with_branch([*memory.active[:-1], joined])
        else:
            memory = memory.add_message(entry.message, entry.id, turn_id=entry.turn_id, pinned=entry.pinned)
    return memory


def _same_side(dialect: Dialect, first: Any, second: Any) -> bool:
    return dialect.read(first).role in ("user", "tool") and dialect.read(second).role in ("user", "tool")


def reply_entries(entry_id: str, message: Any, turn_id: str) -> list[Entry]:
    """Make the entries of a reply: one, or one an item where a reply is several items."""
    if isinstance(message, tuple):
        return [Entry(f"{entry_id}.{i}", item, None, turn_id) for i, item in enumerate(message)]
    return [Entry(entry_id, message, None, turn_id)]


def result_entries(
    dialect: Dialect, entry_id: str, results: Sequence[tuple[str, str, str, bool]], turn_id: str
) -> list[Entry]:
    """Make the entries of a batch of results ``(call id, text, name, error)``: one message where the format wants it."""
    answers = [dialect.answer(call_id, text, name=name, error=error) for call_id, text, name, error in results]
    if dialect.facts.results_in_user:
        message = answers[0] if len(answers) == 1 else dialect.merge(answers)
        return [Entry(entry_id, message, None, turn_id)]
    return [Entry(f"{entry_id}.{i}", answer, None, turn_id) for i, answer in enumerate(answers)]


# --- the store -------------------------------------------------------------------------------------------------------


def claim(session: Session) -> Flow[None]:
    """Become the session's writer and hold its newest state. A session that this process still owns costs one look."""
    if not session.durable:
        return
    moment = yield from now()
    op = SessionClaim(session=session.id, dialect=session.dialect.name, at=moment, epoch=session.epoch)
    (claimed,) = yield from run(op, store="session")
    assert isinstance(claimed, Claimed)
    if claimed.fresh:
        return
    (stored,) = yield from run(SessionLoad(session=session.id), store="session")
    session.epoch = claimed.epoch
    session.before = None
    session.succeeded.clear()
    load(session, stored)


def load(session: Session, stored: StoredSession | None) -> None:
    """Read what the store gave: the compacted view of the conversation, and the turn's state."""
    if stored is None:
        session.memory, session.turn = AgentMemory(), None
        return
    if stored.dialect != session.dialect.name:
        raise InputError(
            f"session {session.id!r} holds {stored.dialect} messages; this agent's model speaks {session.dialect.name}"
        )
    _show(session, stored)
    session.turn = TurnState.load(stored.turn) if stored.turn is not None else None


def _show(session: Session, stored: StoredSession) -> None:
    session.memory = view(stored, session.dialect)
    rows = {entry.id for entry in stored.entries}
    session.made = frozenset(entry.id for entry in session.memory.active if entry.id not in rows)


def view(stored: StoredSession, dialect: Dialect) -> AgentMemory:
    """Give the conversation as the model is shown it."""
    rows = {entry.id: entry for entry in stored.entries}
    memory = AgentMemory()
    if stored.compaction is not None:
        memory = memory.with_branch([_viewed(item, rows, dialect) for item in stored.compaction.view])
    return extend(memory, [_entry(rows[each], dialect) for each in _path(stored, rows)], dialect)


def _path(stored: StoredSession, rows: Mapping[str, StoredEntry]) -> list[str]:
    path: list[str] = []
    at = stored.head
    stop = stored.compaction.after if stored.compaction is not None else None
    while at is not None and at != stop and at in rows:
        path.append(at)
        at = rows[at].parent_id
    return path[::-1]


def _entry(row: StoredEntry, dialect: Dialect) -> Entry:
    return Entry(row.id, dialect.loads(row.message), row.parent_id, row.turn_id, row.pinned)


def _viewed(item: Mapping[str, Any], rows: Mapping[str, StoredEntry], dialect: Dialect) -> Entry:
    entry_id = item["id"]
    pinned = item.get("pinned", False)
    parts = tuple(_entry(rows[each], dialect) for each in item.get("parts", ()) if each in rows)
    if "message" not in item:
        return replace(_entry(rows[entry_id], dialect), pinned=pinned)
    message = dialect.loads(item["message"])
    row = rows.get(entry_id)
    original = dialect.loads(row.message) if row is not None and not parts else None
    return Entry(entry_id, message, None, item.get("turn_id"), pinned, original, parts)


def replace_memory(session: Session, memory: AgentMemory) -> None:
    """Take over what a compactor made of the conversation."""
    before = session.memory
    fresh = {e.id for e in memory.active if e.id not in before.entries}
    session.made = frozenset(fresh | {e.id for e in memory.active if e.id in session.made})
    session.before, session.memory = before, memory


def compaction_op(session: Session, before: AgentMemory, meta: Mapping[str, Any]) -> SessionOp:
    """Give the operation that keeps a compaction: what is shown from now on, and what no longer is."""
    assert session.epoch is not None
    made = session.made
    items = []
    for entry in session.memory.active:
        item: dict[str, Any] = {"id": entry.id}
        if entry.pinned:
            item["pinned"] = True
        if entry.original is not None or entry.parts or entry.id in made:
            item["message"] = session.dialect.dumps(entry.message)
            item["turn_id"] = entry.turn_id
            if entry.parts:
                item["parts"] = list(entry.ids)
        items.append(item)
    kept = {each for entry in session.memory.active for each in entry.ids}
    covered = [each for entry in before.active for each in entry.ids if each not in kept]
    head = before.active[-1].ids[-1] if before.active else None
    numbers = {k: v for k, v in meta.items() if isinstance(v, str | int | float | bool)}
    return SessionCompact(
        session=session.id,
        epoch=session.epoch,
        compaction=StoredCompaction(
            id=content_id(json.dumps(items), str(head), prefix="c-"),
            after=head,
            view=tuple(items),
            covered=tuple(covered),
            meta=numbers,
        ),
    )


def undo(session: Session) -> Flow[bool]:
    """Take the last compaction back: what it removed is shown again, what came since stays. False: there was none."""
    if session.durable:
        assert session.epoch is not None
        op = SessionUndo(session=session.id, epoch=session.epoch)
        done, stored = yield from run(op, SessionLoad(session=session.id), store="session")
        if done:
            _show(session, stored)
            session.before = None
        return bool(done)
    if session.before is None:
        return False
    known = session.before.entries
    later = [e for e in session.memory.active if e.id not in known and e.id not in session.made]
    session.memory = extend(session.before, later, session.dialect)
    session.made = frozenset(session.made & set(session.memory.entries))
    session.before = None
    return True


def move_head(session: Session, at: str | None) -> Flow[None]:
    """Go on from an earlier entry; what followed it stays as another branch."""
    if session.durable:
        assert session.epoch is not None
        op = SessionMoveHead(session=session.id, epoch=session.epoch, head=at)
        _, stored = yield from run(op, SessionLoad(session=session.id), store="session")
        _show(session, stored)
    else:
        session.memory = session.memory.fork(at)
    session.before = None
    session.succeeded.clear()


def repairs(session: Session) -> list[Entry]:
    """Give the entries that answer calls which nothing will answer; none while a turn is open."""
    if session.turn is not None and not session.turn.terminal:
        return []
    open_calls = dangling(session.dialect, session.memory)
    if not open_calls:
        return []
    results = [(call_id, REPAIRED, name, True) for call_id, name in open_calls]
    entry_id = content_id(session.id, *(call_id for call_id, _ in open_calls), prefix="r-")
    return result_entries(session.dialect, entry_id, results, "")


def dangling(dialect: Dialect, memory: AgentMemory) -> list[tuple[str, str]]:
    """Find the calls of the conversation's last round that have no result: ``(call id, tool name)``."""
    from wakeful.dialects.protocol import ToolResult, ToolUse

    answered: set[str] = set()
    found: list[tuple[str, str]] = []
    for entry in reversed(memory.active):
        blocks = dialect.read(entry.message).blocks
        results = [each.call_id for each in blocks if isinstance(each, ToolResult) and not each.server]
        calls = [(each.id, each.name) for each in blocks if isinstance(each, ToolUse) and not each.server]
        if calls:
            found = [each for each in calls if each[0] not in answered] + found
        elif not results:
            break
        answered.update(results)
    return found
