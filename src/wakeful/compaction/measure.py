"""A history as columns: the fields of its weights, and a message's parts read only where something is edited.

This is the hot path: one look at each message, and C loops from there on. A history is not changed once it was looked
at, so its columns, rows and sums are made once, and only when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, repeat
from typing import Any

from wakeful.dialects.protocol import Columns, Count, Dialect, Weight


class History:
    """Messages with their weights, and where each came from."""

    __slots__ = ("_columns", "_running", "_weights", "merged", "messages", "origins")

    def __init__(
        self,
        messages: list[Any],
        weights: list[Weight] | Columns,
        origins: Sequence[int],
        merged: dict[int, tuple[int, ...]] | None = None,
    ) -> None:
        self.messages = messages
        self.origins = origins
        """Index in the caller's list of the message that it was, or -1 for one that was made here."""
        self.merged = {} if merged is None else merged
        """Origins of a message that several were merged into, by its index here."""
        self._columns: Columns | None = None
        self._weights: list[Weight] | None = None
        self._running: tuple[list[int], list[int]] | None = None
        if isinstance(weights, Columns):
            self._columns = weights
        else:
            self._weights = weights

    @property
    def weights(self) -> list[Weight]:
        """The weight of each message."""
        if self._weights is None:
            kinds, tokens, calls, results, sizes, flags = self.columns()
            rows = zip(kinds, tokens, calls, results, sizes, flags, strict=True)
            self._weights = list(map(tuple.__new__, repeat(Weight), rows))
        return self._weights

    def columns(self) -> Columns:
        """Give the weights by field."""
        if self._columns is None:
            self._columns = columns_of(self.weights)
        return self._columns

    @property
    def tokens(self) -> int:
        """Tokens of all messages."""
        return self.running_tokens()[-1]

    @property
    def size(self) -> int:
        """Bytes of all messages in a request."""
        return self.running_sizes()[-1]

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


def columns_of(weights: Sequence[Weight]) -> Columns:
    """Give weights by field."""
    if not weights:
        return Columns(b"", (), (), (), (), b"")
    kinds, tokens, calls, results, sizes, flags = zip(*weights, strict=True)
    return Columns(bytes(kinds), tokens, calls, results, sizes, bytes(flags))


def measure(dialect: Dialect, messages: Sequence[Any], count: Count) -> History:
    """Weigh every message. Raises ``InputError`` for what can't be a message."""
    return History(list(messages), weigh_all(dialect, messages, count), range(len(messages)))


def weigh_all(dialect: Dialect, messages: Sequence[Any], count: Count) -> Columns:
    """Weigh messages, together where the dialect has a faster way for that (a method ``weigh_all``)."""
    together: Callable[[Sequence[Any], Count], Columns] | None = getattr(dialect, "weigh_all", None)
    if together is not None:
        return together(messages, count)
    weigh = dialect.weigh
    return columns_of([weigh(message, count) for message in messages])
