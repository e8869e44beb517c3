"""Tend many scopes: in one process, or as a worker among many on a queue over PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wakeful.consolidation.cycle import state_key
from wakeful.consolidation.report import ConsolidationReport
from wakeful.consolidation.settings import TendingSettings
from wakeful.engine.consolidate import PERIODS, Due, check_cadence, consolidate_flow, due_scopes, prices_of
from wakeful.engine.drive import adrive, drive, utc_now
from wakeful.errors import ConfigError, StoreBusy
from wakeful.models.chat import ChatModel
from wakeful.needs import Ask, Flow, Need, Run
from wakeful.ops import GetState
from wakeful.records import MemoryScope
from wakeful.stores import Store, open_store


@dataclass(frozen=True, slots=True)
class Tender:
    """Runs cycles over a store."""

    store: Store
    settings: TendingSettings | None = None
    model: ChatModel | None = None
    """Asked by full cycles; None: they do without."""

    def tend(self, scope: MemoryScope, cadence: str, **values: Any) -> ConsolidationReport:
        """Run one cycle. ``values``: ``at``, ``dry_run``, ``watch``."""
        return drive(self._flow(scope, cadence, **values), self._answer)

    def _flow(self, scope: MemoryScope, cadence: str, **values: Any) -> Flow[ConsolidationReport]:
        model, prices = self.model is not None, prices_of(self.model)
        return consolidate_flow(scope, cadence, settings=self.settings, model=model, prices=prices, **values)

    def due(self, cadence: str, *, root: MemoryScope | None = None) -> tuple[Due, ...]:
        """Scopes that are due, longest waiting first."""
        return drive(due_scopes(cadence, root=root), self._answer)

    def tend_due(
        self, cadence: str, *, root: MemoryScope | None = None, **values: Any
    ) -> Iterator[tuple[int, ConsolidationReport]]:
        """Tend every scope that is due, one after another: (how many are left, report). ``values``: see ``tend``."""
        waiting = self.due(cadence, root=root)
        for number, each in enumerate(waiting, 1):
            yield len(waiting) - number, self.tend(each.scope, cadence, **values)

    async def atend_path(self, path: str, cadence: str) -> str:
        """Run one cycle for a job, when it is still due. Raises ``StoreBusy`` while another worker has the scope."""
        known = check_cadence(cadence)
        scope = MemoryScope.parse(path)
        (state,) = await self.store.aexecute((GetState(scope, state_key(known)),))
        last = (state or {}).get("finished_at")
        if last and (utc_now() - datetime.fromisoformat(last)) < PERIODS[known]:
            return "not due"
        report = await adrive(self._flow(scope, cadence), self._aanswer)
        if report.status in ("busy", "stopped"):
            raise StoreBusy(f"{path} is being tended by another worker")
        return report.status

    async def adue_paths(self, cadence: str) -> list[str]:
        """Paths of the scopes that are due."""
        return [each.scope.path for each in await adrive(due_scopes(cadence), self._aanswer)]

    def _answer(self, need: Need) -> Any:
        if isinstance(need, Ask) and self.model is not None:
            return self.model.chat(need.request)
        assert isinstance(need, Run)
        return self.store.execute(need.ops)

    async def _aanswer(self, need: Need) -> Any:
        if isinstance(need, Ask) and self.model is not None:
            return await self.model.achat(need.request)
        assert isinstance(need, Run)
        return await self.store.aexecute(need.ops)


def check_queue_url(url: str) -> None:
    """Raise ``ConfigError`` for a store that workers on several machines can't share."""
    if not url.startswith(("postgresql://", "postgres://")):
        raise ConfigError(f"workers share a PostgreSQL store; {url!r} is none. On one machine use wakeful nap --all")


def run_worker(
    url: str, *, concurrency: int = 4, wait: bool = True, heartbeat_seconds: float = 10.0, model: Any = None
) -> dict[str, int]:
    """Work on naps until stopped, or (``wait`` False) until none is left; returns the jobs by status.

    ``model``: what ``coerce_model`` takes; None: cycles do without one. A worker that waits also keeps the calendar: it
    gives jobs out for the scopes that are due.
    """
    check_queue_url(url)

    async def work() -> dict[str, int]:
        from wakeful.models.choose import coerce_model
        from wakeful.stores.queue import CALENDAR, NapQueue

        store = open_store(url)
        tender = Tender(store, model=coerce_model(model) if model is not None else None)
        calendar = CALENDAR if wait else {}
        try:
            async with NapQueue(url, tend=tender.atend_path, due=tender.adue_paths, calendar=calendar) as queue:
                await queue.give_back_stalled()
                await queue.work(concurrency=concurrency, wait=wait, heartbeat_seconds=heartbeat_seconds)
                return await queue.counts()
        finally:
            await store.aclose()

    return asyncio.run(work())


def enqueue_due(url: str, cadence: str) -> tuple[int, dict[str, int]]:
    """Give a job to the workers for every scope that is due: (how many, jobs by status)."""
    check_queue_url(url)
    check_cadence(cadence)

    async def enqueue() -> tuple[int, dict[str, int]]:
        from wakeful.stores.queue import NapQueue

        store = open_store(url)
        tender = Tender(store)
        try:
            async with NapQueue(url, tend=tender.atend_path, due=tender.adue_paths) as queue:
                count = await queue.enqueue(await tender.adue_paths(cadence), cadence)
                return count, await queue.counts()
        finally:
            await store.aclose()

    return asyncio.run(enqueue())
