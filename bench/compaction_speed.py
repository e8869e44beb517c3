"""How long does compaction take, cold and in a loop, beside LangChain's SummarizationMiddleware?

Run: ``python bench/compaction_speed.py`` (needs ``pip install 'langchain>=1.5,<2'``).

One user, then tool rounds (``loop``), or a user's message about every eight (``chat``); parallel calls in 30 % of rounds;
trigger 50 %, keep 20 % of the tokens; the summariser of both is a constant. Peers and ours take turns in the same
process; each figure is the least CPU time of several. Ratios are ours over LangChain's.
"""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from common import parse, save
from wakeful import Window, compact

SIZES = (200, 1_000, 5_000)
SUMMARY = "The agent read many files; everything of note is in the archive. " * 6


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
        messages += [
            {"role": "tool", "tool_call_id": c, "content": f"line {step} of the file, value {rng.random():.6f}\n" * 6}
            for c in calls
        ]
    return messages[:count] if messages[count - 1]["role"] != "assistant" else messages[: count - 1]


def langchain(messages: list[dict[str, Any]], trigger: int, keep: int) -> Callable[[], Any]:
    """LangChain's middleware over the same conversation; the conversion is outside the clock."""
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, convert_to_messages

    native = convert_to_messages(messages)
    middleware = SummarizationMiddleware(
        model=GenericFakeChatModel(messages=iter([AIMessage(SUMMARY)])),
        trigger=("tokens", trigger),
        keep=("tokens", keep),
        summarizer=lambda _: SUMMARY,
        trim_tokens_to_summarize=None,
    )
    return lambda: middleware.before_model({"messages": list(native)}, None)


def least(run: Callable[[], Any], times: int) -> float:
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best * 1_000


def four(text: str) -> int:
    return len(text) // 4


def cold(count: int, *, chat: bool) -> dict[str, Any]:
    messages = history(count, chat=chat)
    tokens = sum(four(str(m.get("content") or "")) + 12 for m in messages)
    peer = langchain(messages, tokens // 2, tokens // 5)
    ours = {
        "oldest_first": {"strategy": "oldest_first"},
        "clear": {"strategy": "clear"},
        "summarize (constant)": {"strategy": "summarize", "summarizer": lambda _: SUMMARY},
        "ladder (extractive)": {"strategy": "ladder"},
    }
    row: dict[str, Any] = {"shape": "chat" if chat else "loop", "messages": len(messages)}
    base = least(peer, 5)
    row["langchain ms"] = base
    for name, options in ours.items():
        spent = least(
            lambda options=options: compact(
                messages, window=tokens, reserve=0, trigger=0.5, target=0.2, meter=four, **options
            ),
            5,
        )
        row[f"{name} ms"] = spent
        row[f"{name} ratio"] = spent / base
    row["langchain ms"] = min(base, least(peer, 5))
    return row


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
