"""Narrow a tool manifest to what a query needs, by keyword and by meaning.

A tool's score is the share of the query's words that its name and description hold, or the cosine of their vectors,
whichever is higher. Ties keep the manifest's order, so the result is the same every time.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul

from wakeful.needs import Flow, ToolSpec, embed

LEAST_SCORE = 0.15
"""Below it a tool does not match."""

_SPLIT = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Which tools a query needs."""

    names: tuple[str, ...]
    """In the manifest's order."""
    scores: tuple[tuple[str, float], ...]
    """Every tool with its score, 0 to 1."""
    narrowed: bool
    """False: all tools stay, since nothing matched or all are needed."""


def words(text: str) -> frozenset[str]:
    """Words of a text for matching: folded, split at case changes and underscores; bigrams without spaces."""
    folded = unicodedata.normalize("NFKC", text)
    found = {part.casefold() for part in _SPLIT.split(folded) if len(part) > 2}
    for run in _WIDE.findall(folded):
        found.update(run[i : i + 2] for i in range(len(run) - 1))
    return frozenset(found)


def route(
    query: str,
    tools: Sequence[ToolSpec],
    *,
    always_include: Sequence[str] = (),
    most: int = 12,
    meanings: MutableMapping[str, bytes] | None = None,
) -> Flow[Routing]:
    """Choose at most ``most`` tools for a query, those of ``always_include`` beside them.

    ``meanings``: vectors are compared too, and those of the tools are kept in it, so that a turn embeds its query alone;
    None: words only. When no tool matches, all stay: a wrong guess must not take the model's hands away.
    """
    asked = words(query)
    texts = [f"{tool.name}: {tool.description}" for tool in tools]
    scores = [_overlap(asked, _offered(text)) for text in texts]
    if meanings is not None and tools:
        new = tuple(dict.fromkeys(text for text in texts if text not in meanings))
        meanings.update(zip(new, (yield from embed(new, "document")), strict=True))
        (sought,) = yield from embed((query,), "query")
        scores = [max(score, _cosine(sought, meanings[text])) for score, text in zip(scores, texts, strict=True)]
    kept = {index for index, score in enumerate(scores) if score >= LEAST_SCORE}
    named = {index for index, tool in enumerate(tools) if tool.name in always_include}
    narrowed = bool(kept) and len(kept | named) < len(tools)
    if narrowed:
        kept = set(sorted(kept, key=lambda index: (-scores[index], index))[:most]) | named
    else:
        kept = set(range(len(tools)))
    return Routing(
        names=tuple(tool.name for index, tool in enumerate(tools) if index in kept),
        scores=tuple((tool.name, score) for tool, score in zip(tools, scores, strict=True)),
        narrowed=narrowed,
    )


@lru_cache(maxsize=4096)
def _offered(text: str) -> frozenset[str]:
    return words(text)


def _overlap(asked: frozenset[str], offered: frozenset[str]) -> float:
    if not asked:
        return 0.0
    hits = sum(any(word == other or _stem(word) == _stem(other) for other in offered) for word in asked)
    return hits / len(asked)


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") else word


def _cosine(left: bytes, right: bytes) -> float:
    a, b = array("f", left), array("f", right)
    return sum(map(mul, a, b), 0.0)
