"""Fill a ledger from messages, and name the most telling values of one text.

``extract`` reads the messages newest first and stops when it has several times what the limit can hold, so its cost
follows the limit and not the length of the source.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from wakeful.compaction import values
from wakeful.compaction.layout import fold
from wakeful.compaction.ledger import LONG, RESULT, Ledger, Reader
from wakeful.compaction.measure import weigh_all
from wakeful.dialects.protocol import Dialect, Kind, Text

OVERSAMPLE = 2
"""Characters of values that are collected for each character of the limit, before the scan stops."""

LEAST_SCAN = 12_000
"""Characters of values that are collected whatever the limit is: a short conversation is always read to its start."""

MOST_READ = 512
"""Messages that are read, newest first. A longer stretch is compacted at once only when a long history comes cold; its
older part is in the archive, and the digest says so."""

MOST_PEOPLE = 256
"""Older messages of people that are read after the rest is not."""

LOOKED_AT = 1_200
"""Characters of a cleared text that are looked at for values, three quarters of them at its head."""

TELLING = 4
"""Least worth of a value that a cleared result's placeholder names."""


def extract(
    dialect: Dialect,
    messages: Sequence[Any],
    *,
    room: int,
    numbers: Sequence[int] | None = None,
    folded: str = "",
    people: Sequence[int] | None = None,
) -> Ledger:
    """Read messages, newest first, into a ledger, and then the body of an earlier summary.

    ``room``: characters that it will be laid out in; ``numbers``: of each message, as sources are told; ``people``:
    indexes of the messages that people wrote, when they are known.
    """
    reader = Reader(room)
    enough = max(LEAST_SCAN, room * OVERSAMPLE)
    read = dialect.read
    numbers = range(len(messages)) if numbers is None else numbers
    for index in range(len(messages) - 1, -1, -1):
        view = read(messages[index])
        for block in reversed(view.blocks):
            reader.take(block, view.role, numbers[index])
        if index and (reader.size > enough or len(messages) - index >= MOST_READ):
            reader.ledger.unread = numbers[index - 1]
            if people is None:
                kinds = weigh_all(dialect, messages[:index], _nothing).kinds
                people = [at for at, kind in enumerate(kinds) if kind == Kind.USER]
            _people(dialect, messages, people[: bisect_left(people, index)], numbers, reader)
            break
    if folded:
        fold(folded, reader)
    return reader.ledger


def _people(
    dialect: Dialect, messages: Sequence[Any], people: Sequence[int], numbers: Sequence[int], reader: Reader
) -> None:
    """Read on, newest first, in what people said alone: a rule or an address is as good as on the first day."""
    for index in reversed(people[-MOST_PEOPLE:]):
        for block in reversed(dialect.read(messages[index]).blocks):
            if type(block) is Text:
                reader.take(block, "user", numbers[index])


def _nothing(_text: str, _kind: str) -> int:
    return 0


def telling(text: str, most: int) -> str:
    """Give the most telling values of a result in at most ``most`` characters, in the order they stand in."""
    decoded = values.decode(text)
    if decoded is None:
        found = _worths(text)
    else:
        reader = Reader(0)
        reader.open(0, "result")
        reader.json(decoded, "")
        found = {fact.value: fact.worth for fact in reader.ledger.facts.values() if fact.worth >= TELLING}
    chosen: set[str] = set()
    for value in sorted(found, key=lambda value: -found[value]):
        if len(value) < most:
            most -= len(value) + 1
            chosen.add(value)
    return " ".join([value for value in found if value in chosen])


def _worths(text: str) -> dict[str, int]:
    """Give the identifiers and names of a text with their worth: what ``Reader`` finds in it that is worth ``TELLING``."""
    names = len(text) < LONG
    if len(text) > LOOKED_AT:
        text = f"{text[: LOOKED_AT * 3 // 4]} {text[-LOOKED_AT // 4 :]}"
    found = dict.fromkeys(values.quoted(text), RESULT[values.NAME]) if names else {}
    for token in values.distinct_tokens(text):
        shape = values.shape_of(token)
        if shape is not None:
            word, kind = shape
            if kind == values.ID or (names and kind == values.NAME):
                found.setdefault(word, RESULT[kind])
    return found
