"""When memory is tended between turns: a cadence counted in turns, kept with the scope it is counted for."""

from __future__ import annotations

from dataclasses import dataclass

from wakeful.errors import ConfigError
from wakeful.needs import Flow, run
from wakeful.ops import GetState, PutState
from wakeful.records import MemoryScope

KEY = "turns_since_nap"
"""Name under which the count is kept in the memory's store."""


@dataclass(frozen=True, slots=True)
class NapCadence:
    """A nap every so many turns of a scope, whichever process ran them."""

    every: int = 20
    """Turns; 0: never."""
    cadence: str = "quick_nap"
    """The cycle that is run."""

    def __post_init__(self) -> None:
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 0:
            raise ConfigError(f"NapCadence.every is a number of turns, at least 0, not {self.every!r}")

    def due(self, scope: MemoryScope) -> Flow[bool]:
        """Count a turn; say whether a nap is due, and then start to count anew."""
        if not self.every:
            return False
        (count,) = yield from run(GetState(scope, KEY))
        turns = (count if isinstance(count, int) else 0) + 1
        is_due = turns >= self.every
        yield from run(PutState(scope, KEY, 0 if is_due else turns))
        return is_due
