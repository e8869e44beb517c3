"""The main job on a recorded conversation: compact it, remember its facts, recall them in another session.

Run it with ``make demo`` (or ``python samples/demo.py``). No key and no network are needed. Every claim that is printed is
checked; the first one that does not hold ends the demo with an error.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from wakeful import Memory, MemoryScope, Turn, compact, restore
from wakeful.assembly.context import ContextConfig
from wakeful.assembly.template import Template
from wakeful.cli.chart import bar
from wakeful.cli.inspect import picture as inspection
from wakeful.cli.replay import picture as replayed
from wakeful.dialects import guess
from wakeful.engine.context_parts import make_context_manager
from wakeful.engine.inspect import inspect
from wakeful.engine.replay import replays

SAMPLE = Path(__file__).parent / "audit.openai.json"
WINDOW = 24_000
SCOPE = MemoryScope.parse("org:wakeful/user:mara")
QUESTIONS = (
    ("Where should the results be sent?", "Kungsgatan 12"),
    ("Which ticket and budget does the audit have?", "REL-4471"),
    ("What may never be touched?", "vendor/"),
)


class DemoError(Exception):
    """A claim of the demo does not hold."""


def check(claim: str, holds: bool) -> None:
    """Print a claim, and end the demo when it does not hold."""
    print(f"  {'ok' if holds else 'NOT TRUE'}  {claim}")
    if not holds:
        raise DemoError(claim)


def title(number: int, text: str) -> None:
    """Print the head of a part."""
    print(f"\n{'─' * 100}\n{number}. {text}\n")


def main() -> int:
    """Run the whole demo; 0 when every claim held."""
    started = time.perf_counter()
    messages = json.loads(SAMPLE.read_text(encoding="utf-8"))["messages"]
    try:
        with tempfile.TemporaryDirectory() as folder:
            what_fills_the_window(messages)
            in_a_loop(messages)
            once(messages)
            url = f"sqlite:///{folder}/memory.db"
            remember(messages, url)
            recall_elsewhere(url)
            assemble(url)
            tend(url)
    except DemoError as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    print(f"\nEverything held, in {time.perf_counter() - started:.1f} seconds.")
    return 0


def what_fills_the_window(messages: list[Any]) -> None:
    """Show the recorded conversation."""
    title(1, f"A recorded conversation, and a window of {WINDOW:,} tokens")
    seen = inspect(messages, window=WINDOW)
    print("\n".join(inspection(SAMPLE.name, seen, 100)[:12]))
    check("the conversation does not fit", seen.over)


def in_a_loop(messages: list[Any]) -> None:
    """Play it call by call, without and with a ``Window``."""
    title(2, "The same conversation call by call: everything sent, and a Window in the loop")
    played = replays(messages, ["none", "ladder"], window=WINDOW)
    for replay in played:
        for _ in replay.steps():
            pass
    print("\n".join(replayed(SAMPLE.name, played, 100)))
    plain, fitted = (replay.summary() for replay in played)
    print()
    check(f"without it {plain.over} of {plain.calls} requests would not fit", plain.over > 0)
    check(f"with it all {fitted.calls} requests fit and are valid", fitted.over == 0 and fitted.invalid == 0)
    print("  (what a policy would have cost counts only where its requests would have been answered at all)")


def once(messages: list[Any]) -> None:
    """Compact it in one call, and get a message back."""
    title(3, "One call: compact(messages, window=...)")
    result = compact(messages, window=WINDOW)
    before, after = result.meta.tokens_before, result.meta.tokens_after
    assert before is not None
    assert after is not None
    print(f"  before [{bar(1.0, 60)}] {before:,} tokens, {len(messages)} messages")
    print(f"  after  [{bar(after / before, 60)}] {after:,} tokens, {len(result.messages)} messages\n")
    dialect = guess(messages)
    text = json.dumps(result.messages)
    users = [message for message in messages if message["role"] == "user"]
    check("it fits", after <= WINDOW)
    check("it is valid by every rule of the format", dialect.validate(result.messages) == [])
    check("the task and the latest request are the caller's own objects",
          any(m is users[0] for m in result.messages) and any(m is users[-1] for m in result.messages))  # fmt: skip
    check("ticket, address and deadline are still in context",
          all(fact in text for fact in ("REL-4471", "Kungsgatan 12", "2026-03-12")))  # fmt: skip
    check("a second compaction changes nothing", compact(result.messages, window=WINDOW).messages is result.messages)
    spans = [restore(result, entry.id) for entry in result.dropped]
    check(f"each of the {len(spans)} messages taken out comes back as it was, in its place",
          all(span.messages[0] == messages[span.position] for span in spans))  # fmt: skip


def remember(messages: list[Any], url: str) -> None:
    """Put what people said into memory."""
    title(4, "Remember: what was said goes into a memory on disk")
    said = [
        Turn(
            message["content"], speaker="Mara" if message["role"] == "user" else "Auditor", session="audit", ref=str(i)
        )
        for i, message in enumerate(messages)
        if message["role"] in ("user", "assistant") and message.get("content")
    ]
    with Memory.open(url) as memory:
        start = time.perf_counter()
        memory.remember(SCOPE, said)
        spent = time.perf_counter() - start
        print(f"  {len(said)} turns remembered in {spent:.2f} s")
        kept = {record["content"] for record in memory.export(SCOPE) if record.get("layer") == "episodic"}
        check("every turn was kept word for word", {turn.text for turn in said} <= kept)


def recall_elsewhere(url: str) -> None:
    """Recall in another process, as tomorrow's session would."""
    title(5, "Recall: another process opens the same file")
    program = (
        "import json, sys\n"
        "from wakeful import Memory, MemoryScope\n"
        "scope = MemoryScope.parse(sys.argv[2])\n"
        "with Memory.open(sys.argv[1]) as memory:\n"
        "    for question in sys.argv[3:]:\n"
        "        hits = memory.recall(scope, question, k=3).hits\n"
        "        print(json.dumps([[h.score, h.node.content, list(map(str, h.reasons))] for h in hits]))\n"
    )
    asked = [question for question, _ in QUESTIONS]
    done = subprocess.run(
        [sys.executable, "-c", program, url, SCOPE.path, *asked], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise DemoError(f"the second session failed:\n{done.stderr}")
    for (question, fact), line in zip(QUESTIONS, done.stdout.splitlines(), strict=True):
        hits = json.loads(line)
        print(f"\n  {question}")
        for score, content, reasons in hits:
            print(f"    {score:.2f}  {' '.join(content.split())[:84]}")
            print(f"          {'; '.join(reasons)[:84]}")
        check(f"{fact} is among the first three", any(fact in content for _, content, _ in hits))
    with Memory.open(url) as memory:
        stranger = MemoryScope.parse("org:wakeful-corp/user:mara")
        check("another tenant with a name alike recalls nothing", not memory.recall(stranger, asked[0]).hits)


def assemble(url: str) -> None:
    """Assemble the context of a turn."""
    title(6, "Assemble: what the model sees on the next turn")
    with Memory.open(url) as memory:
        manager = make_context_manager(
            ContextConfig(budget=1_500, memory_most=600),
            memory=memory,
            template=Template(name="Auditor", description="Audits Python packages.", rules=("Give sizes in lines.",)),
        )

        def turn(query: str) -> Any:
            return asyncio.run(manager.assemble(query=query, scope=SCOPE, intent_verdict=None))

        first, second = turn(QUESTIONS[0][0]), turn("Which module had the longest function?")
    for section in first.sections:
        if section.tokens:
            print(
                f"  {section.stratum}  {section.name:<12} {bar(section.tokens / 1_500, 50)} {section.tokens:>4} tokens"
            )
    print()
    check("the memory that answers is in it", "Kungsgatan 12" in (first.turn_block or ""))
    check("another query moves no byte of what the provider caches", first.system_blocks == second.system_blocks)
    check(f"{first.metadata['entries_count']} memories are reported, and as many stand there",
          first.metadata["entries_count"] == first.system_prompt.count("<memory "))  # fmt: skip


def tend(url: str) -> None:
    """Tend the memory."""
    title(7, "Consolidate: the memory is tended between turns")
    with Memory.open(url) as memory:
        report = memory.consolidate(SCOPE, "nightly")
        for phase in report.phases:
            print(f"  {phase.name:<18} {phase.status:<8} read {phase.rows_read:>5}  changed {phase.changed:>4}")
        print()
        check("every phase ran", all(phase.status == "ran" for phase in report.phases))
        again = memory.consolidate(SCOPE, "nightly", now=report.started_at)
        check("with the same clock a second cycle changes nothing", again.changed == 0)
        found = memory.recall(SCOPE, QUESTIONS[1][0], k=3).hits
        check("what was known is still recalled", any("REL-4471" in hit.node.content for hit in found))


if __name__ == "__main__":
    raise SystemExit(main())
