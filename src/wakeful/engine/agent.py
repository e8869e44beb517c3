"""An agent: a model, tools, memory and a compactor, running turns over sessions.

```python
agent = Agent("anthropic/claude-sonnet-5", tools=[look_up], compactor=WindowManager(), sessions="sqlite:///agent.db")
print(agent.run("Where is my parcel?", session="ana").text)
```

``run`` folds the stream, ``stream_text`` filters it, ``stream`` is the stream; ``arun``, ``astream``, ``astream_text``
are the awaited forms.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from datetime import datetime
from functools import partial
from typing import Any

from wakeful import dialects
from wakeful.engine.agent_answers import AgentAnswers
from wakeful.engine.agent_config import AgentConfig
from wakeful.engine.drive import utc_now
from wakeful.engine.handle import SessionHandle
from wakeful.engine.held import HeldSessions
from wakeful.engine.inbox import Inbox
from wakeful.engine.parts import Parts
from wakeful.engine.resolve import resolve_parts
from wakeful.engine.session import Session, claim, repairs
from wakeful.engine.shells import astream_turn, stream_turn
from wakeful.engine.stream import DoneEvent, ErrorEvent, RunResult, TextFilter, TurnEvent
from wakeful.engine.trace import NO_SPAN, PROVIDERS, turn_span
from wakeful.engine.turn_base import Steps
from wakeful.engine.turns import TurnFlow
from wakeful.errors import ConfigError, TurnError
from wakeful.ids import time_id
from wakeful.needs import Run, now
from wakeful.records import MemoryScope
from wakeful.turn import events as ev
from wakeful.turn.machine import begin


class Agent:
    """Run turns. Safe to share between threads; one session runs one turn at a time."""

    def __init__(
        self,
        model: Any = None,
        *,
        tools: Sequence[Any] = (),
        system: str | None = None,
        memory: Any = None,
        scope: MemoryScope | str | None = None,
        compactor: Any = None,
        hooks: Any = (),
        approve: Callable[..., Any] | None = None,
        sessions: Any = None,
        context: Any = None,
        models: Mapping[str, Any] | None = None,
        archive: Any = None,
        catalog: Any = None,
        meter: Any = None,
        tracer: Any = None,
        clock: Callable[[], datetime] = utc_now,
        config: AgentConfig | None = None,
        **options: Any,
    ) -> None:
        """Make an agent. What can be stored is in ``AgentConfig``; its fields may be given here as ``options``.

        ``model``: what ``coerce_model`` takes. ``compactor``: an object, or a registered name with its options.
        ``sessions``: a session store or its URL; None keeps sessions in the process. ``models``: models of internal roles
        (``summarizer``, ``extractor``); the main one otherwise. ``approve``: asked about parked calls; without it such a
        turn stops with ``awaiting_approval`` and goes on with ``resume``. ``tracer``: an OpenTelemetry tracer; None: the
        global one; False: none.
        """
        if isinstance(compactor, str | tuple | list):
            options, compactor = {**options, "compactor": compactor}, None
        if config is not None and options:
            raise ConfigError(f"give config or single options, not both: {', '.join(sorted(options))}")
        self.config = config if config is not None else AgentConfig.of("Agent", options)
        self.parts: Parts = resolve_parts(
            self.config,
            model=model,
            tools=tools,
            system=system,
            memory=memory,
            scope=scope,
            compactor=compactor,
            hooks=hooks,
            approve=approve,
            context=context,
            archive=archive,
            catalog=catalog,
            meter=meter,
        )
        self._store = _session_store(sessions)
        self._answers = AgentAnswers(self.parts, store=self._store, archive=archive, memory=memory, models=models or {})
        self._tracer = tracer
        self.clock = clock
        self._held = HeldSessions(dialects.get(self.parts.model.dialect), durable=self._store is not None)

    # --- running -----------------------------------------------------------------------------------------------------

    def run(self, message: Any = None, *, session: str = "main") -> RunResult:
        """Run a turn to its end. Raises what made it fail (a ``ModelError`` as it came, else ``TurnError``).

        ``message``: a text, a native message or a list of them; None goes on with the conversation as it stands.
        """
        return _fold(self.stream(message, session=session), session)

    def stream(self, message: Any = None, *, session: str = "main") -> Iterator[TurnEvent]:
        """Run a turn, giving its events as they come; the last is ``DoneEvent``. A failure is an ``ErrorEvent``."""
        return self._stream(session, lambda held: self._begin(held, message))

    def stream_text(self, message: Any = None, *, session: str = "main") -> Iterator[str]:
        """Run a turn, giving the answer's text as it comes. Raises what made it fail."""
        shown = TextFilter()
        with closing(self.stream(message, session=session)) as events:  # type: ignore[type-var]  # a generator
            for event in events:
                text = shown.feed(event)
                if text:
                    yield text
                _raise_for(event)

    async def arun(self, message: Any = None, *, session: str = "main") -> RunResult:
        """Run a turn to its end, awaited."""
        async with aclosing(self.astream(message, session=session)) as events:  # type: ignore[type-var]
            return await _afold(events, session)

    def astream(self, message: Any = None, *, session: str = "main") -> AsyncIterator[TurnEvent]:
        """Run a turn awaited, giving its events as they come."""
        return self._astream(session, lambda held: self._begin(held, message))

    async def astream_text(self, message: Any = None, *, session: str = "main") -> AsyncIterator[str]:
        """Run a turn awaited, giving the answer's text as it comes."""
        shown = TextFilter()
        async with aclosing(self.astream(message, session=session)) as events:  # type: ignore[type-var]
            async for event in events:
                text = shown.feed(event)
                if text:
                    yield text
                _raise_for(event)

    def resume(self, session: str = "main", decisions: Mapping[str, bool | str] | None = None) -> Iterator[TurnEvent]:
        """Go on with a turn that was interrupted or waits for approval.

        ``decisions``: by call id, True to run it, False or a reason to reject it; what is left out is rejected. Raises
        ``TurnError`` when the session has no open turn.
        """
        return self._stream(session, lambda held: self._resume(held, decisions))

    def aresume(
        self, session: str = "main", decisions: Mapping[str, bool | str] | None = None
    ) -> AsyncIterator[TurnEvent]:
        """Go on with a turn, awaited."""
        return self._astream(session, lambda held: self._resume(held, decisions))

    def steer(self, message: Any, *, session: str = "main") -> None:
        """Give the running turn a message; it is read before the next model call. Safe from any thread."""
        self._held.get(session)[1].steer(message)

    def cancel(self, *, session: str = "main") -> None:
        """End the running turn now; open calls are answered and the conversation stays valid. Safe from any thread."""
        held, inbox = self._held.get(session)
        if held.busy:
            inbox.cancel()

    def session(self, id: str = "main") -> SessionHandle:
        """Look at a session and change it between turns: history, fork, undo, compact."""
        return SessionHandle(id, self.parts, self._held, self._answers, self.clock)

    def close(self) -> None:
        """Give back what the session store holds."""
        close = getattr(self._store, "close", None)
        if close is not None:
            close()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _stream(self, session_id: str, make: Callable[[tuple[Session, Inbox]], Steps]) -> Iterator[TurnEvent]:
        held = self._held.take(session_id)
        steps = make(held)
        answer = partial(self._answers.answer, session=held[0])
        try:
            yield from stream_turn(
                steps, self.parts.model, answer, held[1], parallel=self.parts.parallel, clock=self.clock
            )
        finally:
            held[0].busy = False

    async def _astream(
        self, session_id: str, make: Callable[[tuple[Session, Inbox]], Steps]
    ) -> AsyncIterator[TurnEvent]:
        held = self._held.take(session_id)
        steps = make(held)
        answer = partial(self._answers.aanswer, session=held[0])
        events = astream_turn(steps, self.parts.model, answer, held[1], parallel=self.parts.parallel, clock=self.clock)
        try:
            async with aclosing(events):  # type: ignore[type-var]  # an async generator
                async for event in events:
                    yield event
        finally:
            held[0].busy = False

    def _begin(self, held: tuple[Session, Inbox], message: Any) -> Steps:
        session, inbox = held
        moment = yield from now()
        state = begin(
            f"t-{time_id(int(moment.timestamp() * 1000))}",
            limits=self.parts.limits,
            budget=self.config.task_budget(),
        )
        yield from self._guarded(session, self._turn(session, inbox, state, ev.Begin(_as_messages(message)), None))

    def _resume(self, held: tuple[Session, Inbox], decisions: Mapping[str, bool | str] | None) -> Steps:
        session, inbox = held
        yield from self._guarded(session, self._turn(session, inbox, None, ev.Resume(), decisions))

    def _turn(
        self,
        session: Session,
        inbox: Inbox,
        state: Any,
        event: ev.Event,
        decisions: Mapping[str, bool | str] | None,
    ) -> Steps:
        yield from claim(session)
        open_turn = session.turn if session.turn is not None and not session.turn.terminal else None
        if state is None:
            if open_turn is None:
                raise TurnError(f"session {session.id!r} has no turn to go on with")
            state = open_turn
        elif open_turn is not None:
            yield from TurnFlow(self.parts, session, inbox, open_turn).settle()
        entries = repairs(session)
        if entries:
            if session.durable:
                yield Run((session.stored(entries),), store="session")
            session.append(entries)
        span = turn_span(
            self._tracer,
            self.parts.name,
            {
                "gen_ai.agent.name": self.parts.name,
                "gen_ai.conversation.id": session.id,
                "gen_ai.request.model": self.parts.model.name,
                "gen_ai.provider.name": PROVIDERS.get(self.parts.model.dialect, self.parts.model.dialect),
            },
        )
        flow = TurnFlow(self.parts, session, inbox, state, span)
        session.span = span
        try:
            yield from flow.run(event, decisions)
        finally:
            totals = flow.state.totals
            span.set(gen_ai__usage__input_tokens=totals.input_tokens, gen_ai__usage__output_tokens=totals.output_tokens)
            span.end(flow.state.error_code or (None if session.settled else "interrupted"))
            session.span = NO_SPAN

    def _guarded(self, session: Session, steps: Steps) -> Steps:
        """Forget what a broken-off turn held of a stored session, so that the next one reads what was really written."""
        session.settled = False
        try:
            yield from steps
        except BaseException:
            if session.durable and not session.settled:
                session.epoch = None
                session.turn = None
            raise


def _as_messages(message: Any) -> tuple[Any, ...]:
    if message is None:
        return ()
    return tuple(message) if isinstance(message, list | tuple) else (message,)


def _session_store(sessions: Any) -> Any:
    if not isinstance(sessions, str):
        return sessions
    from wakeful.stores.sessions import open_session_store

    return open_session_store(sessions)


def _fold(events: Iterator[TurnEvent], session: str) -> RunResult:
    with closing(events):  # type: ignore[type-var]  # a generator
        for event in events:
            _raise_for(event)
            if isinstance(event, DoneEvent):
                return event.result
    raise TurnError(f"the turn of session {session!r} ended without a result")


async def _afold(events: AsyncIterator[TurnEvent], session: str) -> RunResult:
    async for event in events:
        _raise_for(event)
        if isinstance(event, DoneEvent):
            return event.result
    raise TurnError(f"the turn of session {session!r} ended without a result")


def _raise_for(event: TurnEvent) -> None:
    if isinstance(event, ErrorEvent):
        if event.cause is not None and event.code != "incomplete_batch":
            raise event.cause
        raise TurnError(f"{event.code}: {event.message}")
