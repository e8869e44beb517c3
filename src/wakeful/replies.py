"""Read JSON as models write it: fenced, with prose around it, with trailing commas, cut at its end."""

from __future__ import annotations

import json
import re
from typing import Any

_FIELD = 100_000
"""Characters of a reply that are read at most."""


class Unreadable(ValueError):
    """A model's reply that does not have the shape that was asked for."""


_FENCE = re.compile(r"```(?:json)?\s*(.*?)(?:```|$)", re.DOTALL | re.IGNORECASE)
_TRAILING = re.compile(r",(\s*[}\]])")


def loads(text: str) -> Any:
    """Read JSON as models write it. Raises ``Unreadable``."""
    text = text[:_FIELD].strip()
    if not text:
        raise Unreadable("the reply is empty")
    fenced = _FENCE.search(text)
    for body in filter(None, (text, fenced.group(1) if fenced else None)):
        start = min((place for mark in "{[" if (place := body.find(mark)) >= 0), default=-1)
        if start < 0:
            continue
        for attempt in (body[start:], _TRAILING.sub(r"\1", body[start:])):
            try:
                value, _ = json.JSONDecoder().raw_decode(attempt)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, (dict, list)):
                return value
        mended = _mend(body[start:])
        if mended is not None:
            return mended
    raise Unreadable("the reply is no JSON")


def _mend(body: str) -> Any:
    """Read the whole objects at the front of a reply that was cut: half of a list is better than none of it."""
    found: list[Any] = []
    decoder = json.JSONDecoder()
    place = body.find("[")
    while place >= 0 and (place := body.find("{", place)) >= 0:
        try:
            value, end = decoder.raw_decode(_TRAILING.sub(r"\1", body[place:]))
        except (ValueError, RecursionError):
            break
        found.append(value)
        place += max(1, end)
    return found or None
