"""How many tokens a history may have, and when it must shrink.

``room = window - reserve - prompt_tokens``. A compaction starts above ``trigger`` of the room and comes down to
``target`` of it; the distance between the two is what keeps the prompt cache alive between compactions.
"""

from __future__ import annotations

from dataclasses import dataclass

RESERVE = 4_096
"""Tokens left for the reply when neither the caller nor the catalogue says how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What the history may weigh, in tokens (and bytes)."""

    window: int | None
    """Tokens of the model's window; None: nothing is sized against it."""
    reserve: int = 0
    """Tokens left for the reply."""
    prompt_tokens: int = 0
    """Tokens of the system prompt and tool definitions that the request has beside the history."""
    trigger: float = 0.9
    """Share of the room above which a compaction starts."""
    target: float = 0.6
    """Share of the room that it comes down to."""
    max_bytes: int | None = None
    """Most bytes of the history in a request; None: not limited."""

    @property
    def room(self) -> int:
        """Tokens that the history may have; 0 when the rest fills the window already."""
        return NO_LIMIT if self.window is None else max(0, self.window - self.reserve - self.prompt_tokens)

    @property
    def start(self) -> int:
        """Tokens above which a compaction starts."""
        return NO_LIMIT if self.window is None else int(self.room * self.trigger)

    @property
    def goal(self) -> int:
        """Tokens that a compaction comes down to."""
        return NO_LIMIT if self.window is None else int(self.room * self.target)

    @property
    def byte_room(self) -> int:
        """Bytes that the history may have."""
        return NO_LIMIT if self.max_bytes is None else self.max_bytes

    @property
    def byte_start(self) -> int:
        """Bytes above which a compaction starts."""
        return NO_LIMIT if self.max_bytes is None else int(self.max_bytes * self.trigger)

    @property
    def byte_goal(self) -> int:
        """Bytes that a compaction comes down to."""
        return NO_LIMIT if self.max_bytes is None else int(self.max_bytes * self.target)

    def starts(self, tokens: int, size: int) -> bool:
        """Say whether a history of so many tokens and bytes must shrink."""
        return tokens > self.start or size > self.byte_start

    def fits(self, tokens: int, size: int) -> bool:
        """Say whether it can be sent."""
        return tokens <= self.room and size <= self.byte_room

    def reached(self, tokens: int, size: int) -> bool:
        """Say whether it came down far enough."""
        return tokens <= self.goal and size <= self.byte_goal


NO_LIMIT = 1 << 62
"""Stands for a budget that is not limited."""


def default_reserve(window: int, output_limit: int | None) -> int:
    """Tokens to leave for the reply: the model's output limit, or ``RESERVE``; at most half of the window.

    Some catalogues give the whole window as the output limit; half of it leaves room for a history.
    """
    return min(RESERVE if output_limit is None else output_limit, window // 2)
