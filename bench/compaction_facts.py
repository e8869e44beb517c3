"""Which facts survive a compaction: the exact values that the real remainder of a run passes to its tools.

    python bench/compaction_facts.py --data FOLDER

Each recorded run is cut at 70 % where the model is about to speak, and compacted to 25 % of its characters / 4 without a
model. The system prompt is given beside the history. Everybody, peers too, is given the largest budget with which what
comes out is within the target by that one count. A value counts when it stands in the head and the remainder passes it to
a tool (3 to 60 characters, any kind); of runs that act through plain text, the words of a command after its first.

Measured: values still in context; values recoverable by one ``recall_history`` (a search for the value in the archive);
runs over the target, and those of them that say so; first and latest user message verbatim; validity.

Ways: ``default`` is ``compact`` as it comes; ``keep_recent N`` with that option; ``summarizer`` lets a model that knows
nothing (a constant) write the digest; ``langchain`` (SummarizationMiddleware with a constant summary), ``langmem`` (the
same) and ``trim_messages`` are the peers of that name; ``identifiers`` is what a few lines do: the first user's message,
a list of everything with a digit in it, newest first, in half of the target, and the newest messages.

The SWE-agent runs are few and pass few values on, so they are cut at 30, 40 ... 80 %. Their first user's message holds a
demonstration and alone is most of the run, so for them the target is a share of what stands beside the first and the
latest user's message, and these come on top.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import Transcript, argument_values, cut_where_model_speaks, load, parse, save, text_of
from wakeful import compact
from wakeful.compaction.recall_history import recall_history
from wakeful.dialects import get
from wakeful.engine.drive import drive
from wakeful.stores.archive import MemoryArchive

DIALECT = get("openai_chat")
OPTIONS: dict[str, Any] = {"reserve": 0, "trigger": 1.0, "target": 1.0, "meter": lambda text: len(text) // 4}


def tokens_of(messages: list[dict[str, Any]]) -> float:
    """Characters / 4 of what is sent: contents, names and arguments of calls."""
    total = 0
    for message in messages:
        content = message.get("content")
        total += len(content) if isinstance(content, str) else 0
        if isinstance(content, list):
            total += sum(len(part.get("text", "")) for part in content)
        for call in message.get("tool_calls") or ():
            total += len(call["function"]["name"]) + len(call["function"]["arguments"])
    return total / 4


Squeeze = Callable[[list[dict[str, Any]], int, Any], tuple[list[dict[str, Any]], bool]]
"""Compact to a budget, into an archive (None: none): messages, and whether they are said to be over it."""

SUMMARY = "The user asked for help and the agent called tools; the record of it is elsewhere."


def ours(**options: Any) -> Squeeze:
    """Give ``compact`` with some options."""

    def run(head: list[dict[str, Any]], window: int, archive: Any) -> tuple[list[dict[str, Any]], bool]:
        mid_round = head[-1]["role"] == "tool"
        done = compact(head, window=window, mid_round=mid_round, archive=archive, **OPTIONS, **options)
        return done.messages, bool(done.meta.over_budget)

    return run


def langchain(head: list[dict[str, Any]], window: int, archive: Any) -> tuple[list[dict[str, Any]], bool]:
    """LangChain's SummarizationMiddleware with a constant summary."""
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, convert_to_messages

    middleware = SummarizationMiddleware(
        model=GenericFakeChatModel(messages=iter([AIMessage(SUMMARY)])),
        trigger=("tokens", 1),
        keep=("tokens", window),
        summarizer=lambda _: SUMMARY,
        trim_tokens_to_summarize=None,
    )
    update = middleware.before_model({"messages": convert_to_messages(head)}, None)
    return (head if update is None else as_chat(update["messages"][1:])), False


def langmem(head: list[dict[str, Any]], window: int, archive: Any) -> tuple[list[dict[str, Any]], bool]:
    """langmem's ``summarize_messages`` with a constant summary."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, convert_to_messages
    from langmem.short_term import summarize_messages

    native = convert_to_messages(head)
    for at, message in enumerate(native):
        message.id = f"m{at}"
    done = summarize_messages(
        native,
        running_summary=None,
        model=GenericFakeChatModel(messages=iter([AIMessage(SUMMARY)] * 9)),
        max_tokens=window,
        max_tokens_before_summary=window,
        max_summary_tokens=min(64, window - 1),
    )
    return as_chat(done.messages), False


def trim(head: list[dict[str, Any]], window: int, archive: Any) -> tuple[list[dict[str, Any]], bool]:
    """LangChain's ``trim_messages``."""
    from langchain_core.messages import convert_to_messages, trim_messages
    from langchain_core.messages.utils import count_tokens_approximately

    kept = trim_messages(
        convert_to_messages(head),
        max_tokens=window,
        token_counter=count_tokens_approximately,
        strategy="last",
        start_on="human",
        include_system=True,
    )
    return as_chat(kept), False


def identifiers(head: list[dict[str, Any]], window: int, archive: Any) -> tuple[list[dict[str, Any]], bool]:
    """The first user's message, a list of what has a digit in it, and the newest messages that fit."""
    first = next(message for message in head if message["role"] == "user")
    start = len(head) - 1
    while start > 0 and (head[start]["role"] == "tool" or tokens_of(head[start:]) < window * 0.3):
        start -= 1
    if head[start]["role"] == "tool" or tokens_of(head[start:]) > window * 0.6:
        start = max((i for i, m in enumerate(head) if m["role"] != "tool"), default=0)
    found = dict.fromkeys(reversed(_DIGITS.findall(text_of(head[:start]))))
    left = int((window - tokens_of([first, *head[start:]])) * 4)
    listed: list[str] = []
    for each in found:
        left -= len(each) + 1
        if left < 0:
            break
        listed.append(each)
    note = {"role": "user", "content": "Known: " + " ".join(listed)}
    return [first, note, *head[start:]], False


_DIGITS = re.compile(r"[\w$#@./:+-]*\d[\w@./:+-]*")


def as_chat(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Give LangChain messages as Chat messages."""
    from langchain_core.messages import convert_to_openai_messages

    found = convert_to_openai_messages(list(messages))
    return found if isinstance(found, list) else [found]


def squeezed(squeeze: Squeeze, head: list[dict[str, Any]], target: float, archive: Any) -> tuple[Any, bool, float]:
    """Compact to ``target``: the budget is raised by what it leaves unused. Gives the CPU seconds of the last run."""
    budget = best = max(1, int(target))
    for _ in range(8):
        messages, over = squeeze(head, budget, MemoryArchive())
        left = target - tokens_of(messages)
        if left >= 0 and not over:
            best = max(best, budget)
            budget += max(1, int(left))
        else:
            best = min(best, budget)
            budget = (best + budget) // 2 if best < budget else max(1, int(budget + left))
    start = time.process_time()
    messages, over = squeeze(head, best, archive)
    return messages, over, time.process_time() - start


def needed(transcript: Transcript, messages: list[dict[str, Any]], cut: int, skipped: int) -> set[str]:
    """Give the values that the remainder passes to tools and that stand in the head."""
    found = argument_values(messages[cut:])
    for index, action in transcript.actions.items():
        if index - skipped >= cut:
            found |= {word for word in action.split("\n")[0].split()[1:] if 3 <= len(word) <= 60}
    text = text_of(messages[:cut])
    return {value for value in found if value in text}


def measure(
    transcripts: list[Transcript],
    share: float,
    squeeze: Squeeze,
    *,
    cuts: Sequence[float] = (0.7,),
    archived: bool = True,
) -> dict[str, Any]:
    """Compact every run and count."""
    runs = over = told = invalid = empty = first = latest = wanted = kept = found = 0
    shares: list[float] = []
    seconds = 0.0
    for transcript, at in ((transcript, at) for transcript in transcripts for at in cuts):
        skipped = 1 if transcript.messages[0]["role"] == "system" else 0
        messages = transcript.messages[skipped:]
        cut = cut_where_model_speaks(messages, at)
        if not cut:
            continue
        head = messages[:cut]
        archive = MemoryArchive()
        users = [message for message in head if message["role"] == "user"]
        pinned = tokens_of([users[0], users[-1]][: len(users)]) if len(cuts) > 1 else 0
        target = pinned + (tokens_of(head) - pinned) * share
        after, said, spent = squeezed(squeeze, head, target, archive)
        runs, seconds = runs + 1, seconds + spent
        size = tokens_of(after)
        shares.append(size / tokens_of(head))
        over += size > target
        told += size > target and said
        invalid += bool(DIALECT.validate(after))
        empty += not after
        context = text_of(after)
        first, latest = first + (users[0]["content"] in context), latest + (users[-1]["content"] in context)
        values = needed(transcript, messages, cut, skipped)
        here = {value for value in values if value in context}
        wanted, kept = wanted + len(values), kept + len(here)
        for value in values if archived else ():
            found += value in here or value in drive(
                recall_history({"query": value}), lambda need, store=archive: store.execute(need.ops)
            )
    return {
        "runs": runs,
        "values": wanted,
        "in_context": round(kept / wanted, 4) if wanted else None,
        "recoverable": round(found / wanted, 4) if wanted and archived else None,
        "size_mean": round(sum(shares) / len(shares), 3) if shares else None,
        "over_target": over,
        "over_target_told": told,
        "invalid": invalid,
        "empty": empty,
        "first_user_kept": first,
        "latest_user_kept": latest,
        "cpu_ms": round(seconds / max(1, runs) * 1_000, 2),
    }


WAYS: dict[str, tuple[Squeeze, tuple[float, ...]]] = {
    "default": (ours(), (0.2, 0.25, 0.35, 0.5)),
    "keep_recent 1": (ours(keep_recent=1), (0.25,)),
    "keep_recent 4": (ours(keep_recent=4), (0.25, 0.5)),
    "summarizer": (ours(summarizer=lambda _: SUMMARY), (0.25,)),
    "identifiers": (identifiers, (0.25,)),
    "langchain": (langchain, (0.25,)),
    "langmem": (langmem, (0.25,)),
    "trim_messages": (trim, (0.25,)),
}
"""Who compacts, and to which shares."""

OURS = ("default", "keep_recent 1", "keep_recent 4", "summarizer")
CUTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def main() -> None:
    """Measure every data set at several targets and save the result."""
    parser = parse(__doc__)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("--data names the folder with the data sets")
    result: dict[str, Any] = {}
    for name in ("tau_bench", "tau2_bench", "swe_agent"):
        transcripts = load(arguments.data, name)
        if not transcripts:
            result[name] = "no text and no calls: these recordings of speech hold turn-taking alone"
            print(name, result[name])
            continue
        for way, (squeeze, shares) in WAYS.items():
            for share in shares:
                cuts = CUTS if name == "swe_agent" else (0.7,)
                row = measure(transcripts, share, squeeze, cuts=cuts, archived=way in OURS)
                result[f"{name}, target {share:.0%}, {way}"] = row
                print(f"{name} {share:.0%} {way}", row, flush=True)
    print(save("compaction_facts", result, inputs=[str(arguments.data.name), list(result)], out=arguments.out))


if __name__ == "__main__":
    main()
