"""What every part of a turn's flow shares: its items, its state, and calls of the user's hooks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from wakeful.engine.hooks import TurnInfo
from wakeful.engine.inbox import Inbox
from wakeful.engine.parts import Parts
from wakeful.engine.session import Session
from wakeful.engine.stream import ActivationEvent, MemoryEvent, TurnEvent
from wakeful.engine.toolrun import Job
from wakeful.engine.trace import NO_SPAN, Span
from wakeful.errors import StaleWriter
from wakeful.needs import Call, ChatRequest, Need, ToolCall
from wakeful.ops_session import SessionOp
from wakeful.turn.states import PendingCall, TurnState

logger = logging.getLogger("wakeful.turn")


@dataclass(frozen=True, slots=True)
class Emit:
    """Tell the user."""

    event: TurnEvent


@dataclass(frozen=True, slots=True)
class Stream:
    """Ask the main model and pass its reply on as it comes. Answer: ``ChatReply``, or None when cancelled."""

    request: ChatRequest


@dataclass(frozen=True, slots=True)
class StartTools:
    """Take a batch in."""

    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class NextTool:
    """Wait for the next call of the batch. Answer: ``toolrun.Finished``."""


Item: TypeAlias = Need | Emit | Stream | StartTools | NextTool
Steps: TypeAlias = Generator[Item, Any, Any]


class TurnParts:
    """The state of a turn's flow."""

    def __init__(self, parts: Parts, session: Session, inbox: Inbox, state: TurnState, span: Span = NO_SPAN) -> None:
        self.parts = parts
        self.session = session
        self.inbox = inbox
        self.state = state
        self.span = span
        self.error: BaseException | None = None
        self.cost: float | None = None
        self._ops: list[SessionOp] = []
        self._context: Any = None
        self._provisioned = False
        self._jobs: dict[str, PendingCall] = {}
        self._input_id: str | None = None
        self._dropped: tuple[Any, ...] = ()
        self._model_span: Span = NO_SPAN
        self._tool_spans: dict[str, Span] = {}

    def _info(self) -> TurnInfo:
        return TurnInfo(
            session=self.session.id,
            turn_id=self.state.turn_id,
            iteration=self.state.iteration,
            scope=self.parts.scope,
            mid_round=self.state.mid_round,
        )

    def _isolated(self, point: str, hook: Callable[..., Any], *args: Any) -> Steps:
        try:
            return (yield Call(hook, args))
        except StaleWriter:
            raise
        except Exception:
            logger.warning("a %s hook raised; the turn goes on", point, exc_info=True)
            return None

    def _prompt(self) -> tuple[Any, tuple[Any, ...]]:
        system = getattr(self._context, "system", None) or self.parts.system
        return system, self.parts.offered(getattr(self._context, "withheld", frozenset()))

    def _provision(self) -> Steps:
        self._provisioned = True
        provider = self.parts.context
        if provider is None:
            return
        span = self.span.child("wakeful.recall")
        try:
            self._context = yield from provider.provide(self._query(), self._info())
        except StaleWriter:
            raise
        except Exception as error:
            logger.warning("the turn's context could not be made", exc_info=True)
            span.end(type(error).__name__)
            yield Emit(MemoryEvent("recall", error=f"{type(error).__name__}: {error}"))
            return
        entries = getattr(self._context, "entries", 0)
        span.set(wakeful__entries=entries)
        span.end()
        if entries:
            yield Emit(ActivationEvent(entries, getattr(self._context, "activation_log", None)))

    def _query(self) -> str:
        from wakeful.dialects.protocol import Text

        texts: list[str] = []
        for entry in reversed(self.session.memory.active):
            if entry.turn_id != self.state.turn_id:
                break
            view = self.session.dialect.read(entry.message)
            if view.role == "user":
                texts.append("\n".join(block.text for block in view.blocks if isinstance(block, Text)))
        return "\n".join(reversed(texts))


def as_call(call: PendingCall) -> ToolCall:
    """Give a pending call as the model made it."""
    return ToolCall(call.id, call.name, dict(call.arguments), call.invalid)
