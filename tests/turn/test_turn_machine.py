"""The machine keeps its promises whatever happens, in whatever order."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.budgets import TaskBudget
from wakeful.errors import InputError
from wakeful.needs import ToolCall, Usage
from wakeful.turn import TABLE, Limits, Phase, ToolOutcome, TurnState, begin, diagram, step
from wakeful.turn.effects import (
    APPENDS,
    AppendInput,
    AppendReply,
    AppendResults,
    AskApproval,
    AwaitTools,
    CallModel,
    CheckCalls,
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
    EVENTS,
    Begin,
    Broken,
    CallsChecked,
    Cancel,
    CompactionDone,
    Decided,
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

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "turn-machine.md"


def call(number: int, **extra) -> ToolCall:
    return ToolCall(f"c{number}", "tool", {"n": number}, **extra)


def replied(*calls: ToolCall, text: str = "", **extra) -> ModelReplied:
    return ModelReplied(message={"calls": [c.id for c in calls]}, text=text, calls=calls, **extra)


def outcome(call_id: str, text: str = "ok", **extra) -> ToolOutcome:
    return ToolOutcome(call_id=call_id, text=text, **extra)


def run(state: TurnState, *events) -> tuple[TurnState, list]:
    effects = []
    for event in events:
        state, new = step(state, event)
        effects.extend(new)
    return state, effects


def started(**settings) -> TurnState:
    return run(begin("t", **settings), Begin(("hi",)), Provisioned(), CompactionDone())[0]


def kinds(effects) -> list[str]:
    return [type(each).__name__ for each in effects]


class World:
    """A shell with dice: answers each blocking effect, crashes where it is told to, and keeps the books."""

    def __init__(self, data: st.DataObject, *, crashes: bool) -> None:
        self.draw = data.draw
        self.crashes = 5 if crashes else 0
        self.history: list = []
        self.ran: list[str] = []
        self.numbers = 0
        self.overflow_streak = 0

    def apply(self, effects) -> None:
        for effect in effects:
            if isinstance(effect, APPENDS):
                self.history.append(effect)

    def answer(self, effect, state: TurnState):
        match effect:
            case Provision():
                return Provisioned()
            case MaybeCompact():
                compacted = self.draw(st.booleans())
                meta = {"compacted": compacted, "thinking_off": compacted}
                if compacted:
                    meta |= {"tokens_before": 10, "tokens_after": self.draw(st.integers(5, 12)), "tokens_removed": 7}
                return CompactionDone(meta)
            case CallModel(tools=tools):
                return self.reply(tools)
            case Wait():
                return Waited()
            case CheckCalls(calls=calls):
                verdict = st.builds(Verdict, kind=st.sampled_from(["run", "run", "refuse", "park"]))
                return CallsChecked({c.id: self.draw(verdict) for c in calls if self.draw(st.integers(0, 9))})
            case AskApproval(calls=calls):
                return Decided({c.id: self.draw(st.sampled_from([True, False, "why"])) for c in calls[1:]})
            case RunTools(calls=calls):
                self.ran.extend(c.id for c in calls)
                return self.tool([c.id for c in calls])
            case AwaitTools(ids=ids):
                return self.tool(list(ids))
            case WriteMemory():
                return MemoryWritten()
        raise AssertionError(effect)

    def reply(self, tools: bool):
        kind = self.draw(st.sampled_from(["calls", "calls", "text", "empty", "retry", "overflow", "invalid"]))
        if kind == "retry":
            return ModelFailed(code="overloaded", retryable=True)
        if kind == "overflow":
            return ModelFailed(code="context_overflow")
        if kind == "invalid":
            return ModelFailed(code="invalid_request", message="no")
        usage = Usage(input_tokens=10, output_tokens=5)
        if kind == "empty":
            return ModelReplied(usage=usage)
        if kind == "text":
            return replied(text="done", usage=usage)
        count = self.draw(st.integers(1, 3))
        self.numbers += count
        calls = [
            call(self.numbers - i, invalid="{" if self.draw(st.integers(0, 9)) == 0 else None) for i in range(count)
        ]
        return replied(*calls, usage=usage, stop=self.draw(st.sampled_from(["tools", "tools", "length"])))

    def tool(self, ids: list[str]):
        kind = self.draw(st.sampled_from(["one", "one", "all", "wrong", "short"]))
        if kind == "one":
            return ToolReturned(outcome(self.draw(st.sampled_from(ids))))
        if kind == "wrong":
            return ToolReturned(outcome("nobody"))
        if kind == "short":
            return ToolsReturned(tuple(outcome(each) for each in ids[1:]))
        return ToolsReturned(tuple(outcome(each) for each in reversed(ids)))


def check_history(history) -> None:
    """Each batch of calls is followed at once by exactly its results, in the order of the calls."""
    open_ids: list[str] = []
    for effect in history:
        if isinstance(effect, AppendResults):
            assert [c.id for c in effect.calls] == open_ids
            assert all(c.outcome is not None and c.outcome.call_id == c.id for c in effect.calls)
            open_ids = []
        else:
            assert open_ids == []
            if isinstance(effect, AppendReply):
                open_ids = list(effect.message["calls"])
    assert open_ids == []
    ids = [effect.id for effect in history]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("crashes", [False, True])
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_every_ending_leaves_a_valid_conversation_and_no_tool_runs_twice(crashes, data):
    world = World(data, crashes=crashes)
    state = begin("t", limits=Limits(iterations=4, retries=2), budget=TaskBudget(90))
    event, remaining, forced_seen = Begin(("hi",)), 90, False
    for _ in range(200):
        before = state
        state, effects = step(state, event)
        row = TABLE[(before.phase, type(event))]
        assert state.phase in row.to
        assert not any(isinstance(each, APPENDS) for each in effects[-1:])
        world.apply(effects)
        assert state.budget.remaining <= remaining
        remaining = state.budget.remaining
        assert TurnState.load(json.loads(json.dumps(state.dump()))) == state
        last = effects[-1]
        if isinstance(last, Finished | Failed):
            break
        if world.crashes and data.draw(st.integers(0, 3)) == 3:
            world.crashes -= 1
            if isinstance(last, RunTools):
                world.ran.extend(c.id for c in last.calls)
            state, event = TurnState.load(json.loads(json.dumps(state.dump()))), Resume()
            continue
        extra = data.draw(st.sampled_from([None] * 12 + ["steer", "cancel", "broken"]))
        if extra == "steer" and not state.terminal and state.phase is not Phase.FINALIZING:
            state, _ = step(state, Steer("and?"))
        if extra in ("cancel", "broken") and state.phase is not Phase.FINALIZING:
            event = Cancel() if extra == "cancel" else Broken(code="x", message="y")
            if isinstance(last, RunTools):
                world.ran.extend(c.id for c in last.calls)
            continue
        if isinstance(last, CallModel):
            assert not (forced_seen and last.tools)
            forced_seen = not last.tools
        event = world.answer(last, state)
    assert state.terminal
    check_history(world.history)
    assert len(set(world.ran)) == len(world.ran)
    assert state.iteration <= 5
    inputs = [each.message for each in world.history if isinstance(each, AppendInput)]
    assert inputs[0] == "hi"


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("event", EVENTS, ids=lambda e: e.__name__)
def test_step_is_total_and_an_event_out_of_place_changes_nothing(phase, event):
    samples = {
        Begin: Begin(()),
        ModelReplied: replied(call(1)),
        ModelFailed: ModelFailed(code="transport", retryable=True),
        CallsChecked: CallsChecked({}),
        Decided: Decided({}),
        ToolReturned: ToolReturned(outcome("c1")),
        ToolsReturned: ToolsReturned((outcome("c1"),)),
        Steer: Steer("x"),
        Broken: Broken(code="c", message="m"),
    }
    given_event = samples[event] if event in samples else event()
    state = TurnState(turn_id="t", phase=phase)
    after, effects = step(state, given_event)
    assert effects
    if (phase, event) not in TABLE:
        assert after is state
        assert kinds(effects) == ["Ignored"]


def test_a_turn_compacts_at_its_start_and_after_every_batch_before_the_next_model_call():
    state, effects = run(
        begin("t"),
        Begin(("hi",)),
        Provisioned(),
        CompactionDone(),
        replied(call(1), call(2)),
        CallsChecked({"c1": Verdict(), "c2": Verdict()}),
        ToolReturned(outcome("c2")),
        ToolReturned(outcome("c1")),
        CompactionDone(),
        replied(text="done"),
        MemoryWritten(),
    )
    assert kinds(effects) == [
        "AppendInput", "Provision", "MaybeCompact", "CallModel", "AppendReply", "CheckCalls", "RunTools", "AwaitTools",
        "AppendResults", "MaybeCompact", "CallModel", "AppendReply", "WriteMemory", "Finished",
    ]  # fmt: skip
    first, second = [each.info for each in effects if isinstance(each, MaybeCompact)]
    assert (first.mid_round, first.iteration, second.mid_round, second.iteration) == (False, 0, True, 1)
    results = next(each for each in effects if isinstance(each, AppendResults))
    assert [c.id for c in results.calls] == ["c1", "c2"]
    assert state.stop == "end"


def test_the_machine_parks_in_steering_until_the_compaction_is_done():
    state, _ = run(begin("t"), Begin(("hi",)), Provisioned())
    assert state.phase is Phase.STEERING
    after, effects = step(state, replied(text="early"))
    assert after is state
    assert kinds(effects) == ["Ignored"]


BATCHES = [
    (("c1",), "missing: c2"),
    (("c1", "c2", "c9"), "unexpected: c9"),
    (("c1", "c9"), "missing: c2; unexpected: c9"),
    (("c1", "c2", "c2"), "unexpected: c2"),
]


@pytest.mark.parametrize(("given_ids", "says"), BATCHES)
def test_a_batch_that_does_not_match_fails_and_names_what_is_wrong(given_ids, says):
    state, _ = run(started(), replied(call(1), call(2)), CallsChecked({"c1": Verdict(), "c2": Verdict()}))
    state, effects = step(state, ToolsReturned(tuple(outcome(each) for each in given_ids)))
    assert state.phase is Phase.FAILED
    assert says in state.error
    appended = next(each for each in effects if isinstance(each, AppendResults))
    assert all(c.outcome.error for c in appended.calls)


def test_undecided_means_rejected_and_a_decision_is_applied_once():
    park = Verdict(kind="park")
    state, effects = run(
        started(), replied(call(1), call(2), call(3)), CallsChecked({"c1": park, "c2": Verdict(), "c3": park})
    )
    assert state.phase is Phase.AWAITING_APPROVAL
    assert [c.id for c in effects[-1].calls] == ["c1", "c3"]
    state, effects = step(state, Decided({"c3": True, "c7": True}))
    assert [c.id for c in effects[-1].calls] == ["c2", "c3"]
    again, effects = step(state, Decided({"c1": True}))
    assert again is state
    assert kinds(effects) == ["Ignored"]
    state, effects = step(state, ToolsReturned((outcome("c3"), outcome("c2"))))
    results = next(each for each in effects if isinstance(each, AppendResults))
    assert [(c.id, c.outcome.error) for c in results.calls] == [("c1", True), ("c2", False), ("c3", False)]


def test_an_interrupted_batch_is_answered_and_keeps_the_results_that_were_stored():
    state, _ = run(
        started(),
        replied(call(1), call(2)),
        CallsChecked({"c1": Verdict(), "c2": Verdict()}),
        ToolReturned(outcome("c1", "kept")),
    )
    state, effects = step(TurnState.load(state.dump()), Resume())
    results = effects[0]
    assert [(c.outcome.text.split(":")[0], c.outcome.error) for c in results.calls] == [
        ("kept", False),
        ("Interrupted", True),
    ]
    assert state.phase is Phase.STEERING


def test_the_limit_of_model_calls_forces_one_last_call_without_tools():
    state = started(limits=Limits(iterations=1))
    state, effects = run(state, replied(call(1)), CallsChecked({"c1": Verdict()}), ToolReturned(outcome("c1")))
    assert effects[-1].info.mid_round
    state, effects = step(state, CompactionDone())
    assert effects == (CallModel(tools=False),)
    state, effects = run(state, replied(call(2)))
    assert kinds(effects) == ["AppendReply", "AppendResults", "WriteMemory"]
    assert state.stop == "iterations"


def test_an_overflow_compacts_harder_once_and_needs_a_strictly_smaller_request():
    state, effects = step(started(), ModelFailed(code="context_overflow", message="too long"))
    assert effects[-1].info.harder
    smaller = {"compacted": True, "tokens_before": 10, "tokens_after": 9}
    state, effects = step(state, CompactionDone(smaller))
    assert kinds(effects) == ["CallModel"]
    failed, _ = step(state, ModelFailed(code="context_overflow", message="too long"))
    assert (failed.phase, failed.error_code) == (Phase.FAILED, "context_overflow")
    state, _ = step(state, replied(call(1)))
    assert not state.harder


@pytest.mark.parametrize(
    "meta",
    [{"compacted": False, "reason": "nothing_to_drop"}, {"compacted": True, "tokens_before": 9, "tokens_after": 9}],
)
def test_an_overflow_that_can_not_shrink_fails_at_once(meta):
    state, _ = run(started(), ModelFailed(code="context_overflow", message="too long"), CompactionDone(meta))
    assert (state.phase, state.error_code) == (Phase.FAILED, "context_overflow")


def test_retries_wait_longer_each_time_and_end():
    state, waits = started(limits=Limits(retries=3, backoff=1.0, backoff_max=3.0)), []
    for _ in range(3):
        state, effects = step(state, ModelFailed(code="overloaded", retryable=True))
        waits.append(effects[-1].seconds)
        state, _ = step(state, Waited())
    assert waits == [1.0, 2.0, 3.0]
    state, _ = step(state, ModelFailed(code="overloaded", message="busy", retryable=True))
    assert (state.phase, state.error_code) == (Phase.FAILED, "overloaded")
    assert "4 tries" in state.error


def test_the_providers_own_wait_is_kept():
    _, effects = step(started(), ModelFailed(code="rate_limit", retryable=True, retry_after=7.5))
    assert effects[-1].seconds == 7.5


def test_a_message_that_came_in_is_appended_at_the_next_boundary():
    state = step(started(), Steer("also this"))[0]
    state, effects = run(state, replied(call(1)), CallsChecked({"c1": Verdict()}), ToolReturned(outcome("c1")))
    assert kinds(effects)[-3:] == ["AppendResults", "AppendInput", "MaybeCompact"]
    state = step(state, Steer("and that"))[0]
    state, effects = step(state, CompactionDone())
    assert kinds(effects) == ["AppendInput", "MaybeCompact"]
    state = step(run(state, CompactionDone())[0], Steer("last"))[0]
    state, effects = step(state, replied(text="done"))
    assert kinds(effects) == ["AppendReply", "AppendInput", "MaybeCompact"]
    assert not effects[-1].info.mid_round


def test_thinking_stays_off_until_the_round_closes():
    state, effects = run(
        started(),
        replied(call(1)),
        CallsChecked({"c1": Verdict()}),
        ToolReturned(outcome("c1")),
        CompactionDone({"compacted": True, "thinking_off": True}),
    )
    assert effects[-1] == CallModel(thinking=False)
    state, effects = run(state, replied(text="done"))
    assert not state.thinking_off


def test_calls_of_a_reply_that_was_cut_off_are_not_run():
    _, effects = step(started(), replied(call(1), stop="length"))
    assert kinds(effects) == ["AppendReply", "AppendResults", "MaybeCompact"]


def test_a_reply_that_says_nothing_is_not_appended():
    state, effects = step(started(), ModelReplied())
    assert kinds(effects) == ["WriteMemory"]
    assert state.stop == "empty"


def test_a_call_id_that_stands_twice_fails_and_nothing_is_appended():
    state, effects = step(started(), replied(call(1), call(1)))
    assert kinds(effects) == ["Failed"]
    assert "c1" in state.error


def test_a_spent_budget_forces_the_last_call():
    state = started(budget=TaskBudget(20))
    state, effects = run(
        state,
        replied(call(1), usage=Usage(input_tokens=15, output_tokens=5)),
        CallsChecked({"c1": Verdict()}),
        ToolReturned(outcome("c1")),
        CompactionDone(),
    )
    assert effects[-1] == CallModel(tools=False)
    assert state.forced == "budget"


@given(st.lists(st.tuples(st.integers(-5, 50), st.integers(-5, 50), st.one_of(st.none(), st.integers(-9, 90)))))
def test_a_budget_only_falls_and_never_below_zero(changes):
    budget = TaskBudget(200)
    for tokens_in, tokens_out, removed in changes:
        after = budget.spent(Usage(input_tokens=tokens_in, output_tokens=tokens_out)).compacted(removed)
        assert 0 <= after.remaining <= budget.remaining
        budget = after
    assert TaskBudget.load(budget.dump()) == budget


def test_a_stored_state_of_another_format_is_refused():
    data = begin("t").dump()
    for broken in (data | {"format": 9}, data | {"surprise": 1}, {"format": 1}):
        with pytest.raises(InputError):
            TurnState.load(broken)


def test_the_reference_page_is_what_the_table_says():
    assert REFERENCE.read_text() == diagram.page()


def test_every_phase_can_be_reached_and_only_the_terminal_ones_end():
    reached, frontier = {Phase.PROVISIONING}, [Phase.PROVISIONING]
    while frontier:
        here = frontier.pop()
        for (phase, _), row in TABLE.items():
            if phase is here:
                fresh = set(row.to) - reached
                reached |= fresh
                frontier.extend(fresh)
    assert reached == set(Phase)
    assert {phase for phase in Phase if not any(source is phase for source, _ in TABLE)} == {
        Phase.STOPPED,
        Phase.FAILED,
    }


def test_an_ignored_event_says_why():
    state = replace(begin("t"), begun=True)
    assert isinstance(step(state, Begin(()))[1][0], Ignored)
