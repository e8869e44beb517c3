"""A history as columns: one list of weights, and a message's parts read only where something is edited.

This is the hot path: one call of ``Dialect.weigh`` a message, and C loops from there on. A history is not changed once
it was looked at, so its columns and sums are made once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

from wakeful.dialects.protocol import Count, Dialect, Weight


class Columns(NamedTuple):
    """The fields of all weights."""

    kinds: bytes
    tokens: Sequence[int]
    calls: Sequence[tuple[str, ...]]
    results: Sequence[tuple[str, ...]]
    sizes: Sequence[int]
    flags: Sequence[int]


def columns_of(weights: Sequence[Weight]) -> Columns:
    """Give weights by field."""
    if not weights:
        return Columns(b"", (), (), (), (), ())
    kinds, tokens, calls, results, sizes, flags = zip(*weights, strict=True)
    return Columns(bytes(kinds), tokens, calls, results, sizes, flags)


@dataclass(slots=True)
class History:
    """Messages with their weights, and where each came from."""

    messages: list[Any]
    weights: list[Weight]
    origins: Sequence[int]
    """Index in the caller's list of the message that it was, or -1 for one that was made here."""
    merged: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Origins of a message that several were merged into, by its index here."""

    _columns: Columns | None = field(default=None, repr=False, compare=False)
    _running: tuple[list[int], list[int]] | None = field(default=None, repr=False, compare=False)

    @property
    def tokens(self) -> int:
        """Tokens of all messages."""
        return self.running_tokens()[-1]

    @property
    def size(self) -> int:
        """Bytes of all messages in a request."""
        return self.running_sizes()[-1]

    def columns(self) -> Columns:
        """Give the weights by field."""
        if self._columns is None:
            self._columns = columns_of(self.weights)
        return self._columns

    def kinds(self) -> bytes:
        """Kinds of all messages (codes of ``Kind``)."""
        return self.columns().kinds

    def running_tokens(self) -> list[int]:
        """Tokens before each message, and of all at the end: one more than there are messages."""
        return self._sums()[0]

    def running_sizes(self) -> list[int]:
        """The same of bytes."""
        return self._sums()[1]

    def _sums(self) -> tuple[list[int], list[int]]:
        if self._running is None:
            columns = self.columns()
            self._running = [0, *accumulate(columns.tokens)], [0, *accumulate(columns.sizes)]
        return self._running


def measure(dialect: Dialect, messages: Sequence[Any], count: Count) -> History:
    """Weigh every message. Raises ``InputError`` for what can't be a message."""
    return History(list(messages), weigh_all(dialect, messages, count), range(len(messages)))


def weigh_all(dialect: Dialect, messages: Sequence[Any], count: Count) -> list[Weight]:
    """Weigh messages, together where the dialect has a faster way for that (a method ``weigh_all``)."""
    together: Callable[[Sequence[Any], Count], list[Weight]] | None = getattr(dialect, "weigh_all", None)
    if together is not None:
        return together(messages, count)
    weigh = dialect.weigh
    return [weigh(message, count) for message in messages]
