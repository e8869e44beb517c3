"""What every benchmark shares: other people's transcripts as messages, and results written with their origin.

Data sets stand in a folder given with ``--data``; none of it is part of the project. Every transcript is a list of
OpenAI Chat messages.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
OUT = BENCH / "out"
"""Results of runs on this machine; not kept in the repository."""
RESULTS = BENCH / "results"
"""Results that ``RESULTS.md`` is made from."""


@dataclass(frozen=True)
class Transcript:
    """One recorded conversation."""

    name: str
    messages: list[dict[str, Any]]
    """OpenAI Chat messages, the system prompt first where there is one."""
    actions: dict[int, str]
    """By message index: the command of an assistant message that acts through plain text (no tool call)."""


def load(data: Path, name: str) -> list[Transcript]:
    """Load a data set: ``tau_bench``, ``tau2_bench``, ``swe_agent`` or ``locomo``; one without text is left out."""
    loaders = {"tau_bench": _tau, "tau2_bench": _tau2, "swe_agent": _swe, "locomo": _locomo}
    return [each for each in loaders[name](data / name) if any(_has_content(m) for m in each.messages)]


def _has_content(message: dict[str, Any]) -> bool:
    return bool(message.get("content") or message.get("tool_calls"))


def _tau(folder: Path) -> Iterator[Transcript]:
    for path in sorted(folder.glob("*.json")):
        for i, run in enumerate(json.loads(path.read_text())):
            yield Transcript(f"{path.stem}-{i:03d}", [_chat(m) for m in run["traj"]], {})


def _tau2(folder: Path) -> Iterator[Transcript]:
    """A simulation's ``messages``, or the chunks of its ticks (which may hold no text at all)."""
    for path in sorted(folder.glob("*.json")):
        run = json.loads(path.read_text())
        found = run.get("messages")
        if found is None:
            found = [chunk for tick in run.get("ticks", ()) for chunk in (tick["user_chunk"], tick["agent_chunk"])]
        yield Transcript(path.stem, [_chat(m) for m in found if _has_content(m)], {})


def _swe(folder: Path) -> Iterator[Transcript]:
    for path in sorted(folder.glob("traj-*.json")):
        history = json.loads(path.read_text())["history"]
        actions = {i: m["action"] for i, m in enumerate(history) if m.get("action") and not m.get("tool_calls")}
        yield Transcript(path.stem, [_chat(m) for m in history], actions)


def _locomo(folder: Path) -> Iterator[Transcript]:
    for path in sorted(folder.glob("*.json")):
        for i, sample in enumerate(json.loads(path.read_text())):
            talk = sample["conversation"]
            first = talk.get("speaker_a")
            messages = []
            for session in sorted((k for k in talk if k[8:].isdigit() and k.startswith("session_")), key=_number):
                for turn in talk[session]:
                    role = "user" if turn["speaker"] == first else "assistant"
                    messages.append({"role": role, "content": f"{turn['speaker']}: {turn['text']}"})
            yield Transcript(f"locomo-{i}", messages, {})


def _number(session: str) -> int:
    return int(session[8:])


def _chat(message: dict[str, Any]) -> dict[str, Any]:
    """Keep the fields of a Chat message, and nothing that a recorder added."""
    kept: dict[str, Any] = {"role": message["role"], "content": message.get("content")}
    if message.get("tool_calls"):
        kept["tool_calls"] = message["tool_calls"]
    ids = message.get("tool_call_ids")
    if message["role"] == "tool":
        kept["tool_call_id"] = message.get("tool_call_id") or (ids[0] if ids else "")
    return kept


def cut_where_model_speaks(messages: list[dict[str, Any]], share: float = 0.7) -> int | None:
    """Give the first place at or after ``share`` of the messages where an assistant message is next; None for none."""
    for at in range(int(len(messages) * share), len(messages)):
        if messages[at]["role"] == "assistant":
            return at
    return None


def leaves(value: Any) -> Iterator[str]:
    """Give every scalar of decoded JSON as text; booleans and null are left out."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str):
        yield value
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def text_of(messages: list[dict[str, Any]]) -> str:
    """Give all that a model reads in these Chat messages as one text; arguments both raw and decoded."""
    parts: list[str] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            parts.append(content)
        elif isinstance(content, list):
            parts += [part.get("text", "") for part in content if isinstance(part, dict)]
        for call in message.get("tool_calls") or ():
            raw = call["function"]["arguments"]
            parts += [call["function"]["name"], raw]
            with contextlib.suppress(ValueError):
                parts += leaves(json.loads(raw))
    return "\n".join(parts)


def argument_values(messages: list[dict[str, Any]], *, least: int = 3, most: int = 60) -> set[str]:
    """Give the exact values, of ``least`` to ``most`` characters, that these messages pass to tools."""
    found: set[str] = set()
    for message in messages:
        for call in message.get("tool_calls") or ():
            try:
                found.update(leaves(json.loads(call["function"]["arguments"])))
            except ValueError:
                continue
    return {value for value in found if least <= len(value) <= most}


def parse(description: str | None) -> argparse.ArgumentParser:
    """Make the parser that every benchmark starts from."""
    lines = (description or "").strip().splitlines()
    parser = argparse.ArgumentParser(description=lines[0] if lines else None)
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the result (default: bench/out)")
    return parser


def input_hash(*parts: Any) -> str:
    """Hash what a run was given, so that two results can be told to be of the same input."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(json.dumps(part, sort_keys=True, default=str).encode())
    return digest.hexdigest()[:16]


def _command() -> str:
    """Give the command line, folders left out."""
    words = ["FOLDER" if Path(word).is_absolute() else word for word in sys.argv[1:]]
    return " ".join(["python", "bench/" + Path(sys.argv[0]).name, *words])


def save(name: str, result: dict[str, Any], *, inputs: Any, out: Path = OUT) -> Path:
    """Write a result as JSON with commit, machine and input hash; gives its path."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=BENCH, capture_output=True, text=True, check=False
    ).stdout.strip()
    record = {
        "bench": name,
        "commit": commit,
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "python": sys.version.split()[0],
        "input": input_hash(inputs),
        "command": _command(),
        "result": result,
    }
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return path
