"""What a summary must be before it may take the place of messages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import ceil
from typing import Literal, TypeAlias

from wakeful.needs import ChatReply

RefusedCode: TypeAlias = Literal[
    "nothing_to_digest",
    "blank",
    "acknowledgement",
    "not_text",
    "not_smaller",
    "missing_identifiers",
    "model_failed",
    "breaker_open",
    "too_large",
]
"""Why there is no summary. ``acknowledgement``: it says nothing of the source. ``too_large``: longer than it may be, or
cut off by the model's output limit."""

LEAST_WORDS = 5
"""Words of its source that a summary must speak of, unless the source itself has fewer."""

OWN_SHARE = 0.2
"""Least share of a summary's words that its source holds; an error text or small talk has fewer. Low, so that a summary
in another form of words, or another grammar's endings, is not refused."""

_WORD = re.compile(r"[^\W\d_]{4,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]{2}|\w*\d\w*")


def words_of(text: str) -> frozenset[str]:
    """Give the telling words of a text: of four letters or more (first five letters), pairs of Asian ones, numbers."""
    return frozenset(word[:5].lower() for word in _WORD.findall(text))


class SourceText:
    """What a summary stands for, as text that comes piece by piece. Words are looked up in it; it is never split whole."""

    def __init__(self, *texts: str) -> None:
        self._texts: list[str] = []
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add a piece."""
        if text:
            self._texts.append(text.lower())

    def shared(self, words: Iterable[str], enough: int) -> int:
        """Count the words (as of ``words_of``) that stand in it, up to ``enough``."""
        count = 0
        for word in words:
            if count >= enough:
                break
            count += any(_stands(word, text) for text in self._texts)
        return count

    def has_words(self, least: int) -> int:
        """Count its words, up to ``least``."""
        found: set[str] = set()
        for text in self._texts:
            for match in _WORD.finditer(text):
                found.add(match[0][:5])
                if len(found) >= least:
                    return least
        return len(found)


_SPACE = re.compile(r"\s")
_PLACES = 32
"""Places of a text that are looked at for a word; it stands inside of longer words at others."""
_AROUND = 80
"""Characters around a place that are read as words."""


def _stands(word: str, text: str) -> bool:
    at = text.find(word)
    for _ in range(_PLACES):
        if at < 0:
            return False
        if word in words_of(_piece(text, at, at + len(word))):
            return True
        at = text.find(word, at + 1)
    return False


def _piece(text: str, start: int, stop: int) -> str:
    """Give the text between the spaces around a place."""
    before = _SPACE.split(text[max(0, start - _AROUND) : start])[-1]
    after = _SPACE.split(text[stop : stop + _AROUND], maxsplit=1)[0]
    return before + text[start:stop] + after


def judge(
    reply: ChatReply, *, source: SourceText, source_tokens: int, tokens: int, most: int, min_saving: float
) -> RefusedCode | None:
    """Say why a model's reply is no summary of the source; None when it is one.

    ``tokens``: of the reply's text; ``most``: what it may have; ``source_tokens``: of what it would stand for.
    """
    text = reply.text.strip()
    if not text:
        return "not_text" if reply.calls else "blank"
    if reply.stop == "refused":
        return "model_failed"
    words = words_of(text)
    needed = max(LEAST_WORDS, ceil(OWN_SHARE * len(words)))
    shared = source.shared(sorted(words), needed)
    if shared < OWN_SHARE * len(words) or shared < source.has_words(LEAST_WORDS):
        return "acknowledgement"
    if tokens > source_tokens * (1 - min_saving):
        return "not_smaller"
    if tokens > most or reply.stop == "length":
        return "too_large"
    return None
