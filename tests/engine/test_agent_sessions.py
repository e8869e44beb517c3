"""Turns over a session store: reloads, takeovers, and a crash between any two effects."""

import asyncio
import contextlib
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.compaction.compactor import WindowManager
from wakeful.dialects import NAMES, get
from wakeful.engine.agent import Agent
from wakeful.engine.stream import CompactionEvent, DoneEvent, ToolResultEvent
from wakeful.engine.tools import tool
from wakeful.errors import AuthError, InputError, StaleWriter, StoreBusy
from wakeful.needs import ToolCall
from wakeful.ops_session import SessionClaim, SessionLoad
from wakeful.stores.sessions.inmemory import InMemorySessions
from wakeful.stores.sessions.sqlite import SqliteSessions
from wakeful.testing import Say, ScriptedModel

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Crash(BaseException):
    """The process is gone."""


class Flaky:
    """A store at whose n-th write the process dies, before it or after it."""

    def __init__(self, inner, at=None, after=False):
        self.inner, self.at, self.after, self.count = inner, at, after, 0

    def execute(self, ops):
        self.count += 1
        if self.count == self.at and not self.after:
            raise Crash
        done = self.inner.execute(ops)
        if self.count == self.at:
            raise Crash
        return done

    async def aexecute(self, ops):
        return self.execute(ops)


class World:
    """What lies outside of the process: effects of tools, by call id."""

    def __init__(self):
        self.effects: list[str] = []

    def tool(self):
        from wakeful.engine.tools import ToolContext

        def act(context: ToolContext, n: int) -> str:
            """Act."""
            self.effects.append(context.call_id)
            return f"acted {n}"

        return act


def script(request):
    """Two batches, then an answer: decided by the conversation alone, as a model does."""
    asked = sum(1 for m in request.messages if m["role"] == "assistant" and m.get("tool_calls"))
    since = len([m for m in request.messages if m["role"] == "user"])
    if asked >= 2 * since:
        return f"answer {since}"
    base = asked * 10
    return Say("", calls=tuple(ToolCall(f"c{base + i}", "act", {"n": base + i}) for i in range(2)))


def make(store, world, **options):
    return Agent(ScriptedModel(script, strict=True), tools=[world.tool()], sessions=store, parallel=1, **options)


def writes_of_a_turn() -> int:
    store = Flaky(InMemorySessions())
    make(store, World()).run("go", session="s")
    return store.count


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_at_any_write_leaves_a_session_that_goes_on_and_no_tool_runs_twice(after):
    total = writes_of_a_turn()
    assert total > 8
    for at in range(1, total + 1):
        inner, world = InMemorySessions(), World()
        with contextlib.suppress(Crash):
            make(Flaky(inner, at, after), world).run("go", session="s")
        again = make(inner, world)
        handle = again.session("s")
        if handle.turn() is not None:
            events = list(again.resume("s"))
            assert events[-1].result.stop == "end"
        else:
            again.run("go", session="s")
        messages = handle.messages()
        assert not get("openai_chat").validate(list(messages), open_tail=False)
        assert len(set(world.effects)) == len(world.effects)
        assert messages[0]["content"] == "go"
        assert messages[-1]["content"].startswith("answer")
        assert again.run("more", session="s").text.startswith("answer")
        assert len(set(world.effects)) == len(world.effects)


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(1, 14), st.booleans()), min_size=1, max_size=4))
def test_any_number_of_crashes_in_a_row_lose_nothing_that_was_written(crashes):
    inner, world = InMemorySessions(), World()
    said = ["go"]
    for at, after in crashes:
        agent = make(Flaky(inner, at, after), world)
        before = make(inner, World()).session("s").history()
        try:
            if agent.session("s").turn() is not None:
                list(agent.resume("s"))
            else:
                agent.run(said[-1], session="s")
        except Crash:
            pass
        kept = make(inner, World()).session("s").history()
        assert kept[: len(before)] == before
        assert len(set(world.effects)) == len(world.effects)
    again = make(inner, world)
    assert again.run("end", session="s").text.startswith("answer")
    assert not get("openai_chat").validate(list(again.session("s").messages()), open_tail=False)
    assert len(set(world.effects)) == len(world.effects)


@pytest.mark.parametrize("dialect", NAMES)
def test_a_reload_gives_the_same_messages_in_every_format(dialect, tmp_path):
    replies = [
        Say("thinking aloud", calls=(ToolCall("c1", "act", {"n": 1}), ToolCall("c2", "act", {"n": 2})), thinking="hm"),
        "done",
        "hello again",
    ]
    store = SqliteSessions(tmp_path / "s.db")
    first = Agent(ScriptedModel(replies[:2], dialect=dialect), tools=[World().tool()], sessions=store)
    first.run("go ünï 🦊", session="s")
    second = Agent(ScriptedModel(replies[2:], dialect=dialect, strict=True), sessions=store)
    assert second.session("s").messages() == first.session("s").messages()
    assert second.run("hi", session="s").text == "hello again"
    assert second.session("s").history() == list(second.session("s").messages())
    store.close()


def long_answer(request):
    return "words and more words of an answer " * 40


def test_a_reload_gives_the_compacted_view_and_does_not_compact_again():
    store = InMemorySessions()
    summaries = []

    def summarize(request):
        summaries.append(request)
        return "A record of what was said: the answer has words, more words, turn 0, turn 1, turn 2, turn 3."

    def new():
        manager = WindowManager(
            "summarize", keep_recent=1, reserve=200, target=0.5, summarizer=ScriptedModel(summarize, name="small")
        )
        return Agent(ScriptedModel(long_answer, strict=True), compactor=manager, context_window=2500, sessions=store)

    first = new()
    for turn in range(14):
        first.run(f"turn {turn}", session="s")
    paid = len(summaries)
    assert paid >= 1
    shown = first.session("s").messages()
    second = new()
    assert second.session("s").messages() == shown
    assert len(second.session("s").history()) == 28
    events = list(second.stream("one more", session="s"))
    fresh = [e for e in events if isinstance(e, CompactionEvent)]
    assert len(summaries) == paid + len(fresh)
    (stored,) = store.execute((SessionLoad(session="s"),))
    assert stored.compaction is not None
    assert stored.compaction.covered


def test_a_cleared_or_merged_view_survives_a_reload():
    def look(n: int) -> str:
        """Look."""
        return f"result {n}: " + "lorem ipsum dolor sit amet " * 60

    def walk(request):
        last = request.messages[-1]
        parts = last.get("parts", [])
        if any("functionResponse" in p for p in parts):
            return "seen"
        return Say("", calls=(ToolCall(f"c{len(request.messages)}-{id(request)}", "look", {"n": 1}),))

    store = InMemorySessions()

    def new():
        model = ScriptedModel(walk, dialect="gemini", strict=True)
        return Agent(model, tools=[look], compactor=WindowManager(reserve=200), context_window=2500, sessions=store)

    first = new()
    for turn in range(8):
        first.run(f"turn {turn}", session="s")
        if turn == 5:
            list(first.stream("left alone", session="s"))
    assert new().session("s").messages() == first.session("s").messages()
    second = new()
    assert second.session("s").memory().branch() == first.session("s").memory().branch()


def test_undo_and_rewind_and_fork_are_stored():
    store = InMemorySessions()

    def new():
        manager = WindowManager(keep_recent=1)
        return Agent(ScriptedModel(long_answer), compactor=manager, context_window=100_000, sessions=store)

    first = new()
    for turn in range(5):
        first.run(f"turn {turn}", session="s")
    whole = first.session("s").messages()
    assert first.session("s").compact()["compacted"]
    small = new().session("s").messages()
    assert len(small) < len(whole)
    fork = new().session("s").fork("f")
    assert fork.messages() == small
    assert new().session("s").undo()
    assert new().session("s").messages() == whole
    assert new().session("f").messages() == small
    at = new().session("s").memory().branch()[1].id
    new().session("s").rewind(at)
    assert new().session("s").messages() == whole[:2]
    assert len(new().session("f").history()) == 10


# --- writers ---------------------------------------------------------------------------------------------------------


def test_a_writer_that_was_overtaken_stops_and_changes_nothing():
    store, world = InMemorySessions(), World()
    old = make(store, world)
    stream = old.stream("go", session="s")
    for event in stream:
        if isinstance(event, ToolResultEvent):
            break
    (claimed,) = store.execute((SessionClaim(session="s", dialect="openai_chat", at=NOON),))
    (before,) = store.execute((SessionLoad(session="s", full=True),))
    ran = list(world.effects)
    with pytest.raises(StaleWriter):
        list(stream)
    assert world.effects == ran
    assert store.execute((SessionLoad(session="s", full=True),)) == (before,)
    assert claimed.epoch > 1


class Busy:
    """A store that refuses its n-th write and goes on."""

    def __init__(self, inner, at):
        self.inner, self.at, self.count = inner, at, 0

    def execute(self, ops):
        self.count += 1
        if self.count == self.at:
            raise StoreBusy
        return self.inner.execute(ops)


def test_a_write_that_fails_is_not_shown_as_if_it_had_been_made():
    for at in range(1, writes_of_a_turn() + 1):
        inner, world = InMemorySessions(), World()
        agent = make(Busy(inner, at), world)
        with pytest.raises(StoreBusy):
            agent.run("go", session="s")
        assert agent.session("s").messages() == make(inner, world).session("s").messages()
        assert agent.run("again", session="s").text.startswith("answer")
        assert agent.session("s").history() == list(make(inner, world).session("s").messages())
        assert not get("openai_chat").validate(list(agent.session("s").messages()), open_tail=False)
        assert len(set(world.effects)) == len(world.effects)


def test_a_stream_that_is_left_shows_what_was_written():
    store, world = InMemorySessions(), World()
    length = len(list(make(InMemorySessions(), World()).stream("go", session="s")))
    for steps in range(1, length + 1):
        agent = make(store, world)
        stream = agent.stream("go", session=f"s{steps}")
        for _ in range(steps):
            next(stream)
        stream.close()
        handle = agent.session(f"s{steps}")
        assert handle.messages() == make(store, world).session(f"s{steps}").messages()
        assert agent.run("more", session=f"s{steps}").text.startswith("answer")


def test_a_writer_that_nobody_overtook_does_not_read_its_session_again():
    class Counting:
        def __init__(self):
            self.inner, self.loads = InMemorySessions(), 0

        def execute(self, ops):
            self.loads += sum(isinstance(op, SessionLoad) for op in ops)
            return self.inner.execute(ops)

    store = Counting()
    agent = Agent(ScriptedModel(["a", "b", AuthError("no"), "c", "d"]), sessions=store)
    agent.run("1", session="s")
    list(agent.stream_text("2", session="s"))
    with pytest.raises(AuthError):
        agent.run("3", session="s")
    next(event for event in agent.stream("4", session="s") if isinstance(event, DoneEvent))
    agent.run("5", session="s")
    assert store.loads == 1


def test_two_workers_that_take_turns_see_each_others_messages():
    store = InMemorySessions()
    one, two = (Agent(ScriptedModel(lambda r: f"{len(r.messages)}"), sessions=store) for _ in range(2))
    assert [w.run("x", session="s").text for w in (one, two, one, one, two)] == ["1", "3", "5", "7", "9"]


def test_looking_at_a_session_takes_nothing_from_its_writer():
    store, world = InMemorySessions(), World()
    working, looking = make(store, world), make(store, World())
    for _ in working.stream("go", session="s"):
        handle = looking.session("s")
        assert handle.turn() is None or not handle.turn().terminal
        assert len(handle.messages()) == len(handle.history()) == len(handle.memory().branch())
    assert working.session("s").messages()[-1]["content"] == "answer 1"


def test_a_parked_turn_is_decided_in_another_process():
    store, paid = InMemorySessions(), []

    def new():
        @tool(approve=True)
        def pay(amount: int) -> str:
            """Pay."""
            paid.append(amount)
            return "paid"

        def asks(request):
            if request.messages[-1]["role"] == "tool":
                return "thank you"
            return Say("", calls=(ToolCall("c1", "pay", {"amount": 5}), ToolCall("c2", "pay", {"amount": 6})))

        return Agent(ScriptedModel(asks, strict=True), tools=[pay], sessions=store)

    assert new().run("buy", session="s").stop == "awaiting_approval"
    state = new().session("s").turn()
    assert [c.status for c in state.calls] == ["parked", "parked"]
    done = list(new().resume("s", {"c2": True}))[-1].result
    assert (done.text, paid) == ("thank you", [6])
    assert new().session("s").turn() is None


def test_a_dangling_call_in_a_store_is_repaired_once_by_one_owner():
    store = InMemorySessions()
    dangling = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c9", "type": "function", "function": {"name": "act", "arguments": "{}"}}],
    }
    Agent(ScriptedModel([]), sessions=store).session("s").append(["hi", dangling])
    one, two = (Agent(ScriptedModel(["ok"]), sessions=store) for _ in range(2))
    one.session("s").messages()
    assert two.run("x", session="s").text == "ok"
    assert one.run("y", session="s").text == "ok"
    history = two.session("s").history()
    assert [m["role"] for m in history].count("tool") == 1


def test_a_session_of_another_format_is_refused_in_words():
    store = InMemorySessions()
    Agent(ScriptedModel(["a"]), sessions=store).run("x", session="s")
    with pytest.raises(InputError, match="openai_chat"):
        Agent(ScriptedModel(["b"], dialect="anthropic"), sessions=store).run("y", session="s")


def test_the_awaited_shell_writes_the_same():
    store, world = InMemorySessions(), World()

    async def run():
        return await make(store, world).arun("go", session="s")

    assert asyncio.run(run()).text == "answer 1"
    assert make(store, world).session("s").messages()[-1]["content"] == "answer 1"
    (stored,) = store.execute((SessionLoad(session="s"),))
    assert stored.turn is None


def test_a_failed_turn_is_stored_as_failed_and_the_session_goes_on():
    store = InMemorySessions()
    failing = Agent(ScriptedModel([RuntimeError("bug"), "fine"]), sessions=store)
    with pytest.raises(RuntimeError):
        failing.run("x", session="s")
    (stored,) = store.execute((SessionLoad(session="s"),))
    assert json.loads(json.dumps(stored.turn))["phase"] == "failed"
    assert failing.run("y", session="s").text == "fine"
