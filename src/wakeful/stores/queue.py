"""Naps as jobs on PostgreSQL: procrastinate carries them to workers, retries them and keeps the calendar.

Rules of the file:

- Correctness is not the queue's. The scope's lease and fencing token in our own tables keep two workers off one scope, and
  a job that comes twice finds its cycle done. So a lost, doubled or late job costs time, never memory.
- A job has a ``lock`` (its scope), and no ``queueing_lock``: the two together leave a failed job running for ever
  (procrastinate issue 1432).
- A worker that dies leaves its job ``doing``; a task on the calendar gives such jobs back once their worker's heartbeat is
  old.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wakeful.errors import MissingExtra, StoreBusy, StoreError

if TYPE_CHECKING:
    import procrastinate

logger = logging.getLogger("wakeful.queue")

QUEUE = "wakeful-naps"
CALENDAR: Mapping[str, str] = {"quick_nap": "*/15 * * * *", "nightly": "0 2 * * *", "deep_sleep": "0 4 * * 0"}
"""When each cadence looks for scopes that are due, as cron expressions (UTC)."""

STALLED_SECONDS = 30.0
"""A worker without a heartbeat for so long is taken for dead."""

Tend = Callable[[str, str], Awaitable[str]]
"""(scope path, cadence) to the status of the report; raises ``StoreBusy`` when the scope is being tended."""
Due = Callable[[str], Awaitable[Sequence[str]]]
"""Cadence to the paths of the scopes that are due."""


class NapQueue:
    """Jobs that tend scopes. Use it as an async context manager."""

    def __init__(self, url: str, *, tend: Tend, due: Due, calendar: Mapping[str, str] = CALENDAR) -> None:
        try:
            import procrastinate
        except ImportError as error:
            raise MissingExtra("worker", needed_for="a queue of naps") from error
        self._url = url
        self._app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url))
        self._tend, self._due = tend, due
        self._job = self._tasks(calendar)

    def _tasks(self, calendar: Mapping[str, str]) -> Any:
        import procrastinate

        app = self._app
        retry = procrastinate.RetryStrategy(max_attempts=8, exponential_wait=2, retry_exceptions={StoreBusy})

        @app.task(name="wakeful.tend", queue=QUEUE, retry=retry)
        async def tend(scope: str, cadence: str) -> str:
            return await self._tend(scope, cadence)

        @app.periodic(cron="* * * * *")
        @app.task(name="wakeful.give_back", queue=QUEUE)
        async def give_back(timestamp: int) -> None:  # noqa: ARG001  # procrastinate passes it by name
            await self.give_back_stalled()

        for cadence, cron in calendar.items():
            self._on_calendar(cadence, cron)
        return tend

    def _on_calendar(self, cadence: str, cron: str) -> None:
        @self._app.periodic(cron=cron, periodic_id=cadence)
        @self._app.task(name=f"wakeful.plan.{cadence}", queue=QUEUE)
        async def plan(timestamp: int) -> None:  # noqa: ARG001  # procrastinate passes it by name
            await self.enqueue(await self._due(cadence), cadence)

    async def __aenter__(self) -> NapQueue:
        """Open the queue, making its tables when the role may. Raises ``StoreError`` when it may not use them."""
        import procrastinate
        import psycopg

        try:
            await self._app.open_async()
            if not await self._has_schema():
                await self._app.schema_manager.apply_schema_async()
            await self.counts()
        except psycopg.Error as error:
            raise StoreError(f"the queue's database can't be used: {error}") from error
        except procrastinate.exceptions.ConnectorException as error:
            await self._app.close_async()
            raise StoreError(
                f"this role can't use the queue's tables ({str(error.__cause__ or error).splitlines()[0]}); open the queue "
                "once as the owner of the database (wakeful worker --once), then grant() the role what it needs"
            ) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._app.close_async()

    async def _has_schema(self) -> bool:
        row = await self._app.connector.execute_query_one_async("SELECT to_regclass('procrastinate_jobs') AS found")
        return row["found"] is not None

    async def enqueue(self, scopes: Iterable[str], cadence: str) -> int:
        """Give one job a scope to the workers; scopes that wait already are left alone. Returns how many were given."""
        waiting = await self._waiting(cadence)
        count = 0
        for path in scopes:
            if path not in waiting:
                await self._job.configure(lock=path).defer_async(scope=path, cadence=cadence)
                count += 1
        return count

    async def _waiting(self, cadence: str) -> set[str]:
        jobs = await self._app.job_manager.list_jobs_async(queue=QUEUE, task="wakeful.tend", status="todo")
        return {str(job.task_kwargs["scope"]) for job in jobs if job.task_kwargs.get("cadence") == cadence}

    async def counts(self) -> dict[str, int]:
        """Jobs that tend scopes, by status: ``todo``, ``doing``, ``succeeded``, ``failed``."""
        rows = await self._app.connector.execute_query_all_async(
            "SELECT status::text AS status, count(*) AS number FROM procrastinate_jobs"
            " WHERE task_name = 'wakeful.tend' GROUP BY 1"
        )
        return {row["status"]: row["number"] for row in rows}

    async def give_back_stalled(self, seconds: float = STALLED_SECONDS) -> int:
        """Give the jobs of dead workers back; returns how many."""
        stalled: list[procrastinate.jobs.Job] = list(
            await self._app.job_manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=seconds)
        )
        for job in stalled:
            logger.warning("job %s of a dead worker is given back", job.id)
            await self._app.job_manager.retry_job(job)
        return len(stalled)

    async def work(self, *, concurrency: int = 4, wait: bool = True, heartbeat_seconds: float = 10.0) -> None:
        """Work on jobs: until stopped, or (``wait`` False) until none is left."""
        await self._app.run_worker_async(
            queues=[QUEUE],
            concurrency=concurrency,
            wait=wait,
            update_heartbeat_interval=heartbeat_seconds,
            stalled_worker_timeout=STALLED_SECONDS,
            install_signal_handlers=wait,
        )
