"""An agent that works for 3,000 tool rounds in one turn, in a 32k window, against a server that validates.

Run: ``python bench/long_agent.py`` (``--rounds N``; ``--api anthropic | openai``; about two minutes for 3,000 rounds).

The agent uses the provider's real SDK. The server checks every request by the rules of the format and refuses what does
not fit its window. Each result is about 300 tokens; what is taken out goes to an archive in SQLite. At the end the agent
is asked for a value of an early round, and looks it up with ``recall_history``.
"""

from __future__ import annotations

import json
import random
import resource
import tempfile
import time
from typing import Any

from common import parse, save
from wakeful.compaction.compactor import WindowManager
from wakeful.engine.agent import Agent
from wakeful.engine.stream import CompactionEvent, DoneEvent, ToolResultEvent
from wakeful.needs import ToolCall
from wakeful.stores.archive_sqlite import SqliteArchive
from wakeful.testing import ProviderServer, Say

WINDOW = 32_000
WORDS = "river stone light garden window letter morning coffee train music paper bridge winter market".split()


def result_of(n: int) -> str:
    rng = random.Random(n)
    return f"record {n}: code K-{n * 7919} " + " ".join(rng.choices(WORDS, k=190))


def read_record(n: int) -> str:
    """Read a record.

    Args:
        n: its number
    """
    return result_of(n)


def client_of(api: str, server: ProviderServer) -> Any:
    if api == "anthropic":
        import anthropic

        from wakeful.models.anthropic import AnthropicModel

        client = anthropic.Anthropic(base_url=server.anthropic_url, api_key="none", max_retries=0)
        return AnthropicModel("claude-sonnet-4-5", client=client, max_tokens=1024)
    import openai

    from wakeful.models.openai import OpenAIChatModel

    return OpenAIChatModel(
        "gpt-4o", client=openai.OpenAI(base_url=server.openai_url, api_key="none", max_retries=0), max_tokens=1024
    )


def main() -> None:
    parser = parse(__doc__)
    parser.add_argument("--rounds", type=int, default=3_000)
    parser.add_argument("--api", choices=("anthropic", "openai"), default="anthropic")
    args = parser.parse_args()
    seen: dict[str, Any] = {"requests": 0, "largest": 0, "refused": 0, "short": 0.0}
    round_number = 0

    def respond(received: Any) -> Say:
        nonlocal round_number
        seen["requests"] += 1
        seen["largest"] = max(seen["largest"], received.tokens)
        gauge = agent.session().gauge()
        if received.tokens > WINDOW // 2:
            expected = gauge["tokens"] + gauge["prompt_tokens"]
            seen["short"] = max(seen["short"], received.tokens / expected - 1)
        if len(server.requests) > 4:
            seen["refused"] += len(server.refusals)
            server.requests.clear()
        last = json.dumps(received.body["messages"][-1])
        if round_number == args.rounds and "recall" in last:
            return Say("The code of record 5 is K-39595." if "K-39595 " in last else "I do not know.")
        if round_number == args.rounds:
            return Say(calls=(ToolCall("recall", "recall_history", {"query": "record 5"}),))
        round_number += 1
        return Say(calls=(ToolCall(f"call-{round_number}", "read_record", {"n": round_number}),))

    with ProviderServer(respond, window=WINDOW) as server, tempfile.TemporaryDirectory() as folder:
        archive = SqliteArchive(f"{folder}/archive.db")
        agent = Agent(
            client_of(args.api, server),
            tools=[read_record],
            system="Read every record, then answer.",
            compactor=WindowManager(target=0.3, keep_recent=4),
            archive=archive,
            context_window=WINDOW,
            max_iterations=args.rounds + 10,
            max_tokens=1024,
            tracer=False,
        )
        compactions, tools, most, done = 0, 0, 0, None
        start, cpu = time.perf_counter(), time.process_time()
        early = 0
        for event in agent.stream("Read the records, one by one. At the end, tell me the code of record 5."):
            if isinstance(event, CompactionEvent):
                compactions += 1
                if event.meta.get("error"):
                    print("error:", event.meta["error"])
            elif isinstance(event, ToolResultEvent):
                tools += 1
                most = max(most, len(agent.session().memory().active))
                if tools == args.rounds // 4:
                    early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            elif isinstance(event, DoneEvent):
                done = event.result
        late = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seen["refused"] += len(server.refusals)
        archive.close()
    assert done is not None
    result = {
        "api": args.api,
        "rounds": args.rounds,
        "answer": done.text,
        "stop": done.stop,
        "requests_refused": seen["refused"],
        "largest_request_tokens": seen["largest"],
        "window": WINDOW,
        "worst_underestimate_percent": round(100 * seen["short"], 2),
        "compactions": compactions,
        "rounds_per_compaction": round(args.rounds / max(1, compactions), 1),
        "most_entries_held": most,
        "peak_memory_mb_at_a_quarter": round(early / 1024),
        "peak_memory_mb_at_the_end": round(late / 1024),
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds_with_server": round(time.process_time() - cpu, 1),
    }
    print(json.dumps(result, indent=1))
    print(save(f"long_agent_{args.api}", result, inputs={"rounds": args.rounds, "window": WINDOW}, out=args.out))


if __name__ == "__main__":
    main()
