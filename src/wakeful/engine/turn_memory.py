"""Memory in the turn: what is recalled before it, and what it leaves behind.

Rules of the file:

- Every row is named by its message's entry id and the turn's own time, so a turn that is finished twice after a crash
  writes the same rows.
- Facts are extracted by the memory, from the episodes; nothing is ever cut out of the answer.
- What tools returned is of low trust: it can be found again and never becomes a rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from wakeful.assembly.context import AssembledContext
from wakeful.assembly.hydrate import DUE, due_lines
from wakeful.assembly.jit import HYDRATE_CONTEXT
from wakeful.conversation import Entry
from wakeful.dialects.protocol import Dialect, Text, ToolResult, ToolUse
from wakeful.engine.hooks import TurnInfo
from wakeful.engine.parts import TurnContext
from wakeful.engine.schedule import NapCadence
from wakeful.engine.session import Session
from wakeful.ids import milliseconds_of
from wakeful.memory import reminders
from wakeful.memory.layers import note
from wakeful.needs import Call, Flow
from wakeful.records import MemoryScope, Turn
from wakeful.turn.states import TurnState

RECALLED = 8
"""Memories that a turn is given, at most."""

BUDGET = 1_500
"""Tokens of the recalled text, wrappers included."""

LAYERS = ("semantic", "episodic", "procedural", "prospective")
"""Layers that a turn recalls from; the working layer repeats what its own session still shows."""

RESULT_CHARACTERS = 2_000
"""Of a dropped tool result, how much is kept as an episode; the archive holds it whole."""

LOOKING_BACK = (HYDRATE_CONTEXT.name, "recall_history")
"""Tools of ours by which a model looks at what was said."""


class MemoryLink:
    """A memory at work for one scope."""

    def __init__(self, memory: Any, scope: MemoryScope, *, naps: NapCadence | None = None) -> None:
        self.flows = memory.flows
        self._scope = scope
        self._naps = naps if naps is not None else NapCadence()

    def provide(self, query: str, info: TurnInfo) -> Flow[TurnContext | None]:
        """Recall for a turn, and claim the reminders that are due."""
        del info
        if not query.strip():
            return None
        options = {"k": RECALLED, "budget": BUDGET, "layers": LAYERS}
        found = yield Call(self.flows.hydrate, (query, self._scope), options)
        claim = {"query": query, "settings": self.flows.writing}
        due: tuple[reminders.Due, ...] = yield Call(reminders.due, (self._scope,), claim)
        blocks = [found.context] if found.entries_count else []
        if due:
            blocks.append("\n".join((DUE, *due_lines(due))))
        if not blocks:
            return None
        return TurnContext(
            turn_block="\n\n".join(blocks),
            entries=found.entries_count,
            activation_log=found.activation_log,
            due=due,
        )

    def settle(self, context: TurnContext, info: TurnInfo) -> Flow[int]:
        """Settle the reminders that the turn was given."""
        del info
        settled = 0
        for each in context.due:
            settled += bool((yield Call(self.flows.ack, (self._scope, each))))
        return settled

    def episodes(self, session: Session, info: TurnInfo, state: TurnState) -> Flow[int]:
        """Write what was said, what follows from it, and the working entry of the turn."""
        entries = [entry for entry in session.memory.active if entry.turn_id == state.turn_id]
        turns = _said(entries, session.dialect, session.id)
        if not turns:
            return 0
        options = {"session": session.id}
        receipt = yield Call(self.flows.remember, (self._scope, turns, options))
        text = "\n".join(f"{turn.speaker}: {turn.text[:400]}" for turn in (turns[0], turns[-1])[: len(turns)])
        yield Call(note, (self._scope, text, self.flows.writing), {"session": session.id, "label": info.turn_id})
        return len(getattr(receipt, "episodes", ())) or len(turns)

    def dropped(self, entries: tuple[Entry, ...], session: Session, info: TurnInfo) -> Flow[int]:
        """Keep what a compaction dropped as episodes. What was written at the end of its turn is the same row."""
        del info
        said = _said(entries, session.dialect, session.id)
        if said:
            options: dict[str, Any] = {"session": session.id, "extract": False}
            yield Call(self.flows.remember, (self._scope, said, options))
        returned = _returned(entries, session.dialect, session.id)
        if returned:
            options = {"session": session.id, "extract": False, "trust": "low"}
            yield Call(self.flows.remember, (self._scope, returned, options))
        return len(said) + len(returned)

    def nap(self, info: TurnInfo) -> Flow[int]:
        """Tend the memory when enough turns have passed."""
        del info
        if not (yield from self._naps.due(self._scope)):
            return 0
        options: Mapping[str, Any] = {
            "cadence": self._naps.cadence,
            "at": None,
            "dry_run": False,
            "settings": None,
        }
        yield Call(self.flows.consolidate, (self._scope,), options)
        return 1


class AssembledProvider:
    """A context manager (``assemble``) as the provider of a turn's context."""

    def __init__(self, manager: Any, *, blocks: bool) -> None:
        self._manager = manager
        self._blocks = blocks

    def provide(self, query: str, info: TurnInfo) -> Flow[TurnContext | None]:
        """Assemble the context, once a turn."""
        options = {"query": query, "scope": info.scope, "intent_verdict": None}
        made: AssembledContext = yield Call(self._manager.assemble, (), options)
        held = made.memory_context.entries_count if made.memory_context is not None else 0
        system: Any = made.system_prompt
        if made.system_blocks:
            texts = [str(block.get("text", "")) for block in made.system_blocks]
            system = tuple(made.system_blocks) if self._blocks else "\n\n".join(texts)
        return TurnContext(
            system=system,
            turn_block=made.turn_block if made.system_blocks else None,
            entries=held,
            activation_log=made.activation_log,
            due=made.due,
            withheld=frozenset(made.withheld_tools),
        )

    def settle(self, context: TurnContext, info: TurnInfo) -> Flow[int]:
        """Settle the reminders that the turn was given."""
        parts = getattr(self._manager, "parts", None)
        if parts is None or info.scope is None:
            return 0
        settled: int = yield Call(parts.settle, (info.scope, context.due))
        return settled


def _time(turn_id: str | None) -> datetime | None:
    """When a turn began, read from its id."""
    moment = milliseconds_of(turn_id.removeprefix("t-")) if turn_id else None
    return datetime.fromtimestamp(moment / 1000, UTC) if moment is not None else None


def _said(entries: Sequence[Entry], dialect: Dialect, session: str) -> list[Turn]:
    """Texts of user and assistant."""
    turns = []
    for entry in (part for each in entries for part in each.as_it_came()):
        view = dialect.read(entry.message)
        text = "\n".join(block.text for block in view.blocks if isinstance(block, Text)).strip()
        if text and view.role in ("user", "assistant"):
            turns.append(Turn(text, speaker=view.role, at=_time(entry.turn_id), session=session, ref=entry.id))
    return turns


def _returned(entries: Sequence[Entry], dialect: Dialect, session: str) -> list[Turn]:
    """Heads of tool results, but of those that only looked back: what they gave is remembered already."""
    turns = []
    parts = [part for each in entries for part in each.as_it_came()]
    views = [(entry, dialect.read(entry.message).blocks) for entry in parts]
    own = {b.id for _, blocks in views for b in blocks if isinstance(b, ToolUse) and b.name in LOOKING_BACK}
    for entry, blocks in views:
        for block in blocks:
            if isinstance(block, ToolResult) and block.text.strip() and block.call_id not in own:
                text = block.text[:RESULT_CHARACTERS]
                ref = f"{entry.id}:{block.call_id}"
                turns.append(Turn(text, speaker="tool", at=_time(entry.turn_id), session=session, ref=ref))
    return turns
