"""How long does compaction take, cold and in a loop, beside LangChain's SummarizationMiddleware?

Run: ``python bench/compaction_speed.py`` (needs ``pip install 'langchain>=1.5,<2'``).

One user, then tool rounds (``loop``), or a user's message about every eight (``chat``); parallel calls in 30 % of rounds;
results of 6 lines, one in seven of 60; trigger 50 %, keep 20 % of the tokens; the summariser of both is a constant.
LangChain runs in two ways: ``langchain`` hands the messages to a function as they are; ``langchain, prompt`` writes the
prompt for a chat model, as ours always does. Peers and ours take turns in the same process; each figure is the least CPU
time of several. Ratios are ours over ``langchain``.

What is like what: ``langchain`` counts every message, looks for the place to cut and hands the head to a function.
``oldest_first`` does that work, and checks every call and result besides. ``summarize (constant)`` asks the same constant
model, with a prompt: its like is ``langchain, prompt``. ``ladder (extractive)``, the default of ``compact``, clears old
results and writes the digest itself, out of up to 512 messages: work that others leave to a model, whose time is not in
these figures. ``clear`` leaves a placeholder with id and values in place of each large result.

Only what did its work is timed: each run is checked to have compacted without an error, into a valid history (and, with a
summary, by the model's).
"""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable
from itertools import repeat
from typing import Any

from common import parse, save
from wakeful import Window, compact
from wakeful.dialects import get

SIZES = (200, 1_000, 5_000)
ROUNDS = 7
"""Times that each is run, in turn."""

SUMMARY = (
    "The agent called read with the path of one file after another below src; each result gave line upon line of the file "
    "and a value. The user was told which step was done. Every call and its result is in the record. "
) * 3


def history(count: int, *, chat: bool, seed: int = 1) -> list[dict[str, Any]]:
    """A conversation of OpenAI Chat messages."""
    rng = random.Random(seed)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a careful engineer."},
        {"role": "user", "content": "Please mend the parser and keep the tests green."},
    ]
    step = 0
    while len(messages) < count:
        step += 1
        if chat and step % 4 == 0:
            messages.append({"role": "assistant", "content": f"Step {step} is done; the result looks right."})
            messages.append({"role": "user", "content": f"Good. Now look at module {step} and its callers."})
            continue
        calls = [f"call_{step}_{k}" for k in range(3 if rng.random() < 0.3 else 1)]
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": c,
                        "type": "function",
                        "function": {"name": "read", "arguments": f'{{"path": "src/m{step}.py"}}'},
                    }
                    for c in calls
                ],
            }
        )
        messages += [{"role": "tool", "tool_call_id": c, "content": _file(step, rng)} for c in calls]
    return messages[:count] if messages[count - 1]["role"] != "assistant" else messages[: count - 1]


def _file(step: int, rng: random.Random) -> str:
    return f"line {step} of the file, value {rng.random():.6f}\n" * (60 if rng.random() < 0.15 else 6)


def langchain(messages: list[dict[str, Any]], trigger: int, keep: int, *, prompt: bool = False) -> Callable[[], Any]:
    """LangChain's middleware over the same conversation; the conversion is outside the clock."""
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, convert_to_messages

    native = convert_to_messages(messages)
    middleware = SummarizationMiddleware(
        model=GenericFakeChatModel(messages=repeat(AIMessage(SUMMARY))),
        trigger=("tokens", trigger),
        keep=("tokens", keep),
        summarizer=None if prompt else lambda _: SUMMARY,
        trim_tokens_to_summarize=None,
    )

    def run() -> Any:
        update = middleware.before_model({"messages": list(native)}, None)
        assert update is not None, "the peer did not compact"
        assert SUMMARY[:40] in update["messages"][1].content, "the peer did not summarise"
        return update

    return run


def least(run: Callable[[], Any], times: int) -> float:
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best * 1_000


def four(text: str) -> int:
    return len(text) // 4


def ours(messages: list[dict[str, Any]], window: int, options: dict[str, Any]) -> Callable[[], Any]:
    """Give our compaction, after one run that is checked to have done its work."""

    def run() -> Any:
        return compact(messages, window=window, reserve=0, trigger=0.5, target=0.2, meter=four, **options)

    result = run()
    assert result.meta.compacted, (options, result.meta)
    assert not result.meta.error, (options, result.meta)
    assert not result.meta.notes, (options, result.meta)
    assert not get("openai_chat").validate(result.messages), options
    if "summarizer" in options:
        assert any(SUMMARY[:40] in str(m["content"]) for m in result.messages), "the summary is not the model's"
    return run


def cold(count: int, *, chat: bool) -> dict[str, Any]:
    messages = history(count, chat=chat)
    tokens = sum(four(str(m.get("content") or "")) + 12 for m in messages)
    peer = langchain(messages, tokens // 2, tokens // 5)
    prompting = langchain(messages, tokens // 2, tokens // 5, prompt=True)
    strategies: dict[str, dict[str, Any]] = {
        "oldest_first": {"strategy": "oldest_first"},
        "clear": {"strategy": "clear"},
        "summarize (constant)": {"strategy": "summarize", "summarizer": lambda _: SUMMARY},
        "ladder (extractive)": {"strategy": "ladder"},
    }
    runs = {name: ours(messages, tokens, options) for name, options in strategies.items()}
    spent = dict.fromkeys(("langchain", "langchain, prompt", *runs), float("inf"))
    for _ in range(ROUNDS):
        for name, run in (("langchain", peer), ("langchain, prompt", prompting), *runs.items()):
            spent[name] = min(spent[name], least(run, 1))
    row: dict[str, Any] = {"shape": "chat" if chat else "loop", "messages": len(messages)}
    row |= {f"{name} ms": spent[name] for name in spent}
    return row | {f"{name} ratio": spent[name] / spent["langchain"] for name in spent if name != "langchain"}


def loop(count: int) -> dict[str, Any]:
    """A window that saw the history and gets two new messages."""
    messages = history(count, chat=False)
    tokens = sum(four(str(m.get("content") or "")) + 12 for m in messages)
    window = Window(window=tokens * 10, meter=four)
    window.fit(messages)
    best = float("inf")
    for number in range(40):
        call = {"id": f"n{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages = [
            *messages,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"n{number}", "content": "fresh line\n" * 20},
        ]
        start = time.process_time()
        window.fit(messages)
        best = min(best, time.process_time() - start)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    other = Window(window=tokens * 10, meter=four)
    other.fit(messages)
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    peer = least(langchain(messages, tokens // 2, tokens // 5), 3)
    return {
        "messages": count, "fit ms": best * 1_000, "langchain ms": peer, "ratio": best * 1_000 / peer,
        "bytes a message": held / len(messages),
    }  # fmt: skip


def main() -> None:
    parse(__doc__).parse_args()
    rows = [cold(count, chat=chat) for chat in (True, False) for count in SIZES]
    loops = [loop(count) for count in (1_000, 5_000, 20_000)]
    growth = (loops[-1]["fit ms"] - loops[0]["fit ms"]) * 1e6 / (loops[-1]["messages"] - loops[0]["messages"])
    for row in (*rows, *loops):
        print({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
    print(f"a further message costs fit {growth:.0f} ns")
    save(
        "compaction_speed",
        {"cold": rows, "window": loops, "growth_ns_a_message": growth},
        inputs={"seed": 1, "sizes": SIZES},
    )


if __name__ == "__main__":
    main()
