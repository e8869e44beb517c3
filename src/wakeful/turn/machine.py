"""The turn as a pure state machine: ``step(state, event) -> (state, effects)``.

Rules of the file:

- ``step`` is total: an event without a row in ``TABLE`` changes nothing and gives ``Ignored``.
- It does no I/O and sizes nothing. The last effect of a step is the one that blocks.
- A batch of calls is answered as a whole: results are appended only when every call has exactly one, in the order of
  the calls. A turn that ends with an open batch answers it first, so the conversation stays valid.
- A call is marked ``running`` in the state before ``RunTools`` is given out. After an interruption a marked call
  without an outcome is answered with an error: a tool never runs twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from wakeful.turn.effects import (
    AppendInput,
    AppendReply,
    AppendResults,
    AskApproval,
    AwaitTools,
    CallModel,
    CheckCalls,
    CompactInfo,
    Effect,
    Failed,
    Finished,
    Ignored,
    MaybeCompact,
    Provision,
    RunTools,
    Wait,
    WriteMemory,
)
from wakeful.turn.events import (
    Begin,
    Broken,
    CallsChecked,
    Cancel,
    CompactionDone,
    Decided,
    Event,
    MemoryWritten,
    ModelFailed,
    ModelReplied,
    Provisioned,
    Resume,
    Steer,
    ToolReturned,
    ToolsReturned,
    Verdict,
    Waited,
)
from wakeful.turn.states import PendingCall, Phase, Stop, ToolOutcome, TurnState, with_outcome

Step: TypeAlias = tuple[TurnState, tuple[Effect, ...]]

CANCELLED = "Cancelled before this call finished."
INTERRUPTED = (
    "Interrupted: the process stopped while this call ran. It may have taken effect and was not run again; "
    "check before repeating it."
)
NO_VERDICT = "Refused: no check gave a verdict for this call."
UNDECIDED = "Rejected: nobody approved this call."
REJECTED = "Rejected by a person."
CUT_OFF = "Not run: the reply was cut off at the output limit, so the arguments may be incomplete. Send a shorter call."
LAST_CALL = "Not run: the turn's limit is reached. Answer with what is known."
BROKEN_BATCH = "The result of this call is not known: the batch's results did not match its calls."
TURN_FAILED = "Not answered: the turn failed."


def step(state: TurnState, event: Event) -> Step:
    """Advance a turn by one event. Give the next state and what is to be done."""
    row = TABLE.get((state.phase, type(event)))
    if row is None:
        return state, (Ignored(type(event).__name__, f"it has no meaning in {state.phase.value}"),)
    return row.handler(state, event)


def begin(turn_id: str, **settings: Any) -> TurnState:
    """Make the state of a turn that has not begun. ``settings`` are fields of ``TurnState`` (limits, budget)."""
    return TurnState(turn_id=turn_id, **settings)


# --- provisioning and steering ---------------------------------------------------------------------------------------


def _begin(state: TurnState, event: Begin) -> Step:
    if state.begun:
        return state, (Ignored("Begin", "the turn has begun"),)
    state, appended = _append_inputs(replace(state, begun=True), event.messages)
    return state, (*appended, Provision())


def _provisioned(state: TurnState, _event: Provisioned) -> Step:
    if not state.begun:
        return state, (Ignored("Provisioned", "the turn has not begun"),)
    return _boundary(state, mid_round=False)


def _boundary(state: TurnState, *, mid_round: bool, harder: bool = False, before: tuple[Effect, ...] = ()) -> Step:
    """Append what came in, then let the compactor look; the next model call follows."""
    state, appended = _append_inputs(replace(state, queue=()), state.queue)
    if not state.forced:
        state = replace(state, forced=_forced(state))
    state = replace(state, phase=Phase.STEERING, mid_round=mid_round, harder=harder)
    return state, (*before, *appended, MaybeCompact(_info(state)))


def _forced(state: TurnState) -> Stop:
    if state.iteration >= state.limits.iterations:
        return "iterations"
    if state.budget is not None and state.budget.spent_out:
        return "budget"
    return ""


def _info(state: TurnState) -> CompactInfo:
    return CompactInfo(turn_id=state.turn_id, iteration=state.iteration, mid_round=state.mid_round, harder=state.harder)


def _compaction_done(state: TurnState, event: CompactionDone) -> Step:
    meta = event.meta
    compacted = bool(meta.get("compacted"))
    if state.budget is not None:
        state = replace(state, budget=state.budget.compacted(meta.get("tokens_removed")))
    if meta.get("thinking_off"):
        state = replace(state, thinking_off=True)
    if state.harder and not (compacted and _smaller(meta)):
        why = meta.get("error") or meta.get("reason") or "the compactor could not make it smaller"
        return _fail(state, "context_overflow", f"the request does not fit the model's window, and {why}")
    if state.queue:
        return _boundary(state, mid_round=state.mid_round, harder=state.harder)
    return _call_model(state)


def _smaller(meta: Mapping[str, Any]) -> bool:
    before, after = meta.get("tokens_before"), meta.get("tokens_after")
    return before is None or after is None or after < before


def _call_model(state: TurnState) -> Step:
    return replace(state, phase=Phase.ASSISTANT_STREAMING), (
        CallModel(tools=not state.forced, thinking=not state.thinking_off),
    )


# --- assistant_streaming ---------------------------------------------------------------------------------------------


def _replied(state: TurnState, event: ModelReplied) -> Step:
    state = replace(
        state,
        iteration=state.iteration + 1,
        tries=0,
        harder=False,
        totals=state.totals.plus(event.usage),
        budget=state.budget.spent(event.usage) if state.budget is not None else None,
        text=event.text,
    )
    ids = [call.id for call in event.calls]
    if len(set(ids)) != len(ids):
        double = sorted({each for each in ids if ids.count(each) > 1})
        return _fail(state, "invalid_reply", f"the model used a call id twice in one reply: {', '.join(double)}")
    if event.message is None:
        if event.calls:
            return _fail(state, "invalid_reply", "the model's reply has calls but no message to append")
        return _answered(state, event, ())
    state, appended = _append_reply(state, event.message)
    if not event.calls:
        return _answered(state, event, appended)
    calls = tuple(
        PendingCall(id=call.id, name=call.name, arguments=dict(call.arguments), invalid=call.invalid)
        for call in event.calls
    )
    if state.forced or event.stop == "length":
        text = LAST_CALL if state.forced else CUT_OFF
        state = replace(state, calls=tuple(with_outcome(call, text) for call in calls))
        return _close_batch(state, appended)
    state = replace(state, phase=Phase.TOOL_DISPATCH, calls=calls)
    return state, (*appended, CheckCalls(calls))


def _answered(state: TurnState, event: ModelReplied, appended: tuple[Effect, ...]) -> Step:
    """The reply has no calls: the round is closed."""
    state = replace(state, thinking_off=False)
    if state.queue and not state.forced and state.iteration < state.limits.iterations and event.stop != "refused":
        return _boundary(state, mid_round=False, before=appended)
    if state.forced:
        stop: Stop = state.forced
    elif event.message is None:
        stop = "empty"
    else:
        stop = "end" if event.stop == "tools" else event.stop
    return _finalize(state, stop, appended)


def _model_failed(state: TurnState, event: ModelFailed) -> Step:
    if event.code == "context_overflow":
        if state.harder:
            return _fail(
                state,
                "context_overflow",
                f"the request is still too long after a deeper compaction: {event.message}",
            )
        return _boundary(state, mid_round=state.mid_round, harder=True)
    if event.retryable and state.tries < state.limits.retries:
        limits = state.limits
        seconds = event.retry_after if event.retry_after is not None else limits.backoff * 2**state.tries
        wait = Wait(max(0.0, min(seconds, limits.backoff_max)), event.code)
        return replace(state, tries=state.tries + 1), (wait,)
    tried = f" (after {state.tries + 1} tries)" if state.tries else ""
    return _fail(state, event.code, f"{event.message}{tried}")


def _waited(state: TurnState, _event: Waited) -> Step:
    if not state.tries:
        return state, (Ignored("Waited", "nothing was waited for"),)
    return _call_model(state)


# --- tool_dispatch and awaiting_approval -----------------------------------------------------------------------------


def _checked(state: TurnState, event: CallsChecked) -> Step:
    if any(call.status != "new" for call in state.calls):
        return state, (Ignored("CallsChecked", "the batch was checked already"),)
    state = replace(state, calls=tuple(_judge(call, event.verdicts.get(call.id)) for call in state.calls))
    parked = tuple(call for call in state.calls if call.status == "parked")
    if parked:
        return replace(state, phase=Phase.AWAITING_APPROVAL), (AskApproval(parked),)
    return _dispatch(state)


def _judge(call: PendingCall, verdict: Verdict | None) -> PendingCall:
    if call.invalid is not None:
        text = f"Not run: the arguments are not a JSON object: {call.invalid[:500]}"
        return replace(with_outcome(call, text), status="refused")
    if verdict is None:
        return replace(with_outcome(call, NO_VERDICT), status="refused")
    if verdict.kind == "refuse":
        return replace(with_outcome(call, verdict.feedback or "Refused."), status="refused")
    if verdict.arguments is not None:
        call = replace(call, arguments=dict(verdict.arguments))
    return replace(call, status="parked" if verdict.kind == "park" else "approved")


def _decided(state: TurnState, event: Decided) -> Step:
    calls = []
    for call in state.calls:
        if call.status == "parked":
            decision = event.decisions.get(call.id)
            if decision is True:
                call = replace(call, status="approved")
            else:
                text = UNDECIDED if decision is None else REJECTED if decision is False else f"Rejected: {decision}"
                call = replace(with_outcome(call, text), status="refused")
        calls.append(call)
    return _dispatch(replace(state, calls=tuple(calls)))


def _dispatch(state: TurnState) -> Step:
    calls = tuple(replace(call, status="running") if call.status == "approved" else call for call in state.calls)
    state = replace(state, phase=Phase.TOOL_DISPATCH, calls=calls)
    running = tuple(call for call in calls if call.status == "running")
    return (state, (RunTools(running),)) if running else _close_batch(state)


def _returned(state: TurnState, event: ToolReturned) -> Step:
    outcome = event.outcome
    call = next((each for each in state.calls if each.id == outcome.call_id), None)
    if call is None or call.status not in ("running", "done"):
        return _mismatch(state, missing=(), unexpected=(outcome.call_id,))
    if call.status == "done":
        return state, (Ignored("ToolReturned", f"call {call.id} is answered already"),)
    state = _with_outcomes(state, {outcome.call_id: outcome})
    left = tuple(each.id for each in state.calls if each.status == "running")
    return (state, (AwaitTools(left),)) if left else _close_batch(state)


def _returned_all(state: TurnState, event: ToolsReturned) -> Step:
    running = [call.id for call in state.calls if call.status == "running"]
    given = [outcome.call_id for outcome in event.outcomes]
    if not running:
        return state, (Ignored("ToolsReturned", "no call runs"),)
    missing = tuple(each for each in running if each not in given)
    unexpected = tuple(dict.fromkeys(each for each in given if each not in running or given.count(each) > 1))
    if missing or unexpected:
        return _mismatch(state, missing=missing, unexpected=unexpected)
    return _close_batch(_with_outcomes(state, {outcome.call_id: outcome for outcome in event.outcomes}))


def _with_outcomes(state: TurnState, outcomes: Mapping[str, ToolOutcome]) -> TurnState:
    calls = tuple(
        replace(call, status="done", outcome=outcomes[call.id]) if call.id in outcomes else call for call in state.calls
    )
    return replace(state, calls=calls)


def _mismatch(state: TurnState, *, missing: tuple[str, ...], unexpected: tuple[str, ...]) -> Step:
    parts = []
    if missing:
        parts.append(f"missing: {', '.join(missing)}")
    if unexpected:
        parts.append(f"unexpected: {', '.join(unexpected)}")
    state = replace(state, calls=tuple(with_outcome(call, BROKEN_BATCH) for call in state.calls))
    return _fail(state, "incomplete_batch", f"the results do not match the calls of the batch ({'; '.join(parts)})")


def _close_batch(state: TurnState, before: tuple[Effect, ...] = ()) -> Step:
    """Every call has its outcome: append the results, then the next boundary or the end."""
    state, appended = _append_results(state)
    if state.forced:
        return _finalize(replace(state, thinking_off=False), state.forced, (*before, *appended))
    return _boundary(state, mid_round=True, before=(*before, *appended))


# --- endings ---------------------------------------------------------------------------------------------------------


def _finalize(state: TurnState, stop: Stop, before: tuple[Effect, ...] = ()) -> Step:
    state, appended = _append_inputs(replace(state, queue=()), state.queue)
    return replace(state, phase=Phase.FINALIZING, stop=stop), (*before, *appended, WriteMemory())


def _written(state: TurnState, _event: MemoryWritten) -> Step:
    return replace(state, phase=Phase.STOPPED), (Finished(state.stop),)


def _cancel(state: TurnState, _event: Cancel) -> Step:
    state, appended = _answer_open(state, CANCELLED)
    return _finalize(replace(state, thinking_off=False), "cancelled", appended)


def _broken(state: TurnState, event: Broken) -> Step:
    return _fail(state, event.code, event.message)


def _fail(state: TurnState, code: str, message: str) -> Step:
    state, appended = _answer_open(state, TURN_FAILED)
    state, inputs = _append_inputs(replace(state, queue=()), state.queue)
    state = replace(state, phase=Phase.FAILED, error_code=code, error=message)
    return state, (*appended, *inputs, Failed(code, message))


def _answer_open(state: TurnState, text: str) -> Step:
    """Answer the calls of an open batch that have no outcome, and append the batch."""
    if not state.calls:
        return state, ()
    calls = tuple(call if call.outcome is not None else with_outcome(call, text) for call in state.calls)
    return _append_results(replace(state, calls=calls))


# --- at any time -----------------------------------------------------------------------------------------------------


def _steer(state: TurnState, event: Steer) -> Step:
    return replace(state, queue=(*state.queue, event.message)), (Ignored("Steer", "queued for the next boundary"),)


def _resume(state: TurnState, _event: Resume) -> Step:
    match state.phase:
        case Phase.PROVISIONING:
            return state, (Provision(),) if state.begun else (Ignored("Resume", "the turn has not begun"),)
        case Phase.STEERING:
            return state, (MaybeCompact(_info(state)),)
        case Phase.ASSISTANT_STREAMING:
            return _call_model(state)
        case Phase.AWAITING_APPROVAL:
            return state, (AskApproval(tuple(call for call in state.calls if call.status == "parked")),)
        case Phase.FINALIZING:
            return state, (WriteMemory(),)
        case _:
            pass
    if all(call.status == "new" for call in state.calls):
        return state, (CheckCalls(state.calls),)
    calls = tuple(with_outcome(call, INTERRUPTED) if call.outcome is None else call for call in state.calls)
    return _close_batch(replace(state, calls=calls))


# --- appending -------------------------------------------------------------------------------------------------------


def _append_inputs(state: TurnState, messages: tuple[Any, ...]) -> Step:
    effects: list[Effect] = []
    for message in messages:
        state, entry_id = _next_id(state)
        effects.append(AppendInput(entry_id, message))
    return state, tuple(effects)


def _append_reply(state: TurnState, message: Any) -> Step:
    state, entry_id = _next_id(state)
    return state, (AppendReply(entry_id, message),)


def _append_results(state: TurnState) -> Step:
    state, entry_id = _next_id(state)
    return replace(state, calls=()), (AppendResults(entry_id, state.calls),)


def _next_id(state: TurnState) -> tuple[TurnState, str]:
    number = state.entries + 1
    return replace(state, entries=number), f"{state.turn_id}.{number}"


# --- the table -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """What an event does in a phase."""

    to: tuple[Phase, ...]
    """Phases that the turn may be in afterwards."""
    handler: Callable[[TurnState, Any], Step]
    does: str
    """For the diagram and the reference page."""


_P = Phase
_RUNNING = (_P.PROVISIONING, _P.STEERING, _P.ASSISTANT_STREAMING, _P.TOOL_DISPATCH, _P.AWAITING_APPROVAL)

TABLE: dict[tuple[Phase, type[Any]], Row] = {
    (_P.PROVISIONING, Begin): Row((_P.PROVISIONING,), _begin, "append the input, make the context"),
    (_P.PROVISIONING, Provisioned): Row((_P.STEERING, _P.PROVISIONING), _provisioned, "let the compactor look"),
    (_P.STEERING, CompactionDone): Row(
        (_P.ASSISTANT_STREAMING, _P.STEERING, _P.FAILED), _compaction_done, "subtract what was removed, ask the model"
    ),
    (_P.ASSISTANT_STREAMING, ModelReplied): Row(
        (_P.TOOL_DISPATCH, _P.STEERING, _P.FINALIZING, _P.FAILED), _replied, "append the reply, check its calls"
    ),
    (_P.ASSISTANT_STREAMING, ModelFailed): Row(
        (_P.ASSISTANT_STREAMING, _P.STEERING, _P.FAILED), _model_failed, "wait and try again, or compact harder once"
    ),
    (_P.ASSISTANT_STREAMING, Waited): Row((_P.ASSISTANT_STREAMING,), _waited, "ask the model again"),
    (_P.TOOL_DISPATCH, CallsChecked): Row(
        (_P.TOOL_DISPATCH, _P.AWAITING_APPROVAL, _P.STEERING), _checked, "run the batch, or park it for a person"
    ),
    (_P.AWAITING_APPROVAL, Decided): Row(
        (_P.TOOL_DISPATCH, _P.STEERING), _decided, "run what was approved, answer the rest"
    ),
    (_P.TOOL_DISPATCH, ToolReturned): Row(
        (_P.TOOL_DISPATCH, _P.STEERING, _P.FAILED), _returned, "keep the outcome; after the last, append the results"
    ),
    (_P.TOOL_DISPATCH, ToolsReturned): Row(
        (_P.STEERING, _P.FAILED, _P.TOOL_DISPATCH), _returned_all, "append the results in the order of the calls"
    ),
    (_P.FINALIZING, MemoryWritten): Row((_P.STOPPED,), _written, "the turn is over"),
    **{(phase, Steer): Row((phase,), _steer, "queue a message") for phase in _RUNNING},
    **{(phase, Cancel): Row((_P.FINALIZING,), _cancel, "answer open calls, end") for phase in _RUNNING},
    **{(phase, Broken): Row((_P.FAILED,), _broken, "answer open calls, fail") for phase in _RUNNING},
    **{
        (phase, Resume): Row((phase,), _resume, "do the blocking effect again")
        for phase in (_P.PROVISIONING, _P.STEERING, _P.ASSISTANT_STREAMING, _P.AWAITING_APPROVAL, _P.FINALIZING)
    },
    (_P.TOOL_DISPATCH, Resume): Row(
        (_P.TOOL_DISPATCH, _P.STEERING), _resume, "check again, or answer interrupted calls with errors"
    ),
}
"""Every transition. An event without a row is ignored."""

START = Phase.PROVISIONING
