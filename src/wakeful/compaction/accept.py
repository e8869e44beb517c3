"""What a summary must be before it may take the place of messages."""

from __future__ import annotations

import re
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


def judge(
    reply: ChatReply, *, source_words: frozenset[str], source_tokens: int, tokens: int, most: int, min_saving: float
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
    shared = len(words & source_words)
    if shared < min(LEAST_WORDS, len(source_words)) or shared < OWN_SHARE * len(words):
        return "acknowledgement"
    if tokens > source_tokens * (1 - min_saving):
        return "not_smaller"
    if tokens > most or reply.stop == "length":
        return "too_large"
    return None
