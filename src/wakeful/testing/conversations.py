"""Conversations for tests: written once as steps, rendered as the native messages of any dialect.

::

    conversation("anthropic", User("Where is order A-17?"), Assistant(calls=(Call("c1", "find", {"id": "A-17"}),)),
                 Results((Result("c1", "find", "shipped"),)), Assistant("It was shipped."))

``random_conversation`` makes long ones from a seed, ``adversarial`` the nine inputs on which history trimming usually fails.
The same arguments always give equal messages.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from wakeful.dialects import NAMES, get
from wakeful.dialects.protocol import Kind
from wakeful.testing.render import RENDERERS


@dataclass(frozen=True, slots=True)
class System:
    """A system prompt; left out where the format keeps it outside the messages."""

    text: str


@dataclass(frozen=True, slots=True)
class User:
    """A user's message."""

    text: str
    image_bytes: int = 0
    """Size of an image that goes with it, in characters of base64; 0 for none."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call by the model."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assistant:
    """What one model call gave. Formats with one block an item make several messages of it."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call."""

    id: str
    name: str
    text: str
    error: bool = False


@dataclass(frozen=True, slots=True)
class Results:
    """Results of one batch. Formats with one result a message make several messages of it."""

    results: tuple[Result, ...]


Step: TypeAlias = System | User | Assistant | Results


def conversation(dialect: str, *steps: Step, join: bool = True) -> list[Any]:
    """Render steps as native messages.

    ``join``: neighbours of one role become one message where the format alternates. False leaves them, for histories
    that are meant to be broken.
    """
    renderer = RENDERERS[dialect]
    messages: list[Any] = []
    for place, step in enumerate(steps):
        if isinstance(step, System):
            messages += renderer.system(step.text)
        elif isinstance(step, User):
            messages += renderer.user(step.text, step.image_bytes, place)
        elif isinstance(step, Assistant):
            calls = [(call.id, call.name, dict(call.arguments)) for call in step.calls]
            messages += renderer.assistant(step.text, calls, step.thinking, place)
        else:
            messages += renderer.results([(r.id, r.name, r.text, r.error) for r in step.results], place)
    return _joined(dialect, messages) if join and get(dialect).facts.alternates else messages


def _joined(name: str, messages: Sequence[Any]) -> list[Any]:
    dialect = get(name)
    joined: list[Any] = []
    sides = {Kind.USER: "user", Kind.RESULTS: "user", Kind.ASSISTANT: "model", Kind.CALLS: "model"}
    before = ""
    for message in messages:
        side = sides.get(dialect.weigh(message, lambda *_: 0).kind, "")
        if side and side == before:
            joined[-1] = dialect.merge([joined[-1], message])
        else:
            joined.append(message)
        before = side
    return joined


_WORDS = (
    "the order was shipped late because address could not be confirmed please check invoice and tell customer when "
    "refund arrives we keep reservation until friday if payment clears otherwise cancel flight status report module "
    "naïve café Ωmega 注文 確認 данные 🙂 line-break"
).split()
_TOOLS = ("find_order", "search", "read_file", "update_record", "send_mail")


def random_steps(
    seed: int,
    turns: int = 8,
    *,
    system: bool = True,
    calls: bool = True,
    thinking: bool = True,
    media: bool = True,
    open_tail: bool = False,
    words: int = 30,
) -> list[Step]:
    """Make a valid conversation from a seed.

    ``turns`` user turns, each with up to four tool rounds of up to three parallel calls; ``words`` is the longest text.
    ``open_tail``: the last call has no result yet. Ids, paths, dates and amounts appear in arguments and results.
    """
    rng = random.Random(seed)
    steps: list[Step] = [System(_text(rng, words))] if system else []
    number = 0
    for _ in range(turns):
        steps.append(User(_text(rng, words), 4_000 if media and rng.random() < 0.15 else 0))
        for _ in range(rng.randrange(5) if calls else 0):
            batch, results = [], []
            for _ in range(rng.choice((1, 1, 1, 2, 3))):
                number += 1
                call_id, name = f"call_{seed}_{number}", rng.choice(_TOOLS)
                batch.append(Call(call_id, name, _arguments(rng)))
                results.append(Result(call_id, name, _result(rng, words), error=rng.random() < 0.1))
            thought = _text(rng, 10) if thinking else ""
            steps.append(Assistant(_text(rng, 8) if rng.random() < 0.5 else "", tuple(batch), thought))
            steps.append(Results(tuple(results)))
        steps.append(Assistant(_text(rng, words), thinking=_text(rng, 10) if thinking else ""))
    if open_tail:
        steps.append(User(_text(rng, words)))
        thought = _text(rng, 10) if thinking else ""
        steps.append(Assistant("", (Call(f"call_{seed}_open", "search", _arguments(rng)),), thought))
    return steps


def random_conversation(dialect: str, seed: int, turns: int = 8, **options: Any) -> list[Any]:
    """Make a valid conversation in a dialect from a seed; ``options`` are those of ``random_steps``."""
    return conversation(dialect, *random_steps(seed, turns, **options))


def _text(rng: random.Random, longest: int) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(rng.randint(1, longest)))


def _fact(rng: random.Random) -> str:
    number = rng.randrange(10_000)
    return rng.choice(
        (
            f"ORD-{number:05}",
            f"/srv/data/part-{number}.csv",
            f"2026-0{number % 9 + 1}-1{number % 9}",
            f"{number}.50 EUR",
        )
    )


def _arguments(rng: random.Random) -> dict[str, Any]:
    return {"id": _fact(rng), "limit": rng.randrange(50), "options": {"deep": rng.random() < 0.5, "tags": [_fact(rng)]}}


def _result(rng: random.Random, words: int) -> str:
    if rng.random() < 0.5:
        return f'{{"status": "ok", "id": "{_fact(rng)}", "note": "{_text(rng, words)}"}}'
    return f"{_fact(rng)}: {_text(rng, words * 2)}"


ADVERSARIAL_BUDGET = 1_000
"""Tokens of the whole history (four characters a token) into which the adversarial inputs are to be brought."""


def adversarial(dialect: str) -> dict[str, list[Any]]:
    """Give the nine adversarial inputs by name, in a dialect. Some are broken on purpose, and stay so."""
    return {name: conversation(dialect, *make(), join=False) for name, make in ADVERSARIAL.items()}


def _round(number: int, result: str = "done", name: str = "search") -> list[Step]:
    call_id = f"call_{number}"
    call = Call(call_id, name, {"query": f"part {number}"})
    return [Assistant("", (call,)), Results((Result(call_id, name, result),))]


def _chat(start: int, turns: int) -> list[Step]:
    steps: list[Step] = []
    for i in range(start, start + turns):
        steps += [User(f"Question {i} about ORD-{i:05}."), Assistant(f"Answer {i}: it is settled.")]
    return steps


def _parallel_cut() -> list[Step]:
    names = ("search", "read_file", "find_order")
    calls = tuple(Call(f"call_{i}", name, {"n": i}) for i, name in enumerate(names))
    texts = ("small", "row of data; " * 1_600, "small too")
    results = tuple(Result(f"call_{i}", names[i], text) for i, text in enumerate(texts))
    opening: list[Step] = [User("Compare the three sources for ORD-00017.")]
    return [*opening, Assistant("", calls), Results(results), Assistant("Compared."), *_chat(1, 3)]


def _mixed_orphan() -> list[Step]:
    stray = tuple(Result(f"lost_{i}", "search", f"result {i} " * 20) for i in range(3))
    return [
        User("Start with the audit."),
        Results(stray),
        Assistant("I see."),
        *_chat(1, 20),
        User("One more."),
        *_round(90),
        Assistant("Done."),
        User("Go on."),
    ]


def _mid_round_loop() -> list[Step]:
    steps: list[Step] = [User("Read all twelve parts and report the total.")]
    for i in range(12):
        steps += _round(i, f"part {i}: " + "value " * 120)
    return steps


def _open_call_tail() -> list[Step]:
    return [*_mid_round_loop(), Assistant("One more.", (Call("call_open", "search", {"query": "last"}),))]


def _big_last_result() -> list[Step]:
    return [User("Fetch the log."), *_round(1, "ok"), *_round(2, "entry of the log; " * 3_400)]


def _one_big_user() -> list[Step]:
    return [User("A long report to work on. " * 1_600)]


def _no_user_in_head() -> list[Step]:
    return [Assistant("Welcome back."), *_chat(1, 40), User("And now the total?")]


def _mixed_orphan_run() -> list[Step]:
    calls = (Call("call_a", "search", {"q": "a"}), Call("call_b", "read_file", {"q": "b"}))
    results = (
        Result("call_a", "search", "known " * 200),
        Result("call_stranger", "send_mail", "stranger " * 200),
        Result("call_b", "read_file", "known too " * 200),
    )
    return [User("Look both up."), Assistant("", calls), Results(results), Assistant("Found."), *_chat(1, 10)]


def _interleaved_user() -> list[Step]:
    call = Call("call_slow", "search", {"q": "slow"})
    late = (Result("call_slow", "search", "the slow answer " * 40),)
    opening: list[Step] = [User("Find the slow one."), Assistant("", (call,)), User("Are you still there?")]
    return [*opening, Results(late), Assistant("Here it is."), *_chat(1, 30)]


ADVERSARIAL: Mapping[str, Callable[[], list[Step]]] = {
    "parallel_cut": _parallel_cut,
    "mixed_orphan": _mixed_orphan,
    "mid_round_loop": _mid_round_loop,
    "open_call_tail": _open_call_tail,
    "big_last_result": _big_last_result,
    "one_big_user": _one_big_user,
    "no_user_in_head": _no_user_in_head,
    "mixed_orphan_run": _mixed_orphan_run,
    "interleaved_user": _interleaved_user,
}
"""The steps of each adversarial input."""

DIALECTS = NAMES
"""Every dialect that a conversation can be rendered in."""
