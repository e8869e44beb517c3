"""A session between turns: what was said, how full the window is, and the ways to change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from wakeful.compaction.compactor import CompactContext
from wakeful.conversation import AgentMemory, Entry
from wakeful.dialects import get
from wakeful.engine.agent_answers import AgentAnswers
from wakeful.engine.compacting import compact_flow, for_session
from wakeful.engine.drive import adrive, drive
from wakeful.engine.held import HeldSessions
from wakeful.engine.hooks import TurnInfo
from wakeful.engine.parts import Parts
from wakeful.engine.session import Session, claim, compaction_op, load, move_head, replace_memory, undo
from wakeful.errors import ConfigError, NotFound
from wakeful.ids import time_id
from wakeful.needs import Flow, now, run
from wakeful.ops_session import SessionFork, SessionLoad
from wakeful.turn.effects import CompactInfo
from wakeful.turn.states import TurnState


class SessionHandle:
    """A session of an agent. Looking at one reads the store and takes nothing over; changing one makes this agent its
    writer. Verbs with ``a`` before their name are the awaited forms."""

    def __init__(
        self, id: str, parts: Parts, held: HeldSessions, answers: AgentAnswers, clock: Callable[[], datetime]
    ) -> None:
        self.id = id
        self._parts = parts
        self._held = held
        self._answers = answers
        self._clock = clock

    def messages(self) -> tuple[Any, ...]:
        """Give the conversation as the model is shown it, oldest first."""
        return self._do(self._view(lambda session: session.messages()))  # type: ignore[no-any-return]

    async def amessages(self) -> tuple[Any, ...]:
        """Give the conversation, awaited."""
        return await self._ado(self._view(lambda session: session.messages()))  # type: ignore[no-any-return]

    def memory(self) -> AgentMemory:
        """Give the conversation as entries."""
        return self._do(self._view(lambda session: session.memory))  # type: ignore[no-any-return]

    def history(self) -> list[Any]:
        """Give every message that was said on the active branch, compacted or not."""
        return self._do(self._history())  # type: ignore[no-any-return]

    def turn(self) -> TurnState | None:
        """Give the open turn: one that waits for approval or was interrupted."""
        state = self._do(self._view(lambda session: session.turn))
        return state if state is not None and not state.terminal else None

    def gauge(self) -> Mapping[str, Any]:
        """Give the numbers of the last look at the window: tokens, window, prompt_tokens, messages."""
        return dict(self._held.get(self.id)[0].gauge)

    def append(self, messages: Sequence[Any]) -> tuple[str, ...]:
        """Append messages without asking the model. Give their ids."""
        return self._do(self._append(messages))  # type: ignore[no-any-return]

    async def aappend(self, messages: Sequence[Any]) -> tuple[str, ...]:
        """Append messages, awaited."""
        return await self._ado(self._append(messages))  # type: ignore[no-any-return]

    def compact(self, focus: str | None = None) -> Mapping[str, Any]:
        """Compact now. ``focus``: what a digest should dwell on. Give the compactor's meta."""
        return self._do(self._compact(focus))  # type: ignore[no-any-return]

    async def acompact(self, focus: str | None = None) -> Mapping[str, Any]:
        """Compact now, awaited."""
        return await self._ado(self._compact(focus))  # type: ignore[no-any-return]

    def undo(self) -> bool:
        """Take the last compaction back; what was said since stays. False: there was none."""
        return self._do(self._claimed(undo))  # type: ignore[no-any-return]

    async def aundo(self) -> bool:
        """Take the last compaction back, awaited."""
        return await self._ado(self._claimed(undo))  # type: ignore[no-any-return]

    def rewind(self, to: str | None) -> None:
        """Go on from an earlier entry (None: from nothing); what followed it stays as another branch."""
        self._do(self._claimed(lambda session: move_head(session, to)))

    def fork(self, new: str, at: str | None = None) -> SessionHandle:
        """Copy the conversation up to an entry (None: all) into another session. The two go separate ways."""
        self._do(self._fork(new, at))
        return SessionHandle(new, self._parts, self._held, self._answers, self._clock)

    async def afork(self, new: str, at: str | None = None) -> SessionHandle:
        """Copy the conversation, awaited."""
        await self._ado(self._fork(new, at))
        return SessionHandle(new, self._parts, self._held, self._answers, self._clock)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _do(self, flow: Flow[Any]) -> Any:
        return drive(flow, self._answers.answer, clock=self._clock)

    async def _ado(self, flow: Flow[Any]) -> Any:
        return await adrive(flow, self._answers.aanswer, clock=self._clock)

    def _claimed(self, then: Callable[[Session], Flow[Any]]) -> Flow[Any]:
        session, _ = self._held.take(self.id)
        try:
            yield from claim(session)
            return (yield from then(session))
        finally:
            session.busy = False

    def _view(self, look: Callable[[Session], Any]) -> Flow[Any]:
        session, _ = self._held.get(self.id)
        if session.busy or not session.durable:
            return look(session)
        seen = Session(self.id, session.dialect, durable=True)
        (stored,) = yield from run(SessionLoad(session=self.id), store="session")
        load(seen, stored)
        return look(seen)

    def _history(self) -> Flow[list[Any]]:
        session, _ = self._held.get(self.id)
        if not session.durable:
            entries = [each for entry in session.memory.active for each in entry.as_it_came()]
            return [entry.message for entry in entries]
        (stored,) = yield from run(SessionLoad(session=self.id, full=True), store="session")
        if stored is None:
            return []
        dialect = get(stored.dialect)
        rows = {entry.id: entry for entry in stored.entries}
        at, path = stored.head, []
        while at is not None:
            path.append(dialect.loads(rows[at].message))
            at = rows[at].parent_id
        return path[::-1]

    def _append(self, messages: Sequence[Any]) -> Flow[tuple[str, ...]]:
        def work(session: Session) -> Flow[tuple[str, ...]]:
            moment = yield from now()
            base = time_id(int(moment.timestamp() * 1000))
            entries = [
                Entry(f"m-{base}.{i}", session.dialect.note(each) if isinstance(each, str) else each)
                for i, each in enumerate(messages)
            ]
            if entries and session.durable:
                yield from run(session.stored(entries), store="session")
            session.append(entries)
            return tuple(entry.id for entry in entries)

        return self._claimed(work)

    def _compact(self, focus: str | None) -> Flow[Mapping[str, Any]]:
        def work(session: Session) -> Flow[Mapping[str, Any]]:
            parts = self._parts
            tokens = parts.prompt_tokens(parts.system, parts.specs) if parts.window else 0
            ctx = CompactContext(model=parts.model.name, window=parts.window, prompt_tokens=tokens, mid_round=False)
            info = CompactInfo(turn_id="", iteration=0, mid_round=False, harder=True)
            turn = TurnInfo(session=session.id, turn_id="", iteration=0, scope=parts.scope)
            compactor = for_session(parts.compactor, session, reserve=parts.reserve, focus=focus)
            before = session.memory
            meta = yield from compact_flow(session, compactor, parts.hooks, info, ctx, turn)
            if meta["compacted"]:
                replace_memory(session, meta["memory"])
                meta = {key: value for key, value in meta.items() if key != "memory"}
                if session.durable:
                    yield from run(compaction_op(session, before, meta), store="session")
            return meta

        return self._claimed(work)

    def _fork(self, new: str, at: str | None) -> Flow[None]:
        session, _ = self._held.get(self.id)
        if session.durable:
            moment = yield from now()
            yield from run(SessionFork(session=self.id, new=new, at=at, at_time=moment), store="session")
            return
        other, _ = self._held.get(new)
        if other.memory.active:
            raise ConfigError(f"session {new!r} exists; fork into another id")
        if at is not None and at not in session.memory.entries:
            raise NotFound(f"no entry {at!r} in session {self.id!r}")
        active = session.memory.fork(at).active if at is not None else session.memory.active
        other.memory = AgentMemory().with_branch(active)
        other.made = session.made
