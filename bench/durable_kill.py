"""Kill a durable agent at random points and see what is left: nothing lost, no tool run twice.

Run: ``python bench/durable_kill.py`` (``--kills N``, default 200; ``--url`` for another session store than SQLite).

A worker process runs turns over one session: each turn makes two batches of two calls, and each call of a tool appends
its id to a file. The parent kills it (SIGKILL) after a random time, and the next worker resumes. A reply counts as
acknowledged when the worker has printed it. At the end every acknowledged message must stand in the history, every
conversation must be valid, and no call id may stand in the file twice.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import parse, save
from wakeful.dialects import get
from wakeful.engine.agent import Agent
from wakeful.engine.stream import DoneEvent
from wakeful.engine.tools import ToolContext
from wakeful.needs import ChatRequest, ToolCall
from wakeful.testing import Say, ScriptedModel


def script(request: ChatRequest) -> Any:
    """Decide by the conversation alone, as a model does."""
    users = [m for m in request.messages if m["role"] == "user"]
    since = request.messages[max(i for i, m in enumerate(request.messages) if m["role"] == "user") :]
    batches = sum(1 for m in since if m.get("tool_calls"))
    time.sleep(0.001)
    if batches == 2:
        return f"answer to {users[-1]['content']}"
    turn = len(request.messages)
    return Say(calls=tuple(ToolCall(f"c{turn}-{i}-{time.time_ns()}", "act", {"n": i}) for i in range(2)))


def agent_of(url: str, effects: Path) -> Agent:
    def act(context: ToolContext, n: int) -> str:
        """Act on the world."""
        with effects.open("a") as file:
            file.write(context.call_id + "\n")
            file.flush()
            os.fsync(file.fileno())
        time.sleep(random.random() * 0.003)
        return f"acted {n}"

    return Agent(ScriptedModel(script, strict=True), tools=[act], sessions=url, tracer=False, tool_timeout=None)


def worker(url: str, effects: str) -> None:
    agent = agent_of(url, Path(effects))
    number = 0
    print("ready", flush=True)
    if agent.session("s").turn() is not None:
        for event in agent.resume("s"):
            if isinstance(event, DoneEvent):
                print(json.dumps({"resumed": event.result.text}), flush=True)
    while True:
        number += 1
        question = f"question {os.getpid()}-{number}"
        answer = agent.run(question, session="s").text
        print(json.dumps({"question": question, "answer": answer}), flush=True)


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] == "worker":
        worker(sys.argv[2], sys.argv[3])
        return
    parser = parse(__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--url")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    acknowledged: list[dict[str, str]] = []
    resumed = failures = 0
    phases: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        url = args.url or f"sqlite:///{folder}/sessions.db"
        effects = Path(folder) / "effects.txt"
        effects.touch()
        for _ in range(args.kills):
            command = [sys.executable, __file__, "worker", url, str(effects)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.random() * 0.12)
            process.send_signal(signal.SIGKILL)
            rest, _ = process.communicate()
            failures += process.returncode != -signal.SIGKILL
            for line in rest.splitlines():
                try:
                    told = json.loads(line)
                except ValueError:
                    continue
                if "question" in told:
                    acknowledged.append(told)
                else:
                    resumed += 1
            open_turn = agent_of(url, effects).session("s").turn()
            phase = "between turns" if open_turn is None else open_turn.phase.value
            phases[phase] = phases.get(phase, 0) + 1
        last = agent_of(url, effects)
        if last.session("s").turn() is not None:
            list(last.resume("s"))
        final = last.run("the last question", session="s").text
        history = last.session("s").history()
        ran = effects.read_text().split()
    contents = [str(message.get("content")) for message in history]
    lost = [each for each in acknowledged if each["question"] not in contents or each["answer"] not in contents]
    result = {
        "kills": args.kills,
        "workers_that_failed_by_themselves": failures,
        "acknowledged_turns": len(acknowledged),
        "acknowledged_lost": len(lost),
        "turns_resumed": resumed,
        "killed_in": dict(sorted(phases.items())),
        "tool_runs": len(ran),
        "tool_runs_twice": len(ran) - len(set(ran)),
        "messages": len(history),
        "problems": len(get("openai_chat").validate(history, open_tail=False)),
        "goes_on": final == "answer to the last question",
    }
    print(json.dumps(result, indent=1))
    print(save("durable_kill", result, inputs={"kills": args.kills, "seed": args.seed}, out=args.out))


if __name__ == "__main__":
    main()
