"""Shorten one content: its head, its tail, and a pointer to the whole. JSON stays parseable.

Rules of the file:

- The pointer names the archive id, so the whole can be asked for.
- What is given back is at most ``tokens`` by ``count``, or None when that can't be had.
"""

from __future__ import annotations

import json
import re
from typing import Any

from wakeful.dialects.protocol import Count

LEAST = 96
"""Tokens under which a content is not shortened: pointer and a few words of head and tail need about so many."""

HEAD_SHARE = 0.6
"""Share of what stays that is the head: what a result is comes first, how it ended comes last."""

_POINTER = re.compile(r"\[\.\.\. about [\d,]+ tokens left out - archived as a-[0-9a-z]{20} \.\.\.\]")


def pointer(id: str, tokens: int) -> str:
    """Give the text that stands for what was left out."""
    return f"[... about {tokens:,} tokens left out - archived as {id} ...]"


def is_shortened(text: str) -> bool:
    """Say whether a text was shortened here before."""
    return _POINTER.search(text) is not None


def shorten(text: str, tokens: int, id: str, count: Count) -> str | None:
    """Give the text in at most ``tokens``; None when it can't be brought there or is small already."""
    if text[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            return _shorten_json(value, text, tokens, id, count)
    whole = count(text, "text")
    if whole <= tokens:
        return None
    return _fit(lambda chars: _cut(text, chars, pointer(id, whole)), len(text), tokens, count, "text")


def shorten_value(value: Any, tokens: int, id: str, count: Count) -> Any | None:
    """The same for a decoded JSON value: strings are cut, long lists keep both ends."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    short = _shorten_json(value, text, tokens, id, count)
    return None if short is None else json.loads(short)


def _cut(text: str, chars: int, middle: str) -> str:
    head = int(chars * HEAD_SHARE)
    tail = chars - head
    return f"{text[:head]}\n{middle}\n{text[len(text) - tail :] if tail else ''}"


def _fit(make: Any, most: int, tokens: int, count: Count, kind: Any) -> str | None:
    """Find the largest size whose text is within ``tokens``."""
    low, high = 0, most
    best: str | None = None
    for _ in range(24):
        if low > high:
            break
        middle = (low + high) // 2
        text = make(middle)
        if count(text, kind) <= tokens:
            best, low = text, middle + 1
        else:
            high = middle - 1
    return best


def _shorten_json(value: Any, text: str, tokens: int, id: str, count: Count) -> str | None:
    whole = count(text, "json")
    if whole <= tokens:
        return None
    note = pointer(id, whole)

    def make(chars: int) -> str:
        return json.dumps(_trim(value, chars, note), ensure_ascii=False, default=str)

    short = _fit(make, len(text), tokens, count, "json")
    if short is not None:
        return short
    bare = json.dumps({"shortened": note})
    return bare if count(bare, "json") <= tokens else None


def _trim(value: Any, chars: int, note: str) -> Any:
    """Trim strings to ``chars`` and lists to as many items as ``chars`` may hold, both ends kept."""
    if isinstance(value, str):
        return value if len(value) <= chars + len(note) else _cut(value, chars, note)
    if isinstance(value, dict):
        items = list(value.items())
        most = max(1, chars // 8)
        kept = {key: _trim(item, chars, note) for key, item in items[:most]}
        if len(items) > most:
            kept["shortened"] = note
        return kept
    if isinstance(value, list):
        most = max(1, chars // 32)
        if len(value) <= most:
            return [_trim(item, chars, note) for item in value]
        head = max(1, int(most * HEAD_SHARE))
        tail = value[len(value) - (most - head) :] if most > head else []
        return [_trim(v, chars, note) for v in value[:head]] + [note] + [_trim(v, chars, note) for v in tail]
    return value
