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
    best, best_score = None, 0.0
    for name in NAMES:
        dialect = get(name)
        score = dialect.recognises(messages)
        if score > best_score:
            best, best_score = dialect, score
    if best is None:
        raise UnknownFormat(
            f"these messages are of no format that Wakeful knows; name one with dialect=... (one of {', '.join(NAMES)})"
        )
    return best
