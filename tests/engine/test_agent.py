"""What a turn does, from the outside: with every dialect, sync and awaited."""

import asyncio
import threading
import time

import pytest

from wakeful.compaction.compactor import NoOp, WindowManager
from wakeful.conversation import AgentMemory
from wakeful.dialects import NAMES, get
from wakeful.engine.agent import Agent
from wakeful.engine.hooks import Park, Pin, Refuse, Rewrite, Veto
from wakeful.engine.stream import (
    ApprovalEvent,
    CompactionEvent,
    DoneEvent,
    ErrorEvent,
    RetryEvent,
    TextEvent,
    ToolResultEvent,
    UsageEvent,
)
from wakeful.engine.tools import ToolContext, tool
from wakeful.errors import AuthError, ConfigError, ContextOverflow, InvalidRequest, Overloaded, TurnError
from wakeful.needs import ChatRequest, Done, TextDelta, ToolCall, Usage
from wakeful.testing import Say, ScriptedModel


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def calls(*ids: str, name: str = "add", **arguments) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(each, name, arguments or {"a": 1, "b": 2}) for each in ids)


def agent(*script, tools=(add,), dialect="openai_chat", **options) -> Agent:
    model = script[0] if len(script) == 1 and callable(script[0]) else list(script)
    return Agent(ScriptedModel(model, dialect=dialect, strict=True), tools=tools, **options)


def kinds(events) -> list[str]:
    return [type(each).__name__ for each in events]


def results(events) -> dict[str, tuple[str, bool]]:
    return {e.call.id: (e.text, e.error) for e in events if isinstance(e, ToolResultEvent)}


# --- the stream ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", NAMES)
def test_a_turn_with_tools_is_valid_in_every_format(dialect):
    made = agent(Say("let me see", calls=calls("c1", "c2")), "three", "fine", dialect=dialect)
    events = list(made.stream("1 + 2?"))
    assert results(events) == {"c1": ("3", False), "c2": ("3", False)}
    assert events[-1].result.text == "three"
    assert made.run("thanks").text == "fine"
    assert not get(dialect).validate(list(made.session().messages()))


def test_run_is_a_fold_of_the_stream_and_stream_text_a_filter_of_it():
    script = (Say("one moment", calls=calls("c1")), "it is three")
    events = list(agent(*script).stream("?"))
    ran = agent(*script).run("?")
    told = events[-1].result
    assert (ran.text, ran.stop, ran.iterations, ran.totals) == (told.text, told.stop, told.iterations, told.totals)
    assert "".join(agent(*script).stream_text("?")) == "one momentit is three"
    assert kinds(events)[-1] == "DoneEvent"
    assert kinds(events).count("DoneEvent") == 1


def test_the_awaited_forms_do_the_same():
    script = (Say("one moment", calls=calls("c1", "c2")), "it is three")

    async def run():
        made = agent(*script)
        streamed = [event async for event in made.astream("?")]
        text = "".join([piece async for piece in agent(*script).astream_text("?")])
        return streamed, text, await agent(*script).arun("?")

    streamed, text, ran = asyncio.run(run())
    assert kinds(streamed) == kinds(agent(*script).stream("?"))
    assert text == "one momentit is three"
    assert ran.text == "it is three"


def test_messages_may_be_texts_native_or_several():
    made = agent("a", "b", "c")
    made.run({"role": "user", "content": "native"})
    made.run(["one", {"role": "user", "content": "two"}])
    contents = [each["content"] for each in made.session().messages() if each["role"] == "user"]
    assert contents == ["native", "one", "two"]


def test_a_session_runs_one_turn_at_a_time():
    made = agent("a", "b")
    first = made.stream("x")
    next(first)
    with pytest.raises(TurnError, match="steer"):
        made.run("y")
    first.close()
    assert made.run("y").text == "b"


def test_a_stream_that_nobody_reads_on_leaves_a_valid_conversation():
    made = agent(Say("", calls=calls("c1", "c2")), "after")
    stream = made.stream("x")
    for event in stream:
        if isinstance(event, ToolResultEvent):
            break
    stream.close()
    assert made.run("y").text == "after"
    assert not get("openai_chat").validate(list(made.session().messages()))


# --- failures --------------------------------------------------------------------------------------------------------


def test_a_failed_model_call_raises_as_it_came_and_the_next_turn_goes_on():
    made = agent(AuthError("no key"), "fine")
    with pytest.raises(AuthError, match="no key"):
        made.run("x")
    assert made.run("y").text == "fine"
    events = list(agent(InvalidRequest("bad")).stream("x"))
    failed = next(e for e in events if isinstance(e, ErrorEvent))
    assert failed.code == "invalid_request"
    assert events[-1].result.stop == "failed"


def test_a_model_that_raises_something_else_fails_the_turn_and_nothing_more():
    def broken(request):
        raise RuntimeError("a bug")

    made = agent(broken)
    with pytest.raises(RuntimeError, match="a bug"):
        made.run("x")
    assert made.session().turn() is None


class Halting(ScriptedModel):
    """Breaks off its first answer in the middle."""

    broken = False

    def stream(self, request):
        if not self.broken:
            self.broken = True
            yield TextDelta("The answer")
            raise Overloaded("busy", retry_after=0.0)
        yield TextDelta("The answer")
        yield TextDelta(" is 42")
        reply = self.chat(request)
        yield Done(reply)


def test_a_retry_is_told_and_its_text_is_shown_once():
    made = Agent(Halting(["The answer is 42"]))
    events = list(made.stream("?"))
    assert [type(e) for e in events[:2]] == [TextEvent, RetryEvent]
    assert "".join(Agent(Halting(["The answer is 42"])).stream_text("?")) == "The answer is 42"


def test_a_retryable_error_is_tried_again_up_to_the_limit():
    made = agent(Overloaded("1", retry_after=0.0), Overloaded("2", retry_after=0.0), "there", retries=2)
    assert made.run("x").text == "there"
    with pytest.raises(Overloaded):
        agent(*[Overloaded("no", retry_after=0.0)] * 3, retries=2).run("x")


# --- tools -----------------------------------------------------------------------------------------------------------


def test_tools_are_told_what_is_wrong_with_their_arguments_and_never_run():
    ran = []

    def touch(path: str, times: int = 1) -> str:
        """Touch a file."""
        ran.append(path)
        return "touched"

    wrong = [
        ToolCall("c1", "touch", {"path": 3}),
        ToolCall("c2", "touch", {}),
        ToolCall("c3", "touch", {"path": "a", "wat": 1}),
        ToolCall("c4", "nothing", {}),
        ToolCall("c5", "touch", {}, invalid='{"path": '),
        ToolCall("c6", "touch", {"path": "ok"}),
    ]
    made = agent(Say("", calls=tuple(wrong)), "done", tools=(touch,))
    messages = None
    made.run("x")
    messages = made.session().messages()
    told = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    assert ran == ["ok"]
    assert "must be string" in told["c1"]
    assert "path is missing" in told["c2"]
    assert "wat is unknown" in told["c3"]
    assert "no tool 'nothing'" in told["c4"]
    assert "not a JSON object" in told["c5"]
    assert list(told) == ["c1", "c2", "c3", "c4", "c5", "c6"]


def test_a_tool_that_raises_or_takes_too_long_is_an_error_result():
    gate = threading.Event()

    def explode() -> str:
        """Fail."""
        raise ValueError("boom")

    @tool(timeout=0.02)
    def hang() -> str:
        """Hang."""
        gate.wait(5)
        return "late"

    @tool(timeout=0.02)
    async def ahang() -> str:
        """Hang, awaited."""
        await asyncio.sleep(5)
        return "late"

    script = (
        Say("", calls=(ToolCall("c1", "explode", {}), ToolCall("c2", "hang", {}), ToolCall("c3", "ahang", {}))),
        "ok",
    )
    told = results(agent(*script, tools=(explode, hang, ahang)).stream("x"))

    async def run():
        found = results([e async for e in agent(*script, tools=(explode, hang, ahang)).astream("x")])
        gate.set()
        return found

    for each in (told, asyncio.run(run())):
        assert each["c1"] == ("ValueError: boom", True)
        assert all("did not finish" in each[c][0] and each[c][1] for c in ("c2", "c3"))


def test_calls_of_a_batch_run_at_the_same_time_unless_a_tool_runs_alone():
    def meeting(barrier):
        def meet(n: int) -> str:
            """Meet."""
            barrier.wait(2)
            return str(n)

        return meet

    script = (Say("", calls=tuple(ToolCall(f"c{n}", "meet", {"n": n}) for n in range(3))), "ok")
    told = results(agent(*script, tools=(meeting(threading.Barrier(3)),)).stream("x"))
    assert told == {f"c{n}": (str(n), False) for n in range(3)}

    running = []
    most = []

    @tool(alone=True)
    def single(n: int) -> str:
        """Run alone."""
        running.append(n)
        most.append(len(running))
        time.sleep(0.002)
        running.remove(n)
        return str(n)

    script = (Say("", calls=tuple(ToolCall(f"c{n}", "single", {"n": n}) for n in range(3))), "ok")
    agent(*script, tools=(single,)).run("x")
    assert max(most) == 1


def test_results_are_appended_in_the_order_of_the_calls_whoever_is_first():
    first = threading.Event()

    def slow() -> str:
        """Slow."""
        first.wait(2)
        return "slow"

    def fast() -> str:
        """Fast."""
        first.set()
        return "fast"

    made = agent(Say("", calls=(ToolCall("c1", "slow", {}), ToolCall("c2", "fast", {}))), "ok", tools=(slow, fast))
    events = list(made.stream("x"))
    assert list(results(events)) == ["c2", "c1"]
    assert [m["tool_call_id"] for m in made.session().messages() if m["role"] == "tool"] == ["c1", "c2"]


def test_a_tool_may_know_its_call_and_the_model_does_not_see_that():
    seen = []

    def who(context: ToolContext, name: str) -> str:
        """Tell."""
        seen.append((context.session, context.call_id, name))
        return "ok"

    made = agent(Say("", calls=(ToolCall("c1", "who", {"name": "ana"}),)), "ok", tools=(who,))
    made.run("x", session="s7")
    assert seen == [("s7", "c1", "ana")]
    assert list(made.parts.specs[0].parameters["properties"]) == ["name"]


def test_the_last_call_at_the_limit_has_no_tools_to_call():
    model = ScriptedModel([Say("", calls=calls("c1")), Say("", calls=calls("c2")), "enough"], strict=True)
    made = Agent(model, tools=[add], max_iterations=2)
    done = made.run("x")
    assert (done.text, done.stop, done.iterations) == ("enough", "iterations", 3)
    assert [each.tool_choice for each in model.requests] == ["auto", "auto", "none"]
    assert model.requests[-1].tools == model.requests[0].tools


def test_a_task_budget_falls_by_usage_and_ends_the_turn():
    usage = Usage(input_tokens=30, output_tokens=10)
    script = (
        Say("", calls=calls("c1"), usage=usage),
        Say("", calls=calls("c2"), usage=usage),
        Say("enough", usage=usage),
    )
    done = agent(*script, budget=80).run("x")
    assert (done.text, done.stop, done.remaining) == ("enough", "budget", 0)
    assert agent("hi", budget=10**6).run("x").remaining < 10**6


# --- approvals -------------------------------------------------------------------------------------------------------


def parked(**options) -> Agent:
    @tool(approve=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    script = (
        Say("", calls=(ToolCall("c1", "pay", {"amount": 5}), *calls("c2"), ToolCall("c3", "pay", {"amount": 7}))),
        "ok",
    )
    return agent(*script, tools=(pay, add), **options)


def test_a_parked_turn_waits_and_undecided_means_rejected():
    made = parked()
    first = made.run("x")
    assert (first.stop, [c.id for c in first.approvals]) == ("awaiting_approval", ["c1", "c3"])
    assert made.session().turn() is not None
    events = list(made.resume(decisions={"c3": True}))
    assert events[-1].result.text == "ok"
    told = {m["tool_call_id"]: m["content"] for m in made.session().messages() if m["role"] == "tool"}
    assert list(told) == ["c1", "c2", "c3"]
    assert "nobody approved" in told["c1"]
    assert (told["c2"], told["c3"]) == ("3", "paid 7")
    with pytest.raises(TurnError, match="no turn"):
        list(made.resume(decisions={"c1": True}))


def test_a_new_message_to_a_parked_turn_rejects_what_waits():
    made = parked()
    made.run("x")
    assert made.run("never mind").text == "ok"
    assert not get("openai_chat").validate(list(made.session().messages()))
    assert not any("paid" in str(m) for m in made.session().messages())


def test_an_approver_decides_on_the_spot():
    asked = []

    def approve(waiting):
        asked.append([c.id for c in waiting])
        return {"c1": True, "c3": "too much"}

    made = parked(approve=approve)
    events = list(made.stream("x"))
    assert [type(e) for e in events].count(ApprovalEvent) == 1
    assert asked == [["c1", "c3"]]
    assert results(events)["c1"] == ("paid 5", False)
    assert any("too much" in str(m) for m in made.session().messages())


def test_an_approver_that_raises_rejects():
    def approve(waiting):
        raise RuntimeError("phone is off")

    made = parked(approve=approve)
    made.run("x")
    assert not any("paid" in str(m) for m in made.session().messages())


# --- steering and cancelling -----------------------------------------------------------------------------------------


def test_a_message_to_a_running_turn_is_read_before_the_next_model_call():
    def script(request: ChatRequest):
        if any("also this" in str(m) for m in request.messages):
            return "both done"
        return Say("", calls=calls(f"c{len(request.messages)}"))

    made = agent(script)
    events = []
    for event in made.stream("x"):
        events.append(event)
        if isinstance(event, ToolResultEvent) and event.call.id == "c1":
            made.steer("also this")
    assert events[-1].result.text == "both done"
    roles = [m["role"] for m in made.session().messages()]
    assert roles == ["user", "assistant", "tool", "user", "assistant"]


@pytest.mark.parametrize("dialect", ["openai_chat", "gemini", "bedrock", "anthropic"])
def test_cancelling_while_tools_run_answers_every_call(dialect):
    def stop() -> str:
        """Cancel the turn from inside."""
        made.cancel()
        return "stopped"

    made = agent(
        Say("", calls=(ToolCall("c1", "stop", {}), *calls("c2"))),
        "next",
        tools=(stop, add),
        dialect=dialect,
        parallel=1,
    )
    done = made.run("x")
    assert done.stop == "cancelled"
    assert not get(dialect).validate(list(made.session().messages()))
    assert made.run("go on").text == "next"
    assert not get(dialect).validate(list(made.session().messages()))


def test_cancelling_in_the_middle_of_an_answer_drops_what_was_not_finished():
    made = agent("a long answer of many words", "fresh")
    texts = []
    for event in made.stream("x"):
        if isinstance(event, TextEvent):
            texts.append(event.text)
            made.cancel()
    assert texts == ["a"]
    assert [m["role"] for m in made.session().messages()] == ["user"]
    assert made.run("y").text == "fresh"


def test_cancelling_ends_a_wait_at_once():
    made = agent(Overloaded("busy", retry_after=50.0), "never")
    started = time.monotonic()
    for event in made.stream("x"):
        if isinstance(event, RetryEvent):
            made.cancel()
    assert time.monotonic() - started < 5


def test_cancelling_an_awaited_turn_stops_its_tools():
    stopped = []

    async def wait() -> str:
        """Wait long."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append(True)
            raise
        return "late"

    async def run():
        made = agent(Say("", calls=(ToolCall("c1", "wait", {}),)), "never", tools=(wait,))

        async def soon():
            await asyncio.sleep(0.01)
            made.cancel()

        other = asyncio.ensure_future(soon())
        done = await made.arun("x")
        await other
        return done, made.session().messages()

    done, messages = asyncio.run(run())
    assert done.stop == "cancelled"
    assert stopped == [True]
    assert not get("openai_chat").validate(list(messages))


# --- hooks -----------------------------------------------------------------------------------------------------------


def test_hooks_may_refuse_rewrite_and_replace():
    def before_tool(call, info):
        if call.id == "c1":
            return Refuse("not on Sundays")
        return Rewrite({"a": 40, "b": 2}) if call.id == "c2" else None

    hooks = {
        "before_tool": before_tool,
        "after_tool": lambda call, outcome, info: f"<{outcome.text}>" if call.id == "c3" else None,
    }
    events = list(agent(Say("", calls=calls("c1", "c2", "c3")), "ok", hooks=hooks).stream("x"))
    assert results(events) == {"c2": ("42", False), "c3": ("<3>", False)}


def test_before_model_may_change_the_request_and_after_model_sees_the_reply():
    seen = []

    class Watch:
        def before_model(self, request, info):
            return ChatRequest(messages=request.messages, system="Be brief.")

        def after_model(self, reply, info):
            seen.append((reply.text, info.iteration))

    model = ScriptedModel(["hi"])
    Agent(model, hooks=Watch()).run("x")
    assert model.requests[0].system == "Be brief."
    assert seen == [("hi", 0)]


def test_a_hook_that_raises_is_isolated_and_a_guard_that_raises_refuses():
    def broken(*args):
        raise RuntimeError("bug in a hook")

    points = ("before_model", "after_model", "after_tool", "before_compact", "after_compact")
    made = agent(Say("", calls=calls("c1")), "ok", hooks=dict.fromkeys(points, broken))
    assert made.run("x").text == "ok"
    guarded = agent(Say("", calls=calls("c1")), "ok", hooks={"before_tool": broken})
    guarded.run("x")
    assert "check of add failed" in str(guarded.session().messages())


@pytest.mark.parametrize(
    ("hooks", "says"),
    [
        ({"before_tool": lambda call: None}, "2 positional"),
        ({"after_compact": lambda: None}, "2 positional"),
        ({"after_tool": lambda a, b: None}, "3 positional"),
        ({"before_lunch": lambda a, b: None}, "unknown hook point"),
        ({"before_tool": "nope"}, "not callable"),
        ((object(),), "no hook"),
    ],
)
def test_a_hook_with_a_wrong_signature_is_refused_when_the_agent_is_made(hooks, says):
    with pytest.raises(ConfigError, match=says):
        agent("x", hooks=hooks)


def test_async_hooks_tools_and_approvers_serve_both_shells():
    async def before_tool(call, info):
        return Park()

    async def approve(waiting):
        return {c.id: True for c in waiting}

    script = (Say("", calls=calls("c1")), "ok")
    options = {"hooks": {"before_tool": before_tool}, "approve": approve}
    assert results(agent(*script, **options).stream("x")) == {"c1": ("3", False)}
    assert asyncio.run(agent(*script, **options).arun("x")).text == "ok"


def test_policies_judge_calls():
    events = list(agent(Say("", calls=calls("c1")), "ok", policies=[("deny_tools", {"tools": ["add"]})]).stream("x"))
    assert results(events) == {}
    waiting = agent(Say("", calls=calls("c1")), "ok", policies=["approve_tools"])
    assert waiting.run("x").stop == "awaiting_approval"
    with pytest.raises(ConfigError, match="no option colour"):
        agent("x", policies=[("deny_tools", {"colour": "red"})])


# --- compaction ------------------------------------------------------------------------------------------------------


class Spy:
    """A compactor that keeps the last messages, and what it was told."""

    def __init__(self, keep: int | None = None, flavour: str = "plain") -> None:
        self.keep, self.flavour, self.seen = keep, flavour, []

    def maybe_compact(self, acc, ctx):
        self.seen.append((ctx.model, ctx.window, ctx.mid_round, ctx.prompt_tokens > 0))
        return {"plain": self.work, "async": self.awork, "flow": self.flow}[self.flavour](acc)

    def work(self, acc):
        branch = acc.memory.branch()
        if self.keep is None or len(branch) <= self.keep:
            return acc, {"compacted": False}
        from dataclasses import replace

        gone = [e for e in branch[: -self.keep] if not e.pinned]
        if not gone:
            return acc, {"compacted": False}
        kept = acc.memory.with_branch([e for e in branch if e not in gone])
        return replace(acc, memory=kept), {
            "compacted": True,
            "dropped": list(gone),
            "tokens_removed": 3,
            "strategy": "spy",
        }

    async def awork(self, acc):
        return self.work(acc)

    def flow(self, acc):
        return self.work(acc)
        yield


@pytest.mark.parametrize("flavour", ["plain", "async", "flow"])
def test_the_compactor_is_called_at_both_boundaries_with_its_context(flavour):
    spy = Spy(flavour=flavour)
    made = agent(Say("", calls=calls("c1", "c2")), "ok", compactor=spy, context_window=9000, system="Be kind.")
    made.run("x")
    assert spy.seen == [("scripted", 9000, False, True), ("scripted", 9000, True, True)]


def test_what_the_compactor_dropped_reaches_the_hooks_before_the_next_model_call():
    order = []

    def script(request):
        order.append(("model", len(request.messages)))
        return "ok"

    hooks = {"after_compact": lambda meta, info: order.append(("dropped", len(meta["dropped"])))}
    made = agent(script, compactor=Spy(keep=1), context_window=9000, hooks=hooks)
    made.run("one")
    made.run("two")
    assert order == [("model", 1), ("dropped", 2), ("model", 1)]


def test_a_hook_may_veto_a_compaction_or_pin_entries_and_is_asked_only_when_one_is_at_hand():
    asked = []

    def veto(memory, info):
        asked.append(len(memory.branch()))
        return Veto("not now")

    made = agent("a", "b", compactor=Spy(keep=1), context_window=9000, hooks={"before_compact": veto})
    made.run("one")
    made.run("two")
    assert asked == [3]
    assert len(made.session().messages()) == 4

    def pin(memory, info):
        return Pin((memory.branch()[0].id,))

    made = agent("a", "b", compactor=Spy(keep=1), context_window=9000, hooks={"before_compact": pin})
    made.run("one")
    made.run("two")
    assert [m["content"] for m in made.session().messages()] == ["one", "two", "b"]


def test_a_compactor_that_fails_changes_nothing_and_the_turn_goes_on():
    class Broken:
        def maybe_compact(self, acc, ctx):
            raise RuntimeError("broken")

    made = agent("a", compactor=Broken(), context_window=9000)
    events = list(made.stream("x"))
    meta = next(e.meta for e in events if isinstance(e, CompactionEvent))
    assert "broken" in meta["error"]
    assert events[-1].result.text == "a"


@pytest.mark.parametrize("compactor", [object(), type("Near", (), {"maybe_compact": lambda self, acc: acc})()])
def test_a_near_miss_of_a_compactor_is_refused(compactor):
    with pytest.raises(ConfigError):
        agent("x", compactor=compactor, context_window=10)


def test_an_unknown_window_is_refused_unless_the_compactor_needs_none():
    with pytest.raises(ConfigError, match="context_window"):
        agent("x", compactor=WindowManager())
    assert agent("x", compactor=NoOp()).run("y").text == "x"


def test_a_long_conversation_stays_inside_the_window():
    def script(request):
        n = len(request.messages)
        return Say("", calls=calls(f"c{made.rounds}", name="look", n=n)) if made.rounds % 7 else "so far so good"

    def look(n: int) -> str:
        """Look."""
        made.rounds += 1
        return f"result {n} " + "lorem ipsum dolor " * 60

    made = agent(script, tools=(look,), compactor=WindowManager(reserve=500), context_window=6000)
    made.rounds = 1
    compactions = 0
    for turn in range(6):
        for event in made.stream(f"turn {turn}"):
            if isinstance(event, CompactionEvent):
                compactions += 1
                assert event.meta["tokens_after"] <= 5500
        made.rounds += 1
    assert compactions > 1
    assert not get("openai_chat").validate(list(made.session().messages()))
    gauge = made.session().gauge()
    assert 0 < gauge["tokens"] <= 6000


def test_an_overflow_is_compacted_harder_once_and_the_request_is_smaller():
    sizes = []

    def script(request):
        size = len(str(request.messages))
        if request.messages[-1]["content"] == "now":
            sizes.append(size)
            if len(sizes) == 1:
                return ContextOverflow("prompt is too long: 9 tokens > 8 maximum")
        return "words " * 300

    made = agent(script, compactor=WindowManager(keep_recent=1), context_window=200_000)
    for turn in range(6):
        made.run(f"turn {turn}")
    assert made.run("now").ok
    assert sizes[1] < sizes[0]


def test_an_overflow_that_nothing_can_shrink_fails_with_the_providers_error():
    def script(request):
        return ContextOverflow("prompt is too long")

    with pytest.raises(ContextOverflow):
        agent(script, compactor=WindowManager(), context_window=200_000).run("now")
    with pytest.raises(ContextOverflow):
        agent(script).run("now")


def test_a_summarisers_words_and_calls_never_reach_the_users_stream():
    summarizer = ScriptedModel(lambda request: "SECRET SUMMARY OF WHAT WAS SAID: code 7741, order A-19.", name="small")
    made = agent(
        lambda request: "a fairly long answer with code 7741 and order A-19 in it " * 30,
        compactor=WindowManager("summarize", keep_recent=1, summarizer=summarizer, reserve=200),
        context_window=3000,
    )
    events = [event for turn in range(8) for event in made.stream(f"turn {turn}")]
    assert summarizer.requests
    assert not any(isinstance(e, TextEvent) and "SECRET" in e.text for e in events)
    roles = {e.role for e in events if isinstance(e, UsageEvent)}
    assert roles == {"main", "summarizer"}
    assert not any("SECRET" in e.result.text for e in events if isinstance(e, DoneEvent))


# --- sessions in the process -----------------------------------------------------------------------------------------


def test_sessions_are_apart_and_can_be_forked_rewound_and_undone():
    made = agent(lambda request: f"{len(request.messages)} messages", compactor=Spy(), context_window=9000)
    made.run("a", session="one")
    made.run("b", session="two")
    handle = made.session("one")
    fork = handle.fork("three")
    made.run("c", session="three")
    assert [len(made.session(each).messages()) for each in ("one", "two", "three")] == [2, 2, 4]
    made.run("d", session="one")
    first = handle.memory().branch()[1].id
    handle.rewind(first)
    assert len(handle.messages()) == 2
    assert made.run("e", session="one").text == "3 messages"
    assert len(fork.messages()) == 4
    assert handle.undo() is False


def test_a_compaction_can_be_asked_for_and_taken_back():
    made = agent(lambda request: "words " * 200, compactor=WindowManager(keep_recent=1), context_window=100_000)
    for turn in range(6):
        made.run(f"turn {turn}")
    handle = made.session()
    before = handle.messages()
    meta = handle.compact("the numbers")
    assert meta["compacted"]
    assert len(handle.messages()) < len(before)
    assert len(handle.history()) >= len(handle.messages())
    made.run("and on")
    assert handle.undo()
    assert handle.messages()[: len(before)] == before
    assert len(handle.messages()) == len(before) + 2


def test_messages_can_be_appended_between_turns():
    made = agent("ok")
    handle = made.session()
    ids = handle.append(["imported", {"role": "assistant", "content": "before"}])
    assert len(ids) == 2
    made.run("x")
    assert [m["content"] for m in handle.messages()] == ["imported", "before", "x", "ok"]


def test_a_dangling_call_is_answered_before_the_next_turn():
    made = agent("ok")
    dangling = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c9", "type": "function", "function": {"name": "add", "arguments": "{}"}}],
    }
    made.session().append(["hi", dangling])
    assert made.run("x").text == "ok"
    assert [m["role"] for m in made.session().messages()] == ["user", "assistant", "tool", "user", "assistant"]


def test_memory_is_a_value_that_hooks_may_read():
    seen = []
    hooks = {"before_compact": lambda memory, info: seen.append(memory)}
    made = agent("a", "b", compactor=Spy(keep=1), context_window=9000, hooks=hooks)
    made.run("x")
    made.run("y")
    assert isinstance(seen[0], AgentMemory)
