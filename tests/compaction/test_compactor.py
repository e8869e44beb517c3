"""The Compactor contract, by its tables: what ``ctx`` means, what ``meta`` holds, what is refused and where."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from wakeful import AgentMemory, NoOp, WindowManager
from wakeful.compaction.compactor import CompactContext, check_compactor, needs_window, step
from wakeful.compaction.result import CompactionMeta
from wakeful.dialects import get
from wakeful.dialects.protocol import Thinking
from wakeful.engine.answer import answers
from wakeful.engine.drive import adrive, drive
from wakeful.errors import ConfigError, StoreError
from wakeful.needs import Call, call
from wakeful.testing import ScriptedModel
from wakeful.testing.conversations import Assistant, Result, Results, User, conversation, random_conversation
from wakeful.testing.conversations import Call as MakeCall

STRATEGIES = ("oldest_first", "sliding_window", "summarize", "clear", "ladder")


@dataclass(frozen=True)
class Acc:
    memory: AgentMemory
    name: str = "agent"


class Named(NamedTuple):
    memory: AgentMemory
    name: str = "agent"


def loop(dialect: str = "openai_chat", rounds: int = 20, thinking: str = "hm") -> list[Any]:
    """One user's message and a tool loop that is still running."""
    steps: list[Any] = [User("Read every part and report.")]
    for i in range(rounds):
        steps.append(Assistant("", (MakeCall(f"c{i}", "read", {"part": i}),), thinking))
        steps.append(Results((Result(f"c{i}", "read", f"part {i}: " + "value " * 60),)))
    return conversation(dialect, *steps)


def run(compactor: Any, acc: Any, **ctx: Any) -> tuple[Any, CompactionMeta]:
    return drive(step(compactor, acc, CompactContext(**ctx)), answers(None, None))


def test_noop_gives_the_identical_object_and_looks_nothing_up() -> None:
    acc = Acc(AgentMemory.of(loop()))
    same, meta = NoOp().maybe_compact(acc, None)
    assert same is acc
    assert meta.compacted is False
    assert dict(meta) == {"compacted": False, "reason": "off"}
    assert needs_window(NoOp()) is False
    assert needs_window(WindowManager()) is True
    assert needs_window(SimpleNamespace(maybe_compact=None)) is True


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("mid_round", [False, True])
def test_while_it_fits_the_memory_is_the_same_object(strategy: str, mid_round: bool) -> None:
    acc = Acc(AgentMemory.of(loop()))
    same, meta = run(WindowManager(strategy), acc, window=1_000_000, mid_round=mid_round)
    assert same is acc
    assert (meta.compacted, meta.reason, meta["dropped"], meta.get("error")) == (False, "fits", None, None)
    assert "dropped" not in meta
    assert meta.tokens_before == meta.tokens_after


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_meta_holds_after_a_compaction(strategy: str) -> None:
    acc = Acc(AgentMemory.of(loop()))
    changed, meta = run(WindowManager(strategy, reserve=0, keep_recent=3), acc, window=1_500, mid_round=True)
    assert changed is not acc
    assert changed.name == acc.name
    assert acc.memory.history() == loop()
    assert meta.compacted is True
    assert meta["strategy"] == strategy
    assert meta.tokens_after < meta.tokens_before  # type: ignore[operator]
    assert meta.tokens_removed is not None
    assert meta.tokens_removed > 0
    assert bool(meta.dropped) == (strategy != "clear")
    assert set(meta) <= set(CompactionMeta.__dataclass_fields__)
    with pytest.raises(KeyError):
        meta["no_such_key"]


@pytest.mark.parametrize(
    "acc",
    [
        Acc(AgentMemory.of(loop())),
        Named(AgentMemory.of(loop())),
        SimpleNamespace(memory=AgentMemory.of(loop()), name="agent"),
    ],
)
def test_any_value_with_a_memory_will_do_and_differs_only_there(acc: Any) -> None:
    before = acc.memory
    changed, _ = run(WindowManager("oldest_first", reserve=0), acc, window=1_500)
    assert type(changed) is type(acc)
    assert changed is not acc
    assert acc.memory is before
    assert changed.memory is not before
    assert changed.name == "agent"


def test_mid_round_the_trigger_is_the_whole_room_whatever_the_option_says() -> None:
    acc = Acc(AgentMemory.of(loop()))
    size = run(WindowManager(), acc, window=10**6)[1].tokens_before
    assert size is not None
    manager = WindowManager("oldest_first", reserve=0, trigger=0.5)
    window = round(size * 1.2)
    assert run(manager, acc, window=window, mid_round=True)[0] is acc
    assert run(manager, acc, window=window)[0] is not acc


@pytest.mark.parametrize("dialect", ["anthropic", "bedrock", "langchain", "openai_responses"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_running_loop_loses_its_thinking_and_says_so_and_keeps_calls_and_results(dialect: str, strategy: str) -> None:
    messages = loop(dialect)
    kind = get(dialect)
    changed, meta = run(
        WindowManager(strategy, reserve=0, keep_recent=3, dialect=dialect),
        Acc(AgentMemory.of(messages)),
        window=1_500,
        mid_round=True,
    )
    assert meta.compacted
    assert meta.thinking_off is True
    history = changed.memory.history()
    assert not any(isinstance(b, Thinking) for m in history for b in kind.read(m).blocks)
    assert not kind.validate(history)
    assert kind.weigh(history[-1], lambda *_: 0).results == kind.weigh(messages[-1], lambda *_: 0).results


def test_gemini_keeps_the_signatures_of_the_current_turn() -> None:
    changed, meta = run(
        WindowManager("oldest_first", reserve=0, dialect="gemini"), Acc(AgentMemory.of(loop("gemini"))), window=1_500
    )
    assert meta.compacted
    calls = [p for m in changed.memory.history() for p in m["parts"] if "functionCall" in p]
    assert calls
    assert all("thoughtSignature" in part for part in calls)


def test_a_pinned_entry_is_never_dropped() -> None:
    memory = AgentMemory.of(random_conversation("anthropic", 4, 12, media=False))
    pinned = memory.branch()[6]
    changed, meta = run(WindowManager("oldest_first", reserve=0), Acc(memory.pin(pinned.id)), window=900)
    assert meta.compacted
    assert pinned.id in {entry.id for entry in changed.memory.branch()}
    assert run(WindowManager("oldest_first", reserve=0), Acc(memory), window=900)[1].dropped


def test_a_pinned_window_wins_and_without_any_the_reason_is_told() -> None:
    acc = Acc(AgentMemory.of(loop()))
    assert run(WindowManager("oldest_first", context_window=1_500, reserve=0), acc, window=10**6)[1].compacted
    same, meta = run(WindowManager(), acc)
    assert same is acc
    assert meta.error is not None
    assert "window" in meta.error


# -- failures -----------------------------------------------------------------------------------------------------


class Raises:
    def maybe_compact(self, acc: Any, ctx: Any) -> Any:
        raise RuntimeError("broken")


class Wrong:
    def maybe_compact(self, acc: Any, ctx: Any) -> Any:
        return acc


class NoMeta:
    def maybe_compact(self, acc: Any, ctx: Any) -> Any:
        return acc, None


@pytest.mark.parametrize("compactor", [Raises(), Wrong(), NoMeta()])
def test_a_compactor_that_fails_changes_nothing_and_the_turn_goes_on(compactor: Any) -> None:
    acc = Acc(AgentMemory.of(loop()))
    same, meta = run(compactor, acc)
    assert same is acc
    assert meta.compacted is False
    assert meta.error
    assert "dropped" not in meta


def test_a_failed_digest_is_an_error_of_summarize_and_the_next_rung_of_the_ladder() -> None:
    acc = Acc(AgentMemory.of(loop()))
    model = ScriptedModel(lambda request: RuntimeError("offline"))
    ctx = CompactContext(window=1_500)
    failed = drive(
        step(WindowManager("summarize", reserve=0, summarizer=model), acc, ctx),
        answers(model, None),
    )
    assert failed[0] is acc
    assert failed[1].error
    gone, meta = drive(step(WindowManager("ladder", reserve=0, summarizer=model), acc, ctx), answers(model, None))
    assert gone is not acc
    assert meta.error is None
    assert meta.notes


class FullDisk:
    def execute(self, ops: Any) -> Any:
        raise StoreError("the disk is full")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_when_the_archive_can_not_be_written_nothing_is_dropped(strategy: str) -> None:
    acc = Acc(AgentMemory.of(loop()))
    manager = WindowManager(strategy, reserve=0, archive=FullDisk())
    same, meta = drive(step(manager, acc, CompactContext(window=1_500)), answers(None, FullDisk()))
    assert same is acc
    assert meta.error is not None
    assert "disk is full" in meta.error


# -- three ways to write one ----------------------------------------------------------------------------------------


class Plain:
    def maybe_compact(self, acc: Any, ctx: Any) -> Any:
        return replace(acc, memory=acc.memory.with_branch(acc.memory.branch()[-2:])), {"compacted": True, "mine": 7}


class Awaited(Plain):
    async def maybe_compact(self, acc: Any, ctx: Any) -> Any:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().maybe_compact(acc, ctx)


class Flowing(Plain):
    def maybe_compact(self, acc: Any, ctx: Any) -> Any:
        yield from call(len, [])
        return Plain().maybe_compact(acc, ctx)


async def _no_needs(need: Any) -> Any:
    raise AssertionError(need)


@pytest.mark.parametrize("compactor", [Plain(), Awaited(), Flowing()])
def test_a_plain_an_async_and_a_flowing_compactor_all_serve(compactor: Any) -> None:
    acc = Acc(AgentMemory.of(loop()))
    changed, meta = asyncio.run(adrive(step(compactor, acc, None), _no_needs))
    assert len(changed.memory.branch()) == 2
    assert meta.compacted is True
    assert meta["mine"] == 7


def test_with_something_to_ask_the_window_manager_gives_a_flow() -> None:
    manager = WindowManager("ladder", reserve=0, archive=FullDisk())
    answer = manager.maybe_compact(Acc(AgentMemory.of(loop())), CompactContext(window=1_500))
    assert isinstance(answer, Iterator)
    need = next(answer)
    assert not isinstance(need, Call)


# -- hooks ----------------------------------------------------------------------------------------------------------


def test_hooks_run_only_when_something_was_dropped_and_are_isolated(caplog: Any) -> None:
    seen: list[CompactionMeta] = []

    def broken(meta: CompactionMeta) -> None:
        raise ValueError("hook")

    def go(compactor: Any, window: int) -> Any:
        flow = step(
            compactor, Acc(AgentMemory.of(loop())), CompactContext(window=window), after_compact=[broken, seen.append]
        )
        return drive(flow, answers(None, None))

    go(WindowManager("oldest_first"), 10**6)
    go(WindowManager("clear", reserve=0), 3_000)
    assert not seen
    changed, meta = go(WindowManager("oldest_first", reserve=0), 1_500)
    assert seen == [meta]
    assert len(changed.memory.branch()) < len(loop())
    assert "hook" in caplog.text


# -- options and near misses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opts", "words"),
    [
        ({"strategy": "bogus"}, "strategy"),
        ({"keep_rounds": 3}, "keep_rounds"),
        ({"context_window": 0}, "context_window"),
        ({"trigger": 0.4, "target": 0.9}, "target"),
        ({"dialect": "klingon"}, "klingon"),
        ({"reserve": -1}, "reserve"),
    ],
)
def test_a_bad_option_is_refused_where_the_configuration_is_made_and_names_the_entry(opts: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        WindowManager(**opts)
    with pytest.raises(ValueError, match=words):
        check_compactor(WindowManager, opts, entry="wakeful.AgentConfig.rebuild")
    if "dialect" not in opts:
        with pytest.raises(ConfigError, match=r"AgentConfig\.rebuild"):
            WindowManager.validate_opts(opts, "wakeful.AgentConfig.rebuild")


class Misspelt:
    def maybe_compactt(self, acc: Any, ctx: Any) -> Any: ...


class OneArgument:
    def maybe_compact(self, acc: Any) -> Any: ...


class OldOpts:
    def maybe_compact(self, acc: Any, ctx: Any) -> Any: ...

    @staticmethod
    def validate_opts(opts: Any) -> None: ...


class AsksTooMuch:
    def maybe_compact(self, acc: Any, ctx: Any) -> Any: ...

    def needs_window(self, opts: Any) -> bool: ...


class NoMethod:
    maybe_compact = "later"


@pytest.mark.parametrize("near", [Misspelt, OneArgument, OldOpts, AsksTooMuch, NoMethod])
def test_a_near_miss_is_refused_and_never_silently_not_called(near: Any) -> None:
    for compactor in (near, near()):
        with pytest.raises(ConfigError, match=r"wakeful\.Agent"):
            check_compactor(compactor, entry="wakeful.Agent")


@pytest.mark.parametrize("good", [NoOp, NoOp(), WindowManager, WindowManager("clear"), Plain(), Awaited(), Flowing])
def test_what_keeps_the_contract_is_accepted(good: Any) -> None:
    check_compactor(good, entry="wakeful.Agent")


def test_noop_has_no_options() -> None:
    check_compactor(NoOp, {}, entry="x")
    with pytest.raises(ConfigError, match="no option 'strategy'"):
        check_compactor(NoOp, {"strategy": "ladder"}, entry="x")
