"""What a turn costs beside the model: with 200 and with 5,000 messages, with and without a compactor, store and memory.

Run: ``python bench/turn_overhead.py`` (about a minute; ``--nodes N`` for the size of the memory, default 50,000).

The model answers at once. A turn is one call of ``run``: input appended, boundary, request, reply, events, result. Each
figure is wall time of one turn in milliseconds, with the garbage collector on.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from common import parse, save
from wakeful.assembly.context import ContextConfig
from wakeful.compaction.compactor import NoOp, WindowManager
from wakeful.engine.agent import Agent
from wakeful.needs import ChatReply, ChatRequest, Done, TextDelta, ToolCall, Usage

TURNS = 200
SIZES = (200, 5_000)


class Instant:
    """A model that answers at once, every third turn after one call of a tool."""

    name = "instant"
    dialect = "openai_chat"

    def __init__(self, tools: bool) -> None:
        self.tools = tools
        self.count = 0

    def stream(self, request: ChatRequest) -> Any:
        self.count += 1
        usage = Usage(input_tokens=1000, output_tokens=10)
        if self.tools and request.messages[-1]["role"] == "user":
            call = ToolCall(f"c{self.count}", "look", {"n": self.count})
            function = {"name": "look", "arguments": f'{{"n": {self.count}}}'}
            message = {"role": "assistant", "content": None}
            message["tool_calls"] = [{"id": call.id, "type": "function", "function": function}]
            yield Done(ChatReply(calls=(call,), message=message, stop="tools", usage=usage))
            return
        text = f"answer {self.count}"
        yield TextDelta(text)
        yield Done(ChatReply(text=text, message={"role": "assistant", "content": text}, usage=usage))

    def chat(self, request: ChatRequest) -> ChatReply:
        raise NotImplementedError

    achat = astream = chat


def look(n: int) -> str:
    """Look."""
    return f"seen {n}"


def history(count: int) -> list[dict[str, str]]:
    rng = random.Random(7)
    words = "river stone light garden window letter morning coffee train music paper bridge".split()
    text = [" ".join(rng.choices(words, k=30)) for _ in range(64)]
    return [{"role": "user" if i % 2 == 0 else "assistant", "content": f"{i}: {text[i % 64]}"} for i in range(count)]


def quantiles(samples: list[float]) -> dict[str, float]:
    ordered = sorted(samples)
    return {
        "p50_ms": round(1000 * statistics.median(ordered), 4),
        "p95_ms": round(1000 * ordered[int(len(ordered) * 0.95)], 4),
    }


def timed(make: Callable[[], Agent], size: int, turns: int = TURNS) -> dict[str, float]:
    """Time turns on a session that keeps about the same size: it is forked anew every 20 turns."""
    agent = make()
    base = f"base {size}"
    agent.session(base).append(history(size))
    samples = []
    for block in range(turns // 20):
        name = f"s{size}-{block}"
        agent.session(base).fork(name)
        agent.run("warm up", session=name)
        for turn in range(20):
            start = time.perf_counter()
            agent.run(f"and {turn}?", session=name)
            samples.append(time.perf_counter() - start)
    return quantiles(samples)


def memory_of(folder: str, nodes: int) -> Any:
    from datetime import UTC, datetime, timedelta

    from wakeful.engine.memory import Memory
    from wakeful.ops import PutNodes
    from wakeful.records import MemoryNode, MemoryScope

    rng = random.Random(3)
    words = [
        f"{a}{b}" for a in "bright quick slow old new red green tall".split() for b in "river hill town road".split()
    ]
    scope = MemoryScope.parse("org:acme/user:ana")
    memory = Memory.open(f"sqlite:///{folder}/memory.db")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for first in range(0, nodes, 2_000):
        batch = tuple(
            MemoryNode.new(
                scope=scope,
                layer="episodic" if i % 3 else "semantic",
                content=" ".join(rng.choices(words, k=12)) + f" {i}",
                at=start + timedelta(seconds=i),
            )
            for i in range(first, min(first + 2_000, nodes))
        )
        memory.store.execute((PutNodes(scope, batch),))
    return memory


def main() -> None:
    parser = parse(__doc__)
    parser.add_argument("--nodes", type=int, default=50_000)
    args = parser.parse_args()
    result: dict[str, Any] = {}
    makers: dict[str, Callable[[], Agent]] = {
        "plain": lambda: Agent(Instant(False), compactor=NoOp(), tracer=False),
        "one tool call": lambda: Agent(Instant(True), tools=[look], tool_timeout=None, tracer=False),
        "window manager": lambda: Agent(
            Instant(False), compactor=WindowManager(), context_window=2_000_000, tracer=False
        ),
    }
    for name, make in makers.items():
        result[name] = {str(size): timed(make, size) for size in SIZES}
        small, large = (result[name][str(size)]["p50_ms"] for size in SIZES)
        result[name]["growth_ms"] = round(large - small, 4)
        print(name, result[name], flush=True)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/sessions.db"
        make = lambda: Agent(Instant(False), sessions=url, tracer=False)  # noqa: E731
        result["sqlite sessions"] = {str(size): timed(make, size, 60) for size in SIZES}
        if args.nodes:
            memory = memory_of(folder, args.nodes)
            whose = {"memory": memory, "scope": "org:acme/user:ana", "tracer": False}
            make = lambda: Agent(Instant(False), **whose)  # noqa: E731
            result[f"memory of {args.nodes} nodes"] = {"200": timed(make, 200, 60)}
            make = lambda: Agent(Instant(False), context=ContextConfig(), **whose)  # noqa: E731
            result["the same, prompt assembled in strata"] = {"200": timed(make, 200, 60)}
    for name, figures in result.items():
        print(name, figures)
    print(save("turn_overhead", result, inputs={"sizes": SIZES, "turns": TURNS, "nodes": args.nodes}, out=args.out))


if __name__ == "__main__":
    main()
