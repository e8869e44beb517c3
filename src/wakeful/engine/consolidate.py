"""Run consolidation over a store: one scope at a time under its lease, or every scope that is due."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from wakeful.consolidation.attend import PriceOf
from wakeful.consolidation.cycle import Run, cycle, state_key
from wakeful.consolidation.phase import Cycle, Outcome, Phase
from wakeful.consolidation.phases import ROSTERS
from wakeful.consolidation.report import CADENCES, Cadence, ConsolidationReport
from wakeful.consolidation.settings import TendingSettings
from wakeful.errors import ConfigError
from wakeful.needs import Flow, call, now, run
from wakeful.ops import GetState, ListScopes
from wakeful.pricing import Prices
from wakeful.records import MemoryScope

PERIODS: dict[Cadence, timedelta] = {
    "quick_nap": timedelta(hours=1),
    "nightly": timedelta(days=1),
    "deep_sleep": timedelta(days=7),
}
"""Time between two cycles of a cadence over one scope."""

PAGE = 500


def worker_name() -> str:
    """A name for this worker that no other living one has."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def check_cadence(cadence: str) -> Cadence:
    """Give the cadence, or raise ``ConfigError`` with the known ones."""
    for known in CADENCES:
        if cadence == known:
            return known
    raise ConfigError(f"unknown cadence {cadence!r}; known: {', '.join(CADENCES)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A scope whose cycle is due."""

    scope: MemoryScope
    last: datetime | None
    """When its last cycle of the cadence started; None: never."""


def consolidate_flow(
    scope: MemoryScope,
    cadence: str = "quick_nap",
    *,
    at: datetime | None = None,
    dry_run: bool = False,
    settings: TendingSettings | None = None,
    model: bool = False,
    prices: PriceOf | None = None,
    owner: str | None = None,
    watch: Watch | None = None,
) -> Flow[ConsolidationReport]:
    """Run one cycle over one scope. ``at`` is the cycle's clock; None: the real one.

    ``model``: the driver can answer ``Ask``. ``prices``: of models, for the report. ``watch`` is told of each phase before
    it runs.
    """
    known = check_cadence(cadence)
    job = Run(
        scope=scope,
        cadence=known,
        owner=owner if owner is not None else worker_name(),
        roster=ROSTERS[known] if watch is None else watched(ROSTERS[known], watch),
        settings=settings if settings is not None else TendingSettings(),
        at=at,
        dry_run=dry_run,
        model=model,
        prices=prices,
    )
    return (yield from cycle(job))


Watch = Callable[[str, int, int], Any]
"""Called with a phase's name, its number from 0, and how many there are."""


def watched(roster: tuple[Phase, ...], watch: Watch) -> tuple[Phase, ...]:
    """The phases, each of which first tells ``watch`` that it begins."""

    def telling(phase: Phase, number: int) -> Phase:
        def flow(cycle: Cycle) -> Flow[Outcome]:
            yield from call(watch, phase.name, number, len(roster))
            return (yield from phase.run(cycle))

        return replace(phase, run=flow)

    return tuple(telling(phase, number) for number, phase in enumerate(roster))


def prices_of(model: Any) -> PriceOf | None:
    """Give the look-up of list prices in the catalogue that ships; by the model's own name where a reply's is unknown."""
    if model is None:
        return None

    def prices(name: str) -> Prices | None:
        from wakeful.models.catalog import Catalog

        catalog = Catalog.default()
        return catalog.prices(name) or catalog.prices(str(model.name))

    return prices


def due_scopes(cadence: str, *, root: MemoryScope | None = None, at: datetime | None = None) -> Flow[tuple[Due, ...]]:
    """Scopes (at or below ``root``; None: all) whose cycle of this cadence is due, longest waiting first."""
    known = check_cadence(cadence)
    moment = at if at is not None else (yield from now())
    waiting: list[Due] = []
    after: str | None = None
    while True:
        (scopes,) = yield from run(ListScopes(root, limit=PAGE, after=after))
        if not scopes:
            break
        states = yield from run(*(GetState(scope, state_key(known)) for scope in scopes))
        for scope, state in zip(scopes, states, strict=True):
            text = (state or {}).get("finished_at")
            last = datetime.fromisoformat(text) if text else None
            if last is None or moment - last >= PERIODS[known]:
                waiting.append(Due(scope=scope, last=last))
        after = scopes[-1].path
        if len(scopes) < PAGE:
            break
    return tuple(sorted(waiting, key=lambda each: (each.last is not None, each.last, each.scope.path)))


class CadenceCounter:
    """Count a scope's turns and say when its nap is due. Keyed by scope: no tenant counts for another."""

    def __init__(self, every_turns: int = 10) -> None:
        if every_turns < 1:
            raise ConfigError(f"every_turns is at least 1, not {every_turns!r}")
        self._every = every_turns
        self._turns: dict[str, int] = {}

    def turn(self, scope: MemoryScope) -> bool:
        """Count a turn; True when the scope's nap is due now."""
        count = self._turns.get(scope.path, 0) + 1
        if count >= self._every:
            self._turns.pop(scope.path, None)
            return True
        self._turns[scope.path] = count
        return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._turns)
