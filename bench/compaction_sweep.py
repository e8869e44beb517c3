"""Do the promises hold at every cut of every transcript, in every dialect, under budgets from tiny to ample?

Run: ``python bench/compaction_sweep.py --data FOLDER [--every N]`` (``--every 1``, the default, takes every cut position;
about an hour on two cores; larger steps sample it).

Each transcript is rendered into all six dialects. At each cut the ladder is run with four budgets and checked by
``wakeful.testing.promises.assert_promises`` (P1 to P14, with idempotence and determinism). The nine adversarial inputs are
brought to 1,000 tokens (four characters a token) and judged beside LangChain's and langmem's summarisers, when those are
installed: valid, in budget (or told), first and latest user message kept.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import load, parse, save
from wakeful import compact
from wakeful.dialects import NAMES, get
from wakeful.dialects.protocol import Text
from wakeful.testing import (
    ADVERSARIAL_BUDGET,
    Assistant,
    Call,
    Result,
    Results,
    System,
    User,
    adversarial,
    conversation,
)
from wakeful.testing.promises import assert_promises

BUDGETS = (300, 2_000, 8_000, 100_000)
SETS = ("tau_bench", "swe_agent")


def four(text: str) -> int:
    return len(text) // 4


def steps_of(messages: list[dict[str, Any]]) -> list[Any]:
    """OpenAI Chat messages as steps that every dialect can render."""
    steps: list[Any] = []
    names: dict[str, str] = {}
    for message in messages:
        role, text = message["role"], str(message.get("content") or "")
        if role == "system":
            steps.append(System(text) if not steps else User(text or "-"))
        elif role == "user":
            steps.append(User(text or "-"))
        elif role == "assistant":
            calls = []
            for call in message.get("tool_calls") or ():
                function = call["function"]
                names[call["id"]] = function["name"]
                try:
                    arguments = json.loads(function["arguments"] or "{}")
                except ValueError:
                    arguments = {"raw": function["arguments"]}
                calls.append(Call(call["id"], function["name"], arguments))
            if text or calls:
                steps.append(Assistant(text, tuple(calls)))
        elif role == "tool":
            result = Result(message["tool_call_id"], names.get(message["tool_call_id"], "tool"), text)
            if steps and isinstance(steps[-1], Results):
                steps[-1] = Results((*steps[-1].results, result))
            else:
                steps.append(Results((result,)))
    return steps


def sweep(data: Path, every: int) -> dict[str, Any]:
    done: Counter[str] = Counter()
    broken: list[str] = []
    for name in SETS:
        for transcript in load(data, name):
            steps = steps_of(transcript.messages)
            for dialect in NAMES:
                whole = conversation(dialect, *steps)
                for cut in range(1, len(whole) + 1, every):
                    for budget in BUDGETS:
                        messages = whole[:cut]

                        def again(given: list[Any], dialect: str = dialect, budget: int = budget) -> Any:
                            return compact(given, dialect=dialect, window=budget, reserve=0, meter=four)

                        result = again(messages)
                        done[f"{name} {dialect}"] += 1
                        try:
                            assert_promises(messages, result, again=again, dialect=dialect)
                        except AssertionError as error:
                            broken.append(f"{transcript.name} {dialect} cut {cut} budget {budget}: {str(error)[:120]}")
    return {"compactions": sum(done.values()), "broken": len(broken), "first_broken": broken[:10], "by_set": dict(done)}


def judge(messages: list[Any], after: list[Any], dialect: str, told: bool) -> str:
    kind = get(dialect)
    size = sum(kind.weigh(message, lambda text, _: four(text)).tokens for message in after)
    users = [m for m in messages if kind.weigh(m, lambda *_: 0).kind == 1]
    kept = {block.text for message in after for block in kind.read(message).blocks if isinstance(block, Text)}

    def lost(user: Any) -> bool:
        return any(isinstance(block, Text) and block.text not in kept for block in kind.read(user).blocks)

    words = []
    if not after:
        words.append("EMPTY")
    elif kind.validate(after):
        words.append("INVALID")
    if size > ADVERSARIAL_BUDGET * 1.1:
        words.append("told" if told else "OVER")
    if users and lost(users[0]):
        words.append("-first")
    if users and lost(users[-1]):
        words.append("-last")
    return " ".join(words) or "ok"


def ours(dialect: str) -> dict[str, str]:
    row = {}
    for name, messages in adversarial(dialect).items():
        result = compact(
            messages, dialect=dialect, window=ADVERSARIAL_BUDGET, reserve=0, trigger=1.0, target=1.0, meter=four
        )
        row[name] = judge(messages, result.messages, dialect, bool(result.meta.over_budget))
    return row


def peers() -> dict[str, dict[str, str]]:
    """LangChain's and langmem's summarisers on the LangChain form of the inputs."""
    rows: dict[str, dict[str, str]] = {}
    for name, make in (("langchain_summarization", _langchain), ("langmem", _langmem)):
        try:
            run = make()
        except ImportError:
            continue
        rows[name] = {}
        for case, messages in adversarial("langchain").items():
            for number, message in enumerate(messages):
                message.id = message.id or f"m{number}"
            try:
                rows[name][case] = judge(messages, run(list(messages)), "langchain", told=False)
            except Exception as error:  # a peer that raises is a result
                rows[name][case] = f"raises {type(error).__name__}"
    return rows


def _langchain() -> Callable[[list[Any]], list[Any]]:
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    middleware = SummarizationMiddleware(
        model=GenericFakeChatModel(messages=iter([AIMessage("summary")])),
        trigger=("tokens", ADVERSARIAL_BUDGET // 2),
        keep=("tokens", ADVERSARIAL_BUDGET // 3),
        summarizer=lambda _: "Earlier turns were summarised.",
        trim_tokens_to_summarize=None,
    )

    def run(messages: list[Any]) -> list[Any]:
        made = middleware.before_model({"messages": messages}, None)
        return messages if made is None else made["messages"][1:]

    return run


def _langmem() -> Callable[[list[Any]], list[Any]]:
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langmem.short_term import summarize_messages

    def run(messages: list[Any]) -> list[Any]:
        model = GenericFakeChatModel(messages=iter([AIMessage("Earlier turns were summarised.")] * 3))
        made = summarize_messages(
            messages, running_summary=None, model=model, max_tokens=ADVERSARIAL_BUDGET,
            max_tokens_before_summary=ADVERSARIAL_BUDGET // 2, max_summary_tokens=64,
        )  # fmt: skip
        return list(made.messages)

    return run


def main() -> None:
    parser = parse(__doc__)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every Nth cut position")
    arguments = parser.parse_args()
    cases = {f"wakeful, {dialect}": ours(dialect) for dialect in NAMES} | peers()
    for name, row in cases.items():
        print(f"{name:<28} {row}")
    start = time.perf_counter()
    swept = sweep(arguments.data, arguments.every)
    print({**swept, "by_set": "..."}, f"{time.perf_counter() - start:.0f} s")
    save("compaction_sweep", {**swept, "every": arguments.every, "adversarial": cases}, inputs=SETS)


if __name__ == "__main__":
    main()
