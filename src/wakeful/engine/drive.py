"""Run a flow: the two drivers, sync and async, the only logic written in two colours.

``answer`` turns a need into its answer. An exception that it raises is raised inside the flow, where the flow may catch
it; ``All`` and needs that only the driver can serve (time, sleep, calls of the user's functions) are served here.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from wakeful.errors import ConfigError
from wakeful.needs import All, Call, Flow, Need, Now, Sleep

T = TypeVar("T")


def utc_now() -> datetime:
    """The system clock, timezone-aware."""
    return datetime.now(UTC)


def drive(flow: Flow[T], answer: Callable[[Need], Any], *, clock: Callable[[], datetime] = utc_now) -> T:
    """Run a flow to its end and return its value."""

    def serve(need: Need) -> Any:
        match need:
            case Now():
                return clock()
            case Sleep(seconds):
                time.sleep(seconds)
                return None
            case Call(function, args, kwargs):
                value = function(*args, **kwargs)
                if inspect.isgenerator(value):
                    return drive(cast("Flow[Any]", value), answer, clock=clock)
                if inspect.isawaitable(value):
                    close = getattr(value, "close", None)
                    if close is not None:
                        close()
                    name = getattr(function, "__qualname__", repr(function))
                    raise ConfigError(f"{name} is async; use the awaited verb (acompact, afit, arun, ...)")
                return value
            case All(needs):
                return tuple(serve(each) for each in needs)
            case _:
                return answer(need)

    try:
        need = next(flow)
        while True:
            try:
                value = serve(need)
            except Exception as error:
                need = flow.throw(error)
            else:
                need = flow.send(value)
    except StopIteration as stop:
        result: T = stop.value
        return result


async def adrive(
    flow: Flow[T], answer: Callable[[Need], Awaitable[Any]], *, clock: Callable[[], datetime] = utc_now
) -> T:
    """Run a flow to its end, awaiting its needs; those of an ``All`` at the same time."""
    import asyncio

    async def serve(need: Need) -> Any:
        match need:
            case Now():
                return clock()
            case Sleep(seconds):
                await asyncio.sleep(seconds)
                return None
            case Call(function, args, kwargs):
                value = function(*args, **kwargs)
                if inspect.isgenerator(value):
                    return await adrive(cast("Flow[Any]", value), answer, clock=clock)
                return await value if inspect.isawaitable(value) else value
            case All(needs):
                return tuple(await asyncio.gather(*(serve(each) for each in needs)))
            case _:
                return await answer(need)

    try:
        need = next(flow)
        while True:
            try:
                value = await serve(need)
            except Exception as error:
                need = flow.throw(error)
            else:
                need = flow.send(value)
    except StopIteration as stop:
        result: T = stop.value
        return result
