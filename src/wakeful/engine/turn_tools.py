"""The tools' part of a turn: checks, approvals, and the calls that run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from wakeful.engine.hooks import Park, Refuse, Rewrite
from wakeful.engine.stream import ApprovalEvent, ToolCallEvent, ToolResultEvent
from wakeful.engine.toolrun import Finished, Job
from wakeful.engine.tools import ArgumentError, ToolContext
from wakeful.engine.trace import NO_SPAN
from wakeful.engine.turn_base import Emit, NextTool, StartTools, Steps, TurnParts, as_call
from wakeful.errors import StaleWriter
from wakeful.needs import Call
from wakeful.turn import events as ev
from wakeful.turn.states import PendingCall

logger = logging.getLogger("wakeful.turn")


class ToolSteps(TurnParts):
    """Check and run calls."""

    def _check(self, calls: tuple[PendingCall, ...]) -> Steps:
        verdicts: dict[str, ev.Verdict] = {}
        readable = [call for call in calls if call.invalid is None]
        refused: dict[str, str] = {}
        if self.parts.gate is not None and readable:
            names = (call.name for call in readable if call.name in self.parts.tools)
            refused = yield from self.parts.gate.refusals(names, self.session.succeeded)
        for call in readable:
            if call.name in refused:
                verdicts[call.id] = ev.Verdict(kind="refuse", feedback=refused[call.name])
            else:
                verdicts[call.id] = yield from self._judge(call)
        return ev.CallsChecked(verdicts)

    def _judge(self, pending: PendingCall) -> Steps:
        call = as_call(pending)
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
        shown = tuple(as_call(call) for call in calls)
        if decisions is None:
            yield Emit(ApprovalEvent(shown))
            decisions = yield from self._isolated("approve", self.parts.approver, shown)
        known = decisions if isinstance(decisions, Mapping) else {}
        return ev.Decided({call.id: known[call.id] for call in calls if call.id in known})

    def _run_tools(self, calls: tuple[PendingCall, ...]) -> Steps:
        jobs = []
        for pending in calls:
            call = as_call(pending)
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
        finished: Finished = yield NextTool()
        outcome = finished.outcome
        if outcome is None:
            return ev.Cancel()
        call = as_call(self._jobs[outcome.call_id])
        if not outcome.error:
            self.session.succeeded.add(call.name)
        self._tool_spans.pop(outcome.call_id, NO_SPAN).end("tool_error" if outcome.error else None)
        for hook in self.parts.hooks.at("after_tool"):
            text = yield from self._isolated("after_tool", hook, call, outcome, self._info())
            if isinstance(text, str):
                outcome = replace(outcome, text=text)
        yield Emit(ToolResultEvent(call=call, text=outcome.text, error=outcome.error, seconds=outcome.seconds))
        return ev.ToolReturned(outcome)
