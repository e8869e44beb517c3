"""Provider message formats, read in place and never converted.

``get(name)`` gives a dialect, ``guess(messages)`` finds the one that a list of messages is written in. Each lives in a
module of its own and is loaded when first asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from wakeful.dialects.protocol import Dialect
from wakeful.errors import ConfigError, UnknownFormat

NAMES = ("anthropic", "openai_chat", "openai_responses", "gemini", "bedrock", "langchain")
"""Every dialect, in the order in which a tie of ``guess`` is decided."""

_loaded: dict[str, Dialect] = {}


def get(name: str | Dialect) -> Dialect:
    """Give the dialect of this name; a dialect is given back as it is. Raises ``ConfigError`` for an unknown name."""
    if not isinstance(name, str):
        return name
    if name not in NAMES:
        raise ConfigError(f"unknown dialect {name!r}; known: {', '.join(NAMES)}")
    dialect = _loaded.get(name)
    if dialect is None:
        dialect = _loaded[name] = import_module(f"wakeful.dialects.{name}").DIALECT
    return dialect


def guess(messages: Sequence[Any]) -> Dialect:
    """Find the dialect that these messages are written in.

    A list that several formats share (only role and plain text) is taken as OpenAI Chat. Raises ``UnknownFormat`` when
    no dialect recognises it.
    """
    best, best_score = _best(_sample(messages))
    if best is not None and best_score < _SURE:
        for index, message in enumerate(messages):
            if type(message) is not dict or len(message) != 2 or type(message.get("content")) is not str:
                again, score = _best(_sample(messages[index:]))
                if again is not None and score > best_score and again.recognises(messages[:_HEAD]):
                    best = again
                break
    if best is None:
        raise UnknownFormat(
            f"these messages are of no format that Wakeful knows; name one with dialect=... (one of {', '.join(NAMES)})"
        )
    return best


_HEAD, _TAIL = 50, 5
"""Messages of the head and of the tail that are looked at."""

_SURE = 0.9
"""A score from which no further messages are looked at; below it the messages seen were roles and plain text."""


def _sample(messages: Sequence[Any]) -> Sequence[Any]:
    if len(messages) <= _HEAD + _TAIL:
        return messages
    return [*messages[:_HEAD], *messages[-_TAIL:]]


def _best(messages: Sequence[Any]) -> tuple[Dialect | None, float]:
    best: Dialect | None = None
    best_score = 0.0
    for name in NAMES:
        dialect = get(name)
        score = dialect.recognises(messages)
        if score > best_score:
            best, best_score = dialect, score
            if score >= 1.0:
                break
    return best, best_score
