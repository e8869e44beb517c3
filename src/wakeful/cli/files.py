"""Read conversations from files: plain lists, ``{"messages": [...]}``, JSON Lines, tau-bench and SWE-agent files.

A file that can't be read is an ``InputError`` that says where and why; nothing is guessed from half a file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wakeful.errors import InputError

LIST_KEYS = ("messages", "traj", "history", "input", "contents", "items")
"""Keys under which known formats keep their list of messages, in order of preference."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of a file."""

    name: str
    """File name, with ``#n`` when the file holds several."""
    messages: list[Any]


def read_conversation(path: str, *, index: int = 0) -> Conversation:
    """Read one conversation; ``index`` picks one of a file that holds several (tau-bench)."""
    found = read_conversations(path)
    if not 0 <= index < len(found):
        raise InputError(
            f"{path} holds {len(found)} conversations; --index {index} is not one of 0 to {len(found) - 1}"
        )
    return found[index]


def read_conversations(path: str) -> list[Conversation]:
    """Read every conversation of a file. Raises ``InputError`` for anything that is not one."""
    text = _text(path)
    name = Path(path).name
    if path.endswith((".jsonl", ".ndjson")) or _looks_like_lines(text):
        return [Conversation(name, _lines(path, text))]
    return _conversations(path, name, parse_json(text, path))


def parse_json(text: str, where: str) -> Any:
    """Decode JSON, by the letter. Raises ``InputError`` that begins with ``where`` for anything that is none."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}: " if "\n" in text.rstrip() else f"column {error.colno}: "
        raise InputError(f"{where} is not valid JSON ({place}{error.msg}); nothing was read") from None
    except RecursionError:
        raise InputError(f"{where} is nested too deeply to be a conversation; nothing was read") from None
    except ValueError as error:
        raise InputError(f"{where} is not valid JSON ({error}); nothing was read") from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"JSON has no {constant}")


def _text(path: str) -> str:
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError(f"no such file: {path}") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; give a file") from None
    except OSError as error:
        raise InputError(f"can't read {path}: {error.strerror or error}") from None
    if not raw.strip():
        raise InputError(f"{path} is empty; a conversation needs at least one message")
    if b"\x00" in raw[:4096]:
        raise InputError(f"{path} is a binary file, not JSON")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}); convert it or give a JSON file") from None


def _looks_like_lines(text: str) -> bool:
    """Say whether each of the first lines is an object of its own. Only line feeds part lines: other separators that
    Unicode knows may stand in a string."""
    lines = [line.strip() for line in text.split("\n", 8)[:8] if line.strip()]
    return len(lines) > 1 and all(line.startswith("{") and line.endswith("}") for line in lines[:3])


def _lines(path: str, text: str) -> list[Any]:
    messages = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            messages.append(parse_json(line, f"{path}, line {number}"))
    return _checked(path, messages)


def _conversations(path: str, name: str, data: Any) -> list[Conversation]:
    if isinstance(data, dict):
        for key in LIST_KEYS:
            if isinstance(data.get(key), list):
                return [Conversation(name, _checked(path, data[key]))]
        raise InputError(
            f"{path} is a JSON object without a list of messages; expected one of the keys {', '.join(LIST_KEYS)}"
        )
    if not isinstance(data, list):
        raise InputError(f"{path} holds a JSON {type(data).__name__}, not a list of messages")
    if data and all(isinstance(item, dict) and isinstance(item.get("traj"), list) for item in data):
        return [Conversation(f"{name}#{number}", _checked(path, item["traj"])) for number, item in enumerate(data)]
    return [Conversation(name, _checked(path, data))]


def _checked(path: str, messages: Sequence[Any]) -> list[Any]:
    if not messages:
        raise InputError(f"{path} holds no message")
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            raise InputError(f"{path}: message {number} is a {type(message).__name__}, not an object")
    return list(messages)
