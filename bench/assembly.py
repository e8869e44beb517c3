"""How long does it take to assemble a turn's context, and does it grow with the memory?

Run: ``python bench/assembly.py`` (SQLite in a temporary folder, static embedder; ``--sizes 1000 50000 200000``).

Stratified, one hop, embedding of the query included; JIT beside it; and the bytes before the last breakpoint over 500 turns
with changing queries and clock, in two processes with different hash seeds. CPU milliseconds of the process, warm. The
peer's figures in ``RESULTS.md`` are those published for symfonic-core 9.12.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from common import save
from wakeful.assembly.context import ContextConfig
from wakeful.assembly.template import Template
from wakeful.engine.context_parts import make_context_manager
from wakeful.engine.memory import Memory
from wakeful.needs import ToolSpec
from wakeful.records import MemoryNode, MemoryScope, Turn

SCOPE = MemoryScope.parse("org:acme/user:ana")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMES = "Clara Peter Ingrid Olav Marta Sven Frida Nils Astrid Karl".split()
THINGS = "boat piano garden bicycle camera violin kitchen tent library greenhouse workshop".split()
PLACES = "Oslo Bergen Gothenburg Malmo Aarhus Turku Riga Tallinn Vilnius Gdansk".split()
TOOLS = tuple(ToolSpec(f"tool_{i}", f"Do thing number {i}") for i in range(12))


def turn(rng: random.Random, number: int) -> Turn:
    text = (
        f"{rng.choice(NAMES)} sold the {rng.choice(THINGS)} number {number} to {rng.choice(NAMES)} "
        f"in {rng.choice(PLACES)} for {rng.randrange(100, 9000)} crowns."
    )
    return Turn(text, speaker=rng.choice(NAMES), at=NOW - timedelta(minutes=number), session=f"s{number // 40}")


def fill(memory: Memory, count: int) -> None:
    rng = random.Random(count)
    for start in range(0, count, 2_000):
        batch = [turn(rng, number) for number in range(start, min(start + 2_000, count))]
        memory.remember(SCOPE, batch, extract=False)
    skill = MemoryNode.new(
        scope=SCOPE, layer="procedural", label="tool_1", content="first 2", at=NOW,
        properties={"tool": "tool_1", "preconditions": ["tool_2"]},
    )  # fmt: skip
    memory.remember(SCOPE, skill)


def query(rng: random.Random) -> str:
    return f"Who bought the {rng.choice(THINGS)} that {rng.choice(NAMES)} sold in {rng.choice(PLACES)}?"


def manager(memory: Memory, *, jit: bool, minutes: int = 0) -> Any:
    return make_context_manager(
        ContextConfig(jit_context=jit), memory=memory, tools=TOOLS,
        template=Template(name="Ada", description="Support of Acme", rules=("Be brief.",)),
        clock=lambda: NOW + timedelta(minutes=minutes),
    )  # fmt: skip


def spent(assembler: Any, rounds: int) -> list[float]:
    rng = random.Random(1)

    async def run() -> list[float]:
        times = []
        for number in range(rounds + 20):
            asked = query(rng)
            start = time.process_time()
            await assembler.assemble(query=asked, scope=SCOPE, intent_verdict=None)
            if number >= 20:
                times.append((time.process_time() - start) * 1_000)
        return sorted(times)

    return asyncio.run(run())


def measure(size: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, Memory.open(f"sqlite:///{folder}/m.db") as memory:
        fill(memory, size)
        row: dict[str, Any] = {"nodes": size}
        for name, jit in (("stratified", False), ("jit", True)):
            times = spent(manager(memory, jit=jit), rounds)
            row[f"{name}_p50_ms"] = times[len(times) // 2]
            row[f"{name}_p95_ms"] = times[int(len(times) * 0.95)]
        return row


def prefix(turns: int = 500) -> str:
    """The hash of everything before the last breakpoint over many turns; a changed byte changes it."""
    seen = set()
    with Memory.open("memory://", clock=lambda: NOW) as memory:
        fill(memory, 500)
        rng = random.Random(os.getpid())

        async def run() -> None:
            for number in range(turns):
                got = await manager(memory, jit=False, minutes=number * 7).assemble(
                    query=query(rng), scope=SCOPE, intent_verdict=None
                )
                seen.add(hashlib.sha256(repr(got.system_blocks).encode()).hexdigest())

        asyncio.run(run())
    return ",".join(sorted(seen))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sizes", type=int, nargs="+", default=[1_000, 50_000, 200_000])
    arguments.add_argument("--rounds", type=int, default=100)
    arguments.add_argument("--prefix", action="store_true", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.prefix:
        print(prefix())
        return
    rows = [measure(size, options.rounds) for size in options.sizes]
    for row in rows:
        print({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()})
    hashes = [
        subprocess.run(
            [sys.executable, __file__, "--prefix"], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True,
            text=True, check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    ]  # fmt: skip
    same = len(set(hashes)) == 1 and "," not in hashes[0]
    print(f"500 turns in each of two processes: prefix bytes identical: {same}")
    save(
        "assembly",
        {"latency": rows, "prefix_identical": same},
        inputs={"sizes": options.sizes, "rounds": options.rounds},
    )


if __name__ == "__main__":
    main()
