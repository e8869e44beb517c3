"""A history as columns: one list of weights, and a message's parts read only where something is edited.

This is the hot path: one call of ``Dialect.weigh`` a message, and C loops from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import Any

from wakeful.dialects.protocol import Count, Dialect, Weight

_kinds, _tokens, _sizes = itemgetter(0), itemgetter(1), itemgetter(4)


@dataclass(slots=True)
class History:
    """Messages with their weights, and where each came from."""

    messages: list[Any]
    weights: list[Weight]
    origins: Sequence[int]
    """Index in the caller's list of the message that it was, or -1 for one that was made here."""
    merged: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Origins of a message that several were merged into, by its index here."""

    @property
    def tokens(self) -> int:
        """Tokens of all messages."""
        return sum(map(_tokens, self.weights))

    @property
    def size(self) -> int:
        """Bytes of all messages in a request."""
        return sum(map(_sizes, self.weights))

    def kinds(self) -> list[int]:
        """Kinds of all messages (codes of ``Kind``)."""
        return list(map(_kinds, self.weights))

    def running_tokens(self) -> list[int]:
        """Tokens before each message, and of all at the end: one more than there are messages."""
        return [0, *accumulate(map(_tokens, self.weights))]

    def running_sizes(self) -> list[int]:
        """The same of bytes."""
        return [0, *accumulate(map(_sizes, self.weights))]


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
