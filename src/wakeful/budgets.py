"""Budgets that only fall.

A task budget bounds what one turn may cost in tokens. It is a value: spending gives a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from wakeful.errors import ConfigError
from wakeful.needs import Usage


@dataclass(frozen=True, slots=True)
class TaskBudget:
    """Tokens that a turn may use. ``remaining`` is never below 0 and never goes back up."""

    limit: int
    """Tokens, at least 1."""
    used: int = 0
    """Tokens that the model used in the turn: input and output of every call, as the provider counted them."""
    removed: int = 0
    """Estimated tokens of the turn's own messages that compactions removed."""

    def __post_init__(self) -> None:
        if isinstance(self.limit, bool) or not isinstance(self.limit, int) or self.limit < 1:
            raise ConfigError(f"a task budget is a whole number of tokens, at least 1, not {self.limit!r}")
        if self.used < 0 or self.removed < 0:
            raise ConfigError(f"a task budget counts up from 0: used={self.used}, removed={self.removed}")

    @property
    def remaining(self) -> int:
        """Tokens left; 0 when the budget is spent."""
        return max(0, self.limit - self.used - self.removed)

    @property
    def spent_out(self) -> bool:
        """Whether nothing is left."""
        return self.remaining == 0

    def spent(self, usage: Usage | None) -> TaskBudget:
        """Subtract what a model call used; a call without usage, or with negative counts, costs nothing."""
        if usage is None:
            return self
        tokens = max(0, usage.input_tokens) + max(0, usage.output_tokens)
        return replace(self, used=self.used + tokens) if tokens else self

    def compacted(self, tokens_removed: int | None) -> TaskBudget:
        """Subtract this turn's tokens that a compaction removed: what was said stays paid for."""
        if not tokens_removed or tokens_removed < 0:
            return self
        return replace(self, removed=self.removed + tokens_removed)

    def dump(self) -> dict[str, int]:
        """Give the budget as plain data."""
        return {"limit": self.limit, "used": self.used, "removed": self.removed}

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> TaskBudget:
        """Read what ``dump`` gave."""
        return cls(data["limit"], data.get("used", 0), data.get("removed", 0))
