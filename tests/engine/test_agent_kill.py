"""A real process, really killed."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from wakeful.dialects import get
from wakeful.engine.agent import Agent
from wakeful.testing import ScriptedModel

WORKER = """
import os, sys
from wakeful.engine.agent import Agent
from wakeful.engine.tools import ToolContext
from wakeful.needs import ToolCall
from wakeful.testing import Say, ScriptedModel

url, effects, die = sys.argv[1:]

def act(context: ToolContext, n: int) -> str:
    "Act."
    with open(effects, "a") as file:
        file.write(context.call_id + "\\n")
    if context.call_id == die:
        os.kill(os.getpid(), 9)
    return f"acted {n}"

def script(request):
    batches = sum(1 for m in request.messages if m.get("tool_calls"))
    if batches == 2:
        return "answer"
    return Say(calls=tuple(ToolCall(f"c{batches}-{i}", "act", {"n": i}) for i in range(2)))

agent = Agent(ScriptedModel(script, strict=True), tools=[act], sessions=url, parallel=1, tool_timeout=None)
if agent.session("s").turn() is None:
    print(agent.run("go", session="s").text)
else:
    print(list(agent.resume("s"))[-1].result.text)
"""


def work(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WORKER, *arguments], capture_output=True, text=True, check=False)


def test_a_process_killed_inside_a_tool_is_resumed_by_another_and_the_tool_runs_once(tmp_path):
    url, effects = f"sqlite:///{tmp_path}/s.db", tmp_path / "effects"
    first = work(url, str(effects), "c0-1")
    assert first.returncode == -signal.SIGKILL
    second = work(url, str(effects), "c1-0")
    assert second.returncode == -signal.SIGKILL
    third = work(url, str(effects), "nobody")
    assert (third.returncode, third.stdout.strip()) == (0, "answer")
    assert Path(effects).read_text().split() == ["c0-0", "c0-1", "c1-0"]
    messages = Agent(ScriptedModel([]), sessions=url).session("s").messages()
    assert not get("openai_chat").validate(list(messages), open_tail=False)
    told = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    assert told["c0-0"] == "acted 0"
    assert "Interrupted" in told["c0-1"]
    assert "Interrupted" in told["c1-0"]
    assert json.dumps(list(messages))
