"""How many tokens a text is, estimated without a tokenizer and corrected by what providers report.

Rules of the file:

- ``Meter`` is a value. ``count`` is an estimate that never changes during the meter's life, so what was measured once
  stays measured; the correction (``factor``) applies to sums, with ``scaled`` and ``unscaled``.
- One meter decides both when to compact and where to cut.
- A function of the user's, from text to tokens, is used exactly as it is.

``count`` has the shape that ``Dialect.weigh`` asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from wakeful.dialects.protocol import Count, TextKind
from wakeful.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Meter:
    """Counts tokens. Two meters of the same model and function count the same."""

    count: Count
    """Estimate of a text, in this meter's own unit: ``count(text, "text" | "json")``."""
    factor: float = 1.0
    """Real tokens for each estimated one, learnt from usage."""
    exact: bool = False
    """True: ``count`` is the user's own function, and ``factor`` stays 1."""
    samples: int = 0
    """Usage reports that shaped ``factor``."""
    floor: int = field(default=0)
    """Estimates below this are too small to learn from, tokens."""

    def scaled(self, estimate: float) -> int:
        """Give the real tokens to expect for a sum of estimates."""
        return round(estimate * self.factor)

    def unscaled(self, tokens: float) -> int:
        """Give the sum of estimates that fills a room of this many real tokens (rounded down)."""
        return int(tokens / self.factor)

    def observe(self, estimated: int, real: int, *, stale: bool = False) -> Meter:
        """Learn from a provider's usage: ``estimated`` (unscaled) and ``real`` input tokens of the same request.

        The same meter when there is nothing to learn: a stale report (of a request from before a compaction), a missing
        or non-positive count, a request too small to tell, or a user's own function.
        """
        if self.exact or stale or estimated < max(1, self.floor) or real <= 0:
            return self
        ratio = min(4.0, max(0.25, real / estimated))
        weight = 1.0 / min(self.samples + 1, 4)
        return replace(self, factor=self.factor + (ratio - self.factor) * weight, samples=self.samples + 1)


def as_meter(value: Any = None, *, model: str | None = None) -> Meter:
    """Make a meter of what the caller has: None (estimate, for the family of ``model``), a ``Meter``, or a function.

    A function takes a text and gives its tokens; it is used exactly. Raises ``ConfigError`` for anything else.
    """
    if value is None:
        return Meter(_chars)
    if isinstance(value, Meter):
        return value
    if callable(value):
        return Meter(_from_function(value), exact=True)
    raise ConfigError(f"meter is a function from text to tokens, not {type(value).__name__}")


def _from_function(function: Callable[[str], int]) -> Count:
    def count(text: str, kind: TextKind) -> int:  # noqa: ARG001
        return function(text)

    return count


def _chars(text: str, kind: TextKind) -> int:  # noqa: ARG001
    return (len(text) + 3) // 4
