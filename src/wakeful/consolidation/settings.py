"""How memory is tended: every number with its unit and its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from wakeful.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class TendingSettings:
    """Knobs of the phases. Unknown keys are refused by ``TendingSettings.of``."""

    lookback_hours: float = 24.0
    """How far the window of recent nodes reaches back from the start of the cycle, at least: after a missed night it
    reaches back to the last cycle of its cadence."""
    window_limit: int = 5_000
    """Most nodes of a window; the newest are taken and the report says so."""
    strengthen_rate: float = 0.1
    """Share of the way to the ceiling that one use goes. Source: the linear operator of Bush and Mosteller (1955)."""
    burst_seconds: float = 600.0
    """Nodes asserted within this of each other, in one session, belong together."""
    neighbours: int = 2
    """A node is linked to at most so many of the next ones of its burst."""
    degree_limit: int = 24
    """Co-occurrence edges that a node may have."""
    entity_mentions: int = 2
    """Episodes that must name an entity before it becomes a node."""
    merge_cosine: float = 0.9
    """Least cosine of two statements in other words that a model is asked about, whether they are one fact."""
    merge_overlap: float = 0.6
    """Least Jaccard overlap of their words, beside the cosine or instead of it."""
    decay_days: tuple[float, ...] = (30.0, 60.0, 120.0, 240.0)
    """Days without use after which importance fades by a step each. Doubling gaps follow the power law of forgetting
    (Wixted and Ebbesen 1991): each doubling of time costs the same share."""
    decay_share: float = 0.8
    """Importance above 1 that is left after a step."""
    summary_days: float = 30.0
    """Age of the last turn after which a session's episodes are digested."""
    summary_episodes: int = 8
    """Least episodes of a session worth a digest."""
    cluster_members: int = 4
    """Least notes about an entity that get a parent node."""
    promote_repeats: int = 3
    """Times a statement or an action pattern must be seen, in at least two sessions."""
    grace_days: float = 30.0
    """Days that a retired row is kept."""
    batch: int = 1000
    """Rows written in one transaction."""
    lease_seconds: float = 60.0
    """A worker's lease; prolonged while it works, and before each model call."""
    model_calls: int = 50
    """Most model calls of a cycle; what is left is decided without a model, and the report says so."""
    model_tokens: int = 300_000
    """Most tokens of a cycle, input and output together."""
    model_seconds: float = 45.0
    """Most time of one model call; below ``lease_seconds``, so that a lease outlives the call."""
    most_seconds: float = 600.0
    """A cycle stops after this and goes on next time."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            values = value if isinstance(value, tuple) else (value,)
            if not all(isinstance(each, int | float) and not isinstance(each, bool) and each > 0 for each in values):
                raise ConfigError(f"TendingSettings.{item.name} is above 0, not {value!r}")
        if self.model_seconds >= self.lease_seconds:
            raise ConfigError(
                f"TendingSettings.model_seconds ({self.model_seconds:g}) is below lease_seconds ({self.lease_seconds:g}): "
                "a lease outlives the call that is made under it"
            )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> TendingSettings:
        """Make settings from plain data. Raises ``ConfigError`` for a key that nothing reads."""
        known = {item.name for item in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ConfigError(f"TendingSettings has no key {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        return cls(**values)
