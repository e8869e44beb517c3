"""Carry out a turn: the flow that feeds the machine and does what it asks.

Rules of the file:

- ``TurnFlow`` yields needs, events for the user, and the few things only a shell can do (stream a reply, run tools). It
  is written once; the two shells in ``shells.py`` drive it.
- The effects before the blocking one and the state are written in one transaction, then the blocking one is begun.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from wakeful.conversation import Entry
from wakeful.engine.compacting import CompactContext, NoCompaction, compact_flow, needs_window
from wakeful.engine.hooks import Park, Refuse, Rewrite, TurnInfo
from wakeful.engine.inbox import Inbox
from wakeful.engine.parts import Parts
from wakeful.engine.session import Session, compaction_op, replace_memory, reply_entries, result_entries
from wakeful.engine.stream import (
    ActivationEvent,
    ApprovalEvent,
    CompactionEvent,
    DoneEvent,
    ErrorEvent,
    MemoryEvent,
    RetryEvent,
    RunResult,
    ToolCallEvent,
    ToolResultEvent,
    TurnEvent,
    UsageEvent,
)
from wakeful.engine.toolrun import Finished as ToolFinished
from wakeful.engine.toolrun import Job
from wakeful.engine.tools import ArgumentError, ToolContext
from wakeful.engine.trace import NO_SPAN, PROVIDERS, Span
from wakeful.errors import (
    AuthError,
    ContextOverflow,
    InvalidRequest,
    ModelError,
    Overloaded,
    RateLimited,
    StaleWriter,
    TransportError,
    TurnError,
)
from wakeful.needs import Call, ChatReply, ChatRequest, Need, Run, Sleep, ToolCall
from wakeful.ops_session import SessionOp, SessionSaveTurn
from wakeful.turn import effects as fx
from wakeful.turn import events as ev
from wakeful.turn.machine import step
from wakeful.turn.states import PendingCall, Phase, TurnState

logger = logging.getLogger("wakeful.turn")

CODES: dict[type[ModelError], str] = {
    AuthError: "auth",
    RateLimited: "rate_limit",
    Overloaded: "overloaded",
    ContextOverflow: "context_overflow",
    InvalidRequest: "invalid_request",
    TransportError: "transport",
}
"""Codes of failed model calls."""


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


class TurnFlow:
    """One turn of one session."""

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

    # --- the loop ----------------------------------------------------------------------------------------------------

    def run(self, event: ev.Event, decisions: Mapping[str, bool | str] | None = None) -> Steps:
        """Go on from ``event`` until the turn is over, or parks for approval without ``decisions``."""
        parked: tuple[PendingCall, ...] = ()
        while True:
            for message in self.inbox.take():
                self.state, _ = step(self.state, ev.Steer(message))
            self.state, effects = step(self.state, event)
            self._apply(effects)
            yield from self._save()
            last = effects[-1]
            if isinstance(last, fx.Finished | fx.Failed):
                break
            if isinstance(last, fx.Ignored):
                raise TurnError(f"the turn can't go on: {last.event} was ignored, since {last.reason}")
            if self.inbox.cancelled and self.state.phase is not Phase.FINALIZING:
                event = ev.Cancel()
                continue
            if isinstance(last, fx.AskApproval) and decisions is None and self.parts.approver is None:
                parked = last.calls
                yield Emit(ApprovalEvent(tuple(_as_call(call) for call in parked)))
                break
            event = yield from self._perform(last, decisions)
            if isinstance(last, fx.AskApproval):
                decisions = None
        yield from self._end(parked)

    def settle(self) -> Steps:
        """End a turn that nobody goes on with: answer its open calls, without asking the model or running a tool."""
        if any(call.status == "running" for call in self.state.calls):
            self.state, effects = step(self.state, ev.Resume())
            self._apply(effects)
        self.state, effects = step(self.state, ev.Cancel())
        self._apply(effects)
        self.state, effects = step(self.state, ev.MemoryWritten())
        yield from self._save()

    def _apply(self, effects: Sequence[fx.Effect]) -> None:
        dialect, turn_id = self.session.dialect, self.state.turn_id
        entries: list[Entry] = []
        for effect in effects:
            match effect:
                case fx.AppendInput(entry_id, message):
                    native = dialect.note(message) if isinstance(message, str) else message
                    entries.append(Entry(entry_id, native, None, turn_id))
                    if self._input_id is None:
                        self._input_id = entry_id
                case fx.AppendReply(entry_id, message):
                    entries.extend(reply_entries(entry_id, message, turn_id))
                case fx.AppendResults(entry_id, calls):
                    rows = [(c.id, c.outcome.text, c.name, c.outcome.error) for c in calls if c.outcome is not None]
                    entries.extend(result_entries(dialect, entry_id, rows, turn_id))
                case _:
                    pass
        if entries:
            if self.session.durable:
                self._ops.append(self.session.stored(entries))
            self.session.append(entries)

    def _save(self) -> Steps:
        self.session.turn = self.state
        if not self.session.durable:
            return
        assert self.session.epoch is not None
        data = None if self.state.phase is Phase.STOPPED else self.state.dump()
        ops, self._ops = self._ops, []
        save = SessionSaveTurn(session=self.session.id, epoch=self.session.epoch, state=data)
        yield Run((*ops, save), store="session")

    def _end(self, parked: tuple[PendingCall, ...]) -> Steps:
        state = self.state
        failed = None
        if state.phase is Phase.FAILED:
            failed = ErrorEvent(state.error_code, state.error, self.error)
            yield Emit(failed)
        stop: str = "awaiting_approval" if parked else "failed" if failed else state.stop
        result = RunResult(
            text=state.text,
            stop=stop,
            session=self.session.id,
            turn_id=state.turn_id,
            iterations=state.iteration,
            totals=state.totals,
            cost=self.cost,
            approvals=tuple(_as_call(call) for call in parked),
            error=failed,
            remaining=state.budget.remaining if state.budget else None,
        )
        yield Emit(DoneEvent(result=result))

    # --- blocking effects --------------------------------------------------------------------------------------------

    def _perform(self, effect: fx.Effect, decisions: Mapping[str, bool | str] | None) -> Steps:
        match effect:
            case fx.Provision():
                yield from self._provision()
                return ev.Provisioned()
            case fx.MaybeCompact(info):
                return (yield from self._compact(info))
            case fx.CallModel(tools=tools, thinking=thinking):
                return (yield from self._call_model(tools, thinking))
            case fx.Wait(seconds, reason):
                yield Emit(RetryEvent(reason, seconds))
                yield Sleep(seconds)
                return ev.Waited()
            case fx.CheckCalls(calls):
                return (yield from self._check(calls))
            case fx.AskApproval(calls):
                return (yield from self._ask_approval(calls, decisions))
            case fx.RunTools(calls):
                return (yield from self._run_tools(calls))
            case fx.AwaitTools():
                return (yield from self._next_tool())
            case fx.WriteMemory():
                yield from self._write_memory()
                return ev.MemoryWritten()
            case _:
                raise TurnError(f"nobody can carry out {type(effect).__name__}")

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

    def _info(self) -> TurnInfo:
        return TurnInfo(
            session=self.session.id,
            turn_id=self.state.turn_id,
            iteration=self.state.iteration,
            scope=self.parts.scope,
            mid_round=self.state.mid_round,
        )

    def _compact(self, info: fx.CompactInfo) -> Steps:
        parts, session = self.parts, self.session
        if isinstance(parts.compactor, NoCompaction):
            return ev.CompactionDone()
        sized = needs_window(parts.compactor)
        if not self._provisioned:
            yield from self._provision()
        tokens = parts.prompt_tokens(*self._prompt()) if sized else 0
        ctx = CompactContext(
            model=parts.model.name, window=parts.window, prompt_tokens=tokens, mid_round=info.mid_round
        )
        before = session.memory
        span = self.span.child("wakeful.compact", {"wakeful.mid_round": info.mid_round})
        meta = yield from compact_flow(session, parts.compactor, parts.hooks, info, ctx, self._info())
        dropped = tuple(meta.get("dropped") or ())
        if meta["compacted"]:
            replace_memory(session, meta["memory"])
            meta = {key: value for key, value in meta.items() if key != "memory"}
            if session.durable:
                self._ops.append(compaction_op(session, before, meta))
        self._note_gauge(meta, tokens)
        span.set(**{f"wakeful__{k}": v for k, v in meta.items() if isinstance(v, str | int | float | bool)})
        span.end("compaction" if meta.get("error") else None)
        if meta["compacted"] or meta.get("error"):
            yield Emit(CompactionEvent(meta))
        if dropped:
            yield from self._after_compact(meta, dropped)
        return ev.CompactionDone({k: v for k, v in meta.items() if k != "dropped"})

    def _note_gauge(self, meta: Mapping[str, Any], prompt_tokens: int) -> None:
        after = meta.get("tokens_after", meta.get("tokens_before"))
        self.session.gauge = {
            "tokens": after,
            "window": self.parts.window,
            "prompt_tokens": prompt_tokens,
            "messages": len(self.session.memory.active),
        }

    def _after_compact(self, meta: Mapping[str, Any], dropped: tuple[Any, ...]) -> Steps:
        if self.session.durable:
            ops, self._ops = self._ops, []
            yield Run(tuple(ops), store="session")
        for hook in self.parts.hooks.at("after_compact"):
            yield from self._isolated("after_compact", hook, meta, self._info())
        if self.parts.memory is not None:
            yield from self._remembered("dropped", self.parts.memory.dropped(dropped, self.session, self._info()))

    def _isolated(self, point: str, hook: Callable[..., Any], *args: Any) -> Steps:
        try:
            return (yield Call(hook, args))
        except StaleWriter:
            raise
        except Exception:
            logger.warning("a %s hook raised; the turn goes on", point, exc_info=True)
            return None

    # --- the model ---------------------------------------------------------------------------------------------------

    def _prompt(self) -> tuple[Any, tuple[Any, ...]]:
        system = getattr(self._context, "system", None) or self.parts.system
        return system, self.parts.specs

    def _request(self, tools: bool, thinking: bool) -> ChatRequest:
        parts = self.parts
        system, specs = self._prompt()
        return ChatRequest(
            messages=self._messages(),
            system=system,
            tools=specs,
            tool_choice="auto" if tools or not specs else "none",
            max_tokens=parts.max_tokens,
            temperature=parts.temperature,
            thinking=thinking and parts.thinking,
            timeout=parts.model_timeout,
        )

    def _messages(self) -> tuple[Any, ...]:
        """The conversation, with the turn's recalled context beside the message that it was recalled for."""
        messages = self.session.messages()
        block = getattr(self._context, "turn_block", None)
        if not block:
            return messages
        active = self.session.memory.active
        for index in range(len(active) - 1, -1, -1):
            if active[index].turn_id == self.state.turn_id and self._input_id in (None, *active[index].ids):
                view = self.session.dialect.read(messages[index])
                if view.role == "user":
                    note = self.session.dialect.note(block)
                    joined = self.session.dialect.merge([messages[index], note])
                    return (*messages[:index], joined, *messages[index + 1 :])
        return messages

    def _call_model(self, tools: bool, thinking: bool) -> Steps:
        if not self._provisioned:
            yield from self._provision()
        parts = self.parts
        request = self._request(tools, thinking)
        for hook in parts.hooks.at("before_model"):
            changed = yield from self._isolated("before_model", hook, request, self._info())
            request = changed if isinstance(changed, ChatRequest) else request
        self._model_span = self.span.child(
            f"chat {parts.model.name}",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": parts.model.name,
                "gen_ai.provider.name": PROVIDERS.get(parts.model.dialect, parts.model.dialect),
            },
        )
        try:
            reply: ChatReply | None = yield Stream(request)
        except ModelError as error:
            code = next((code for kind, code in CODES.items() if isinstance(error, kind)), "other")
            self._model_span.end(code)
            self.error = error
            return ev.ModelFailed(
                code=code, message=str(error), retryable=error.retryable, retry_after=error.retry_after
            )
        except StaleWriter:
            raise
        except Exception as error:
            self._model_span.end(type(error).__name__)
            self.error = error
            return ev.ModelFailed(code="other", message=f"{type(error).__name__}: {error}")
        if reply is None:
            self._model_span.end("cancelled")
            return ev.Cancel()
        self.error = None
        yield from self._replied(reply)
        return ev.ModelReplied(
            message=reply.message, text=reply.text, calls=reply.calls, stop=reply.stop, usage=reply.usage
        )

    def _replied(self, reply: ChatReply) -> Steps:
        parts, usage = self.parts, reply.usage
        model = reply.model or parts.model.name
        span = self._model_span
        if usage is not None:
            span.set(
                gen_ai__response__model=model,
                gen_ai__usage__input_tokens=usage.input_tokens,
                gen_ai__usage__output_tokens=usage.output_tokens,
            )
            cost = parts.price(usage, model)
            if cost is not None:
                self.cost = (self.cost or 0.0) + cost
            yield Emit(UsageEvent(usage, "main", model, cost))
            observe = getattr(parts.compactor, "observe", None)
            if observe is not None:
                yield from self._isolated("observe", observe, usage)
        span.end()
        for hook in parts.hooks.at("after_model"):
            yield from self._isolated("after_model", hook, reply, self._info())

    # --- tools -------------------------------------------------------------------------------------------------------

    def _check(self, calls: tuple[PendingCall, ...]) -> Steps:
        verdicts: dict[str, ev.Verdict] = {}
        for call in calls:
            if call.invalid is None:
                verdicts[call.id] = yield from self._judge(call)
        return ev.CallsChecked(verdicts)

    def _judge(self, pending: PendingCall) -> Steps:
        call = _as_call(pending)
        tool = self.parts.tools.get(call.name)
        if tool is None:
            known = ", ".join(self.parts.tools) or "none"
            return ev.Verdict(kind="refuse", feedback=f"There is no tool {call.name!r}. Tools: {known}.")
        park = tool.approve
        for hook in self.parts.hooks.at("before_tool"):
            try:
                answer = yield Call(hook, (call, self._info()))
            except StaleWriter:
                raise
            except Exception:
                logger.warning("a before_tool hook raised; the call of %s is refused", call.name, exc_info=True)
                return ev.Verdict(kind="refuse", feedback=f"Not run: the check of {call.name} failed.")
            if isinstance(answer, Refuse):
                return ev.Verdict(kind="refuse", feedback=answer.feedback)
            if isinstance(answer, Rewrite):
                call = replace(call, arguments=dict(answer.arguments))
            park = park or isinstance(answer, Park)
        try:
            tool.bind(call, self._tool_context(call.id))
        except ArgumentError as error:
            return ev.Verdict(kind="refuse", feedback=str(error))
        changed = call.arguments if call.arguments != pending.arguments else None
        return ev.Verdict(kind="park" if park else "run", arguments=changed)

    def _tool_context(self, call_id: str) -> ToolContext:
        return ToolContext(session=self.session.id, turn_id=self.state.turn_id, call_id=call_id, scope=self.parts.scope)

    def _ask_approval(self, calls: tuple[PendingCall, ...], decisions: Mapping[str, bool | str] | None) -> Steps:
        shown = tuple(_as_call(call) for call in calls)
        if decisions is None:
            yield Emit(ApprovalEvent(shown))
            decisions = yield from self._isolated("approve", self.parts.approver, shown)
        known = decisions if isinstance(decisions, Mapping) else {}
        return ev.Decided({call.id: known[call.id] for call in calls if call.id in known})

    def _run_tools(self, calls: tuple[PendingCall, ...]) -> Steps:
        jobs = []
        for pending in calls:
            call = _as_call(pending)
            tool = self.parts.tools[call.name]
            arguments = tool.bind(call, self._tool_context(call.id))
            timeout = tool.timeout if tool.timeout is not None else self.parts.tool_timeout
            jobs.append(Job(call_id=call.id, tool=tool, arguments=arguments, timeout=timeout))
            self._jobs[call.id] = pending
            self._tool_spans[call.id] = self.span.child(
                f"execute_tool {call.name}",
                {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": call.name,
                    "gen_ai.tool.call.id": call.id,
                },
            )
            yield Emit(ToolCallEvent(call))
        yield StartTools(tuple(jobs))
        return (yield from self._next_tool())

    def _next_tool(self) -> Steps:
        finished: ToolFinished = yield NextTool()
        outcome = finished.outcome
        if outcome is None:
            return ev.Cancel()
        call = _as_call(self._jobs[outcome.call_id])
        self._tool_spans.pop(outcome.call_id, NO_SPAN).end("tool_error" if outcome.error else None)
        for hook in self.parts.hooks.at("after_tool"):
            text = yield from self._isolated("after_tool", hook, call, outcome, self._info())
            if isinstance(text, str):
                outcome = replace(outcome, text=text)
        yield Emit(ToolResultEvent(call=call, text=outcome.text, error=outcome.error, seconds=outcome.seconds))
        return ev.ToolReturned(outcome)

    # --- memory ------------------------------------------------------------------------------------------------------

    def _write_memory(self) -> Steps:
        if self.parts.memory is None:
            return
        yield from self._remembered("episodes", self.parts.memory.episodes(self.session, self._info(), self.state))
        yield from self._remembered("nap", self.parts.memory.nap(self._info()))

    def _remembered(self, kind: str, flow: Any) -> Steps:
        """Run what writes memory; the turn goes on when it fails, and says so."""
        try:
            count = yield from flow
        except StaleWriter:
            raise
        except Exception as error:
            logger.warning("memory (%s) could not be written", kind, exc_info=True)
            yield Emit(MemoryEvent(kind, error=f"{type(error).__name__}: {error}"))
            return
        if count:
            yield Emit(MemoryEvent(kind, count))


def _as_call(call: PendingCall) -> ToolCall:
    return ToolCall(call.id, call.name, dict(call.arguments), call.invalid)
