"""Which facts survive a compaction: the exact values that the real remainder of a run passes to its tools.

    python bench/compaction_facts.py --data FOLDER

Each recorded run is cut at 70 % where the model is about to speak, and compacted to 25 % of its characters / 4 without a
model. The system prompt is given beside the history. The window that ``compact`` gets is the target and what the
structure of the kept messages weighs. A value counts when it stands in the head and the remainder passes it to a tool
(3 to 60 characters, any kind); of runs that act through plain text, the words of a command after its first.

Measured: values still in context; values recoverable by one ``recall_history`` (a search for the value in the archive);
runs over the target, and those of them that say so; first and latest user message verbatim; validity.
"""

from __future__ import annotations

import sys
import time
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


def squeeze(head: list[dict[str, Any]], target: float, keep: int, archive: Any) -> tuple[Any, float]:
    """Compact to ``target``: the window is raised by what the structure of the kept messages weighs. Gives the seconds."""
    options = OPTIONS | {"keep_recent": keep, "mid_round": head[-1]["role"] == "tool"}
    window = best = int(target)
    for _ in range(8):
        result = compact(head, window=window, **options)
        left = target - tokens_of(result.messages)
        if left >= 0 and not result.meta.over_budget:
            best = max(best, window)
            window += max(1, int(left))
        else:
            window = (best + window) // 2
    window = best
    start = time.process_time()
    result = compact(head, window=window, archive=archive, **options)
    return result, time.process_time() - start


def needed(transcript: Transcript, messages: list[dict[str, Any]], cut: int, skipped: int) -> set[str]:
    """Give the values that the remainder passes to tools and that stand in the head."""
    found = argument_values(messages[cut:])
    for index, action in transcript.actions.items():
        if index - skipped >= cut:
            found |= {word for word in action.split("\n")[0].split()[1:] if 3 <= len(word) <= 60}
    text = text_of(messages[:cut])
    return {value for value in found if value in text}


def measure(transcripts: list[Transcript], share: float, keep: int) -> dict[str, Any]:
    """Compact every run and count."""
    runs = over = told = invalid = first = latest = wanted = kept = found = 0
    shares: list[float] = []
    seconds = 0.0
    for transcript in transcripts:
        skipped = 1 if transcript.messages[0]["role"] == "system" else 0
        messages = transcript.messages[skipped:]
        cut = cut_where_model_speaks(messages)
        if not cut:
            continue
        head = messages[:cut]
        archive = MemoryArchive()
        target = tokens_of(head) * share
        result, spent = squeeze(head, target, keep, archive)
        runs, seconds = runs + 1, seconds + spent
        after = tokens_of(result.messages)
        shares.append(after / tokens_of(head))
        over += after > target
        told += after > target and bool(result.meta.over_budget)
        invalid += bool(DIALECT.validate(result.messages))
        context = text_of(result.messages)
        users = [message["content"] for message in head if message["role"] == "user"]
        first, latest = first + (users[0] in context), latest + (users[-1] in context)
        values = needed(transcript, messages, cut, skipped)
        here = {value for value in values if value in context}
        wanted, kept = wanted + len(values), kept + len(here)
        for value in values:
            found += value in here or value in drive(
                recall_history({"query": value}), lambda need, store=archive: store.execute(need.ops)
            )
    return {
        "runs": runs,
        "values": wanted,
        "in_context": round(kept / wanted, 4) if wanted else None,
        "recoverable": round(found / wanted, 4) if wanted else None,
        "size_mean": round(sum(shares) / len(shares), 3),
        "over_target": over,
        "over_target_told": told,
        "invalid": invalid,
        "first_user_kept": first,
        "latest_user_kept": latest,
        "cpu_ms": round(seconds / runs * 1_000, 2),
    }


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
            result[name] = "no messages: the recordings hold turn-taking alone"
            print(name, result[name])
            continue
        for share, keep in ((0.25, 1), (0.25, 4), (0.20, 1), (0.35, 1), (0.5, 4)):
            row = measure(transcripts, share, keep)
            result[f"{name}, target {share:.0%}, keep_recent {keep}"] = row
            print(f"{name} {share:.0%} keep {keep}", row)
    print(save("compaction_facts", result, inputs=[str(arguments.data.name), list(result)], out=arguments.out))


if __name__ == "__main__":
    main()
