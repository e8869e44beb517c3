"""Run the calls of a batch: at the same time where allowed, each with its own time limit, never raising.

A tool that outlives its limit is answered with an error. A thread can't be stopped from outside: a plain function goes
on in the background and its result is thrown away; an awaited one is cancelled.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import queue
import threading
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wakeful.engine.inbox import Inbox
from wakeful.engine.tools import Tool, result_text
from wakeful.turn.states import ToolOutcome

logger = logging.getLogger("wakeful.tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A call ready to run."""

    call_id: str
    tool: Tool
    arguments: Mapping[str, Any]
    timeout: float | None = None
    """Seconds."""


@dataclass(slots=True)
class Finished:
    """A call that came back, or the news that the turn was cancelled (``outcome`` None)."""

    outcome: ToolOutcome | None = None


def timed_out(job: Job) -> ToolOutcome:
    """Answer a call that took too long."""
    text = f"{job.tool.name} did not finish within {job.timeout:g} seconds. It may still take effect."
    return ToolOutcome(call_id=job.call_id, text=text, error=True, seconds=job.timeout or 0.0)


def _outcome(job: Job, started: float, value: Any = None, error: BaseException | None = None) -> ToolOutcome:
    seconds = time.perf_counter() - started
    if error is not None:
        logger.info("tool %s raised %s", job.tool.name, type(error).__name__)
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return ToolOutcome(call_id=job.call_id, text=text, error=True, seconds=seconds)
    return ToolOutcome(call_id=job.call_id, text=result_text(value), seconds=seconds)


def run_job(job: Job) -> ToolOutcome:
    """Run a call in this thread; a coroutine gets an event loop of its own."""
    started = time.perf_counter()
    try:
        value = job.tool.function(**job.arguments)
        if inspect.isawaitable(value):
            value = asyncio.run(_await(value))
    except Exception as error:
        return _outcome(job, started, error=error)
    return _outcome(job, started, value)


async def _await(value: Awaitable[Any]) -> Any:
    return await value


@dataclass(slots=True)
class ThreadPool:
    """The calls of a batch in threads, for a turn that is not awaited."""

    inbox: Inbox
    parallel: int
    _done: queue.Queue[Finished] = field(default_factory=queue.Queue)
    _waiting: list[Job] = field(default_factory=list)
    _running: dict[str, tuple[Job, float | None]] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)

    def start(self, jobs: tuple[Job, ...]) -> None:
        """Take the batch in."""
        self._waiting = list(jobs)
        self.inbox.on_cancel(lambda: self._done.put(Finished()))

    def next(self) -> Finished:
        """Wait for the next call that is answered, or for a cancellation."""
        if self._alone_inline():
            job = self._waiting.pop()
            return Finished(run_job(job))
        self._fill()
        while True:
            if self.inbox.cancelled:
                return Finished()
            try:
                done = self._done.get(timeout=self._patience())
            except queue.Empty:
                late = self._late()
                if late is None:
                    continue
                return Finished(timed_out(late))
            if done.outcome is None:
                return done
            if done.outcome.call_id in self._running:
                del self._running[done.outcome.call_id]
                return done

    def _alone_inline(self) -> bool:
        """One call without a time limit runs where the turn runs: no thread is made."""
        return (
            len(self._waiting) == 1
            and not self._running
            and self._waiting[0].timeout is None
            and _plain(self._waiting[0])
        )

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self.parallel:
            job = self._waiting[0]
            busy_alone = any(running.tool.alone for running, _ in self._running.values())
            if self._running and (job.tool.alone or busy_alone):
                return
            self._waiting.pop(0)
            deadline = None if job.timeout is None else time.monotonic() + job.timeout
            self._running[job.call_id] = (job, deadline)
            context = contextvars.copy_context()
            name = f"wakeful-tool-{job.tool.name}"
            threading.Thread(target=context.run, args=(self._work, job), name=name, daemon=True).start()

    def _work(self, job: Job) -> None:
        self._done.put(Finished(run_job(job)))

    def _patience(self) -> float | None:
        deadlines = [deadline for _, deadline in self._running.values() if deadline is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _late(self) -> Job | None:
        moment = time.monotonic()
        for call_id, (job, deadline) in self._running.items():
            if deadline is not None and deadline <= moment:
                del self._running[call_id]
                return job
        return None


def _plain(job: Job) -> bool:
    return not job.tool.is_async


@dataclass(slots=True)
class TaskPool:
    """The calls of a batch as tasks, for a turn that is awaited; plain functions run in threads."""

    inbox: Inbox
    parallel: int
    _waiting: list[Job] = field(default_factory=list)
    _running: dict[asyncio.Task[ToolOutcome], Job] = field(default_factory=dict)
    _cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    def start(self, jobs: tuple[Job, ...]) -> None:
        """Take the batch in."""
        self._waiting = list(jobs)
        loop = asyncio.get_running_loop()
        self.inbox.on_cancel(lambda: loop.call_soon_threadsafe(self._cancelled.set))

    async def next(self) -> Finished:
        """Wait for the next call that is answered, or for a cancellation."""
        self._fill()
        if self.inbox.cancelled:
            return Finished()
        signal = asyncio.ensure_future(self._cancelled.wait())
        try:
            done, _ = await asyncio.wait({signal, *self._running}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            signal.cancel()
        finished = next((task for task in self._running if task in done), None)
        if finished is None:
            return Finished()
        del self._running[finished]
        return Finished(finished.result())

    async def close(self) -> None:
        """Cancel what still runs."""
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
        self._running.clear()

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self.parallel:
            job = self._waiting[0]
            if self._running and (job.tool.alone or any(each.tool.alone for each in self._running.values())):
                return
            self._waiting.pop(0)
            self._running[asyncio.ensure_future(_arun_job(job))] = job


async def _arun_job(job: Job) -> ToolOutcome:
    started = time.perf_counter()
    try:
        async with asyncio.timeout(job.timeout) as limit:
            if job.tool.is_async:
                value = await job.tool.function(**job.arguments)
            else:
                value = await asyncio.to_thread(job.tool.function, **job.arguments)
                if inspect.isawaitable(value):
                    value = await value
    except TimeoutError as error:
        return timed_out(job) if limit.expired() else _outcome(job, started, error=error)
    except Exception as error:
        return _outcome(job, started, error=error)
    return _outcome(job, started, value)
