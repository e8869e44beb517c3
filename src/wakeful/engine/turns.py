"""Carry out a turn: the flow that feeds the machine and does what it asks.

Rules of the file:

- ``TurnFlow`` yields needs, events for the user, and the few things only a shell can do (stream a reply, run tools). It
  is written once; the two shells in ``shells.py`` drive it.
- The effects before the blocking one and the state are written in one transaction, then the blocking one is begun.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from wakeful.compaction.compactor import CompactContext, NoOp, needs_window
from wakeful.conversation import Entry
from wakeful.engine.compacting import compact_flow, for_session
from wakeful.engine.session import compaction_op, replace_memory, reply_entries, result_entries
from wakeful.engine.stream import (
    ApprovalEvent,
    CompactionEvent,
    DoneEvent,
    ErrorEvent,
    MemoryEvent,
    RetryEvent,
    RunResult,
)
from wakeful.engine.turn_base import Emit, Steps, as_call
from wakeful.engine.turn_model import ModelSteps
from wakeful.engine.turn_tools import ToolSteps
from wakeful.errors import StaleWriter, TurnError
from wakeful.needs import Run, Sleep
from wakeful.ops_session import SessionSaveTurn
from wakeful.turn import effects as fx
from wakeful.turn import events as ev
from wakeful.turn.machine import step
from wakeful.turn.states import PendingCall, Phase

logger = logging.getLogger("wakeful.turn")


class TurnFlow(ModelSteps, ToolSteps):
    """One turn of one session."""

    # --- the loop ----------------------------------------------------------------------------------------------------

    def run(self, event: ev.Event, decisions: Mapping[str, bool | str] | None = None) -> Steps:
        """Go on from ``event`` until the turn is over, or parks for approval without ``decisions``."""
        parked: tuple[PendingCall, ...] = ()
        while True:
            for message in self.inbox.take():
                self.state, _ = step(self.state, ev.Steer(message))
            self.state, effects = step(self.state, event)
            self._apply(effects)
            last = effects[-1]
            if not self._may_wait(last):
                yield from self._save()
            if isinstance(last, fx.Finished | fx.Failed):
                break
            if isinstance(last, fx.Ignored):
                raise TurnError(f"the turn can't go on: {last.event} was ignored, since {last.reason}")
            if self.inbox.cancelled and self.state.phase is not Phase.FINALIZING:
                event = ev.Cancel()
                continue
            if isinstance(last, fx.AskApproval) and decisions is None and self.parts.approver is None:
                parked = last.calls
                yield Emit(ApprovalEvent(tuple(as_call(call) for call in parked)))
                break
            event = yield from self._perform(last, decisions)
            if isinstance(last, fx.AskApproval):
                decisions = None
        yield from self._end(parked)

    def _may_wait(self, effect: fx.Effect) -> bool:
        """Whether the write may wait for the next one: the effect costs nothing, is seen by nobody and can be repeated."""
        parts = self.parts
        match effect:
            case fx.Provision():
                return parts.context is None
            case fx.MaybeCompact():
                return isinstance(parts.compactor, NoOp)
            case fx.CheckCalls():
                return not parts.hooks.at("before_tool")
            case fx.WriteMemory():
                return parts.memory is None and not self._due()
            case _:
                return False

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
            self.session.settled = True
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
            approvals=tuple(as_call(call) for call in parked),
            error=failed,
            remaining=state.budget.remaining if state.budget else None,
        )
        self.session.settled = True
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

    def _compact(self, info: fx.CompactInfo) -> Steps:
        parts, session = self.parts, self.session
        if isinstance(parts.compactor, NoOp):
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
        compactor = for_session(parts.compactor, session, reserve=parts.reserve)
        meta = yield from compact_flow(session, compactor, parts.hooks, info, ctx, self._info())
        dropped = tuple(meta.get("dropped") or ())
        if meta["compacted"]:
            replace_memory(session, meta["memory"])
            meta = {key: value for key, value in meta.items() if key != "memory"}
            if session.durable:
                self._ops.append(compaction_op(session, before, meta))
        self._note_gauge(meta, tokens)
        yield from self._report_internal()
        span.set(**{f"wakeful__{k}": v for k, v in meta.items() if isinstance(v, str | int | float | bool)})
        span.end("compaction" if meta.get("error") else None)
        if meta["compacted"] or meta.get("error"):
            yield Emit(CompactionEvent(meta))
        if dropped:
            yield from self._after_compact(meta, dropped)
        return ev.CompactionDone({k: v for k, v in meta.items() if k != "dropped"})

    def _report_internal(self) -> Steps:
        """Tell what internal model calls used; their text stays inside."""
        events, self.session.internal = self.session.internal, []
        for event in events:
            if event.cost is not None:
                self.cost = (self.cost or 0.0) + event.cost
            yield Emit(event)

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

    # --- memory ------------------------------------------------------------------------------------------------------

    def _due(self) -> tuple[Any, ...]:
        return getattr(self._context, "due", ())

    def _write_memory(self) -> Steps:
        if self._due() and self.state.stop == "end" and self.parts.context is not None:
            yield from self._remembered("reminders", self.parts.context.settle(self._context, self._info()))
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
        finally:
            yield from self._report_internal()
        if count:
            yield Emit(MemoryEvent(kind, count))
