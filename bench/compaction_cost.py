"""What the prompt cache and the history cost under fixed policies and under ``trigger="cost"``.

    python bench/compaction_cost.py --data FOLDER

One call after the other is simulated over sizes alone: a request is a list of segments, what it shares with the request
before it from the front is read from the cache (0.1), the rest is written (1.25). Every policy has the same window, keeps
the same newest rounds and makes summaries of the same size. The window: 30 % of a simulated loop's tokens; 10,000 tokens
for recorded transcripts. A policy that sends a request above the window on a conversation would have failed there: its
cost is still counted in the totals, but it is not the best of that conversation. Policies:

- none: never compact (as if everything fitted);
- clear every turn: every result older than the kept rounds is a placeholder;
- clear in batches: the same, once a quarter of the window can be cleared;
- summarise at a threshold: above the window, everything before the kept rounds becomes one summary;
- cost: the planner's ``decide`` before every call, told how many calls are still to come; and not told.

Conversations: tool loops of 200, 1,000 and 5,000 messages, even and uneven, and every transcript of the data sets. Output
tokens are the same for all and left out.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import Transcript, load, parse, save
from wakeful.compaction.cost import CacheShares, Depth, decide

SHARES = CacheShares(read=0.1, write=1.25)
PLACEHOLDER = 20
"""Tokens of a cleared result."""
SUMMARY = 400
"""Tokens of a summary, at most; of a short stretch a sixth of it."""
KEEP = 4
"""Newest rounds that nothing touches."""
WINDOW = 0.3
"""Share of a simulated loop's tokens that the window holds."""
RECORDED_WINDOW = 10_000
"""Tokens of the window for recorded transcripts."""


@dataclass(frozen=True)
class Talk:
    """A conversation as sizes."""

    name: str
    head: int
    """Tokens of the system prompt and the first user message."""
    rounds: list[tuple[int, int]]
    """Of each call: tokens of what the model said, and of what came back (results or a user message)."""
    window: int

    @property
    def total(self) -> int:
        """Tokens of it all."""
        return self.head + sum(a + b for a, b in self.rounds)


def loop(name: str, head: int, rounds: list[tuple[int, int]]) -> Talk:
    """Make a simulated loop with its window."""
    return Talk(name, head, rounds, int((head + sum(a + b for a, b in rounds)) * WINDOW))


class Run:
    """A conversation under way: what the next request would send, and what the calls have cost."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.window = talk.window
        self.segments: list[tuple[Any, int]] = [("head", talk.head)]
        self.before: list[tuple[Any, int]] = []
        self.cost = 0.0
        self.compactions = 0
        self.cleared: set[int] = set()
        self.start = 0
        self.done = 0
        self.largest = 0
        """Tokens of the largest request."""

    @property
    def size(self) -> int:
        """Tokens of the next request."""
        return sum(tokens for _, tokens in self.segments)

    def call(self) -> None:
        """Send what there is, then take in what came."""
        cached = 0
        for old, new in zip(self.before, self.segments, strict=False):
            if old != new:
                break
            cached += new[1]
        size = self.size
        self.largest = max(self.largest, size)
        self.cost += cached * SHARES.read + (size - cached) * SHARES.write
        self.before = list(self.segments)
        said, came = self.talk.rounds[self.done]
        self.segments += [(("said", self.done), said), (("came", self.done), came)]
        self.done += 1

    def clearable(self) -> list[int]:
        """Rounds whose result can be cleared."""
        rounds = self.talk.rounds
        return [
            i for i in range(self.start, self.done - KEEP) if i not in self.cleared and rounds[i][1] > 2 * PLACEHOLDER
        ]

    def clear(self, rounds: list[int]) -> None:
        """Put placeholders in the place of results."""
        if not rounds:
            return
        gone = set(rounds)
        self.segments = [
            ((("cleared", key[1]), PLACEHOLDER) if key != "head" and key[0] == "came" and key[1] in gone else (key, n))
            for key, n in self.segments
        ]
        self.cleared |= gone
        self.compactions += 1

    def summarised(self) -> tuple[int, int]:
        """Tokens of the summary that could be made now, and of what it would replace."""
        old = sum(n for key, n in self.segments if key != "head" and key[1] < self.done - KEEP)
        return min(SUMMARY, max(30, old // 6)), old

    def summarise(self) -> None:
        """Put a summary in the place of everything before the kept rounds."""
        summary, old = self.summarised()
        if old <= summary:
            return
        kept = [(key, n) for key, n in self.segments if key != "head" and key[1] >= self.done - KEEP]
        self.start = self.done - KEEP
        self.segments = [("head", self.talk.head), (("summary", self.start), summary), *kept]
        self.compactions += 1


def none(run: Run) -> None:
    """Do nothing."""


def clear_every_turn(run: Run) -> None:
    """Clear whatever can be."""
    run.clear(run.clearable())


def clear_in_batches(run: Run) -> None:
    """Clear once it is worth a quarter of the window."""
    rounds = run.clearable()
    if sum(run.talk.rounds[i][1] - PLACEHOLDER for i in rounds) >= run.window // 4:
        run.clear(rounds)


def summarise_at_threshold(run: Run) -> None:
    """Summarise above the window."""
    if run.size > run.window:
        run.summarise()


def by_cost(known: bool) -> Callable[[Run], None]:
    """Ask the planner, told how many calls are to come or not."""

    def policy(run: Run) -> None:
        if run.done <= KEEP:
            return
        summary, old = run.summarised()
        depths = []
        if old > summary:
            depths.append(Depth(target=run.size - old + summary, kept_prefix=run.talk.head))
        rounds = run.clearable()
        if rounds:
            saved = sum(run.talk.rounds[i][1] - PLACEHOLDER for i in rounds)
            prefix = 0
            for key, n in run.segments:
                if key != "head" and key[0] == "came" and key[1] == rounds[0]:
                    break
                prefix += n
            depths.append(Depth(target=run.size - saved, kept_prefix=prefix))
        if not depths:
            return
        grown = sum(a + b for a, b in run.talk.rounds[: run.done]) / run.done
        decision = decide(
            tokens=run.size,
            room=run.window,
            depths=depths,
            growth=grown,
            expected_calls=len(run.talk.rounds) - run.done if known else None,
            calls_so_far=run.done,
            shares=SHARES,
        )
        if decision.compact and decision.depth is not None:
            if decision.depth.target == depths[0].target:
                run.summarise()
            else:
                run.clear(rounds)

    return policy


FIXED: dict[str, Callable[[Run], None]] = {
    "none": none,
    "clear every turn": clear_every_turn,
    "clear in batches": clear_in_batches,
    "summarise at threshold": summarise_at_threshold,
}
COST = {"cost, calls known": by_cost(True), "cost, calls unknown": by_cost(False)}


def simulate(talk: Talk, policy: Callable[[Run], None]) -> Run:
    """Run a conversation to its end under a policy."""
    run = Run(talk)
    for _ in talk.rounds:
        policy(run)
        run.call()
    return run


def loops() -> list[Talk]:
    """Tool loops: even results, and uneven ones (a long tail, as file reads and listings have)."""
    out = []
    for messages in (200, 1_000, 5_000):
        calls = messages // 2
        out.append(loop(f"loop {messages}, even", 600, [(40, 120)] * calls))
        dice = random.Random(messages)
        uneven = [(dice.randint(20, 80), int(min(4_000, 30 * dice.paretovariate(1.1)))) for _ in range(calls)]
        out.append(loop(f"loop {messages}, uneven", 600, uneven))
    return out


def talk_of(transcript: Transcript) -> Talk | None:
    """Turn a transcript into sizes (characters / 4); None when it has fewer than eight calls."""
    head = 0
    rounds: list[list[int]] = []
    for message in transcript.messages:
        tokens = 4 + len(str(message.get("content") or "")) // 4
        tokens += sum(len(c["function"]["arguments"]) // 4 + 8 for c in message.get("tool_calls") or ())
        if message["role"] == "assistant":
            rounds.append([tokens, 0])
        elif rounds:
            rounds[-1][1] += tokens
        else:
            head += tokens
    return Talk(transcript.name, head, [(a, b) for a, b in rounds], RECORDED_WINDOW) if len(rounds) >= 8 else None


def main() -> None:
    """Run all conversations under all policies and save the result."""
    parser = parse(__doc__)
    arguments = parser.parse_args()
    talks = loops()
    if arguments.data:
        for name in ("tau_bench", "swe_agent", "locomo"):
            talks += [talk for each in load(arguments.data, name) if (talk := talk_of(each)) is not None]
    rows = []
    for talk in talks:
        costs, over = {}, []
        for name, policy in {**FIXED, **COST}.items():
            run = simulate(talk, policy)
            costs[name] = round(run.cost)
            if run.largest > talk.window:
                over.append(name)
        rows.append({"name": talk.name, "calls": len(talk.rounds), "tokens": talk.total, "costs": costs, "over": over})
    result = summary_of(rows)
    for name, total in result["total"].items():
        print(f"{name:26} {total:14,}")
    print(f"cost against the best single fixed policy: {result['against_best_single']:+.1%}")
    print(f"worst conversation against its own best:   {result['worst_against_own_best']:+.1%}")
    print(f"unknown calls, against the worst fixed:    {result['unknown_against_worst']:+.1%} at most")
    for row in rows[:6]:
        print(row["name"], row["costs"])
    path = save("compaction_cost", result | {"rows": rows}, inputs=[r["name"] for r in rows], out=arguments.out)
    print(path)


def _fair(row: dict[str, Any]) -> list[str]:
    """Fixed policies that kept the window; the planner must keep it where one of them does."""
    return [name for name in FIXED if name not in row["over"]]


def summary_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum the rows up into the figures that matter."""
    names = list(rows[0]["costs"])
    total = {name: sum(row["costs"][name] for row in rows) for name in names}
    best_single = min(total[name] for name in FIXED)
    known, unknown = COST
    possible = [row for row in rows if _fair(row)]
    broken = [row["name"] for row in possible if known in row["over"] or unknown in row["over"]]
    own = [row["costs"][known] / min(row["costs"][name] for name in _fair(row)) - 1 for row in possible]
    bad = [row["costs"][unknown] / max(row["costs"][name] for name in FIXED) - 1 for row in rows]
    for row, value in zip(possible, own, strict=True):
        row["against_own_best"] = round(value, 4)
    return {
        "conversations": len(rows),
        "impossible": [row["name"] for row in rows if not _fair(row)],
        "window_broken": broken,
        "total": total,
        "against_best_single": total[known] / best_single - 1,
        "worst_against_own_best": max(own),
        "over_window": {name: sum(name in row["over"] for row in rows) for name in names},
        "over_3_percent": sum(value > 0.03 for value in own),
        "unknown_against_best_single": total[unknown] / best_single - 1,
        "unknown_against_worst": max(bad),
    }


if __name__ == "__main__":
    main()
