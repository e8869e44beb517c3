"""Write the digest of a session: by a model where one may be asked and its text stands up to the check, else by extraction.

A model's digest is a list of sentences, each with the numbers of the turns that it is taken from. A sentence without such
a turn is dropped, and so is one with a number or code that the source does not hold. What is left must be shorter than
its source and keep its identifiers (names, addresses, codes, numbers); when it keeps most, the others are added by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from wakeful.consolidation.judging import consult, plain
from wakeful.consolidation.phase import Cycle
from wakeful.consolidation.wording import entities, folded, signature
from wakeful.needs import Flow
from wakeful.records import MemoryNode
from wakeful.replies import Unreadable

SYSTEM = (
    "You condense a record of past conversation into short factual sentences for long-term memory: what was asked, said, "
    "decided, done and found out, by whom and when. Write in the language of the record, in the past tense, with names "
    "instead of pronouns. Keep every name, number, date and code exactly as written. Leave out greetings and repetition. "
    'Give "sentences"; each has "text", and "turns": the numbers of the turns that it is taken from.'
)
"""System prompt of a digest. It asks for the turns of each sentence, so that what has no source can be told."""

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "sentences": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "maxLength": 400},
                    "turns": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["text", "turns"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["sentences"],
    "additionalProperties": False,
}
"""JSON schema of the reply."""

SHARE = 0.6
"""Most length of a model's digest, as a share of its source."""
KEPT = 0.75
"""Least share of the source's identifiers that a model's digest must keep by itself; the rest is added by name."""
PART = 24_000
"""Characters of turns that one call reads; a longer session is digested in parts."""


def identifiers(text: str) -> frozenset[str]:
    """What a digest must not lose, folded."""
    return signature(text)[0] | {folded(name) for name in entities(text)}


def accepted(digest: str, source: str) -> bool:
    """Whether a digest may stand for its source."""
    body = folded(digest)
    return bool(body) and len(digest) < SHARE * len(source) and all(each in body for each in identifiers(source))


def extract(texts: Sequence[str]) -> str:
    """The telling lines of some texts: each that brings an identifier or a rare word not yet said."""
    counts = Counter(word for text in texts for word in set(folded(text).split()))
    said: set[str] = set()
    lines = []
    for text in texts:
        new = identifiers(text) - said
        rare = {word for word in folded(text).split() if counts[word] == 1 and len(word) > 4} - said
        if new or len(rare) > 2:
            lines.append(" ".join(text.split()))
            said |= new | rare
    return "\n".join(lines)


def digest(cycle: Cycle, turns: Sequence[MemoryNode]) -> Flow[tuple[str, str]]:
    """Digest a session's turns, in order: (text, who wrote it and, for an extractive one, why no model did)."""
    texts, wrote, whys = [], [], dict[str, None]()
    for part in parts(turns):
        text, why = yield from _by_model(cycle, part)
        texts.append(text or extract([turn.content for turn in part]))
        wrote.append("model" if text else "extractive")
        if why and cycle.model:
            whys[why] = None
    by = " and ".join(dict.fromkeys(wrote))
    return "\n".join(text for text in texts if text), f"{by}: {'; '.join(whys)}" if whys else by


def parts(turns: Sequence[MemoryNode]) -> list[list[MemoryNode]]:
    """Cut a session into runs of turns that one call can read."""
    cut: list[list[MemoryNode]] = []
    size = PART + 1
    for turn in turns:
        size += len(turn.content)
        if size > PART:
            cut.append([])
            size = len(turn.content)
        cut[-1].append(turn)
    return cut


def _by_model(cycle: Cycle, turns: Sequence[MemoryNode]) -> Flow[tuple[str, str]]:
    source = "\n".join(turn.content for turn in turns)
    names = identifiers(source)
    record = [
        f"[{number}] {turn.asserted_at:%Y-%m-%d} {turn.source.speaker or turn.source.by}: {turn.content}"
        for number, turn in enumerate(turns)
    ]

    def read(data: Mapping[str, Any]) -> str:
        items = data.get("sentences")
        if not isinstance(items, list):
            raise Unreadable("the reply holds no sentences")
        lines = [line for item in items if (line := _sentence(item, len(turns), source))]
        text = "\n".join(dict.fromkeys(lines))
        body = folded(text)
        missing = sorted(each for each in names if each not in body)
        if len(missing) > (1 - KEPT) * len(names):
            raise Unreadable(f"the digest lost {len(missing)} of {len(names)} identifiers")
        if missing:
            text += f"\nAlso named: {', '.join(_as_written(missing, source))}."
        if not accepted(text, source):
            raise Unreadable("the digest is empty" if not lines else "the digest is too long")
        return text

    most = min(4_000, 200 + len(source) // 6)
    answer = yield from consult(cycle, system=SYSTEM, record=record, schema=SCHEMA, read=read, most=most)
    return answer.value or "", answer.why


def _sentence(item: Any, count: int, source: str) -> str:
    """A sentence of the reply; empty when it has no source or names what its source does not."""
    if not isinstance(item, Mapping) or not isinstance(item.get("turns"), list):
        return ""
    if not any(isinstance(turn, int) and 0 <= turn < count for turn in item["turns"]):
        return ""
    text = plain(item.get("text"), 400)
    body = folded(source)
    return text if all(number in body for number in signature(text)[0]) else ""


def _as_written(missing: Sequence[str], source: str) -> list[str]:
    """Identifiers in the spelling of their source, where they have one."""
    written = {folded(name): name for name in entities(source)}
    whole = [each for each in missing if not any(each != other and each in other for other in missing)]
    return [written.get(each, each) for each in whole]
