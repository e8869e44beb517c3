"""Drive a turn: the two shells, sync and async. All decisions are in the flow; here its wishes are carried out."""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Any, cast

from wakeful.engine.drive import adrive, drive
from wakeful.engine.inbox import Inbox
from wakeful.engine.stream import TextEvent, ThinkingEvent, TurnEvent
from wakeful.engine.toolrun import TaskPool, ThreadPool
from wakeful.engine.turn_base import Emit, NextTool, StartTools, Steps, Stream
from wakeful.errors import ModelError, TransportError
from wakeful.models.chat import ChatModel
from wakeful.needs import Call, ChatReply, Done, Flow, Need, Sleep, StreamPart, TextDelta, ThinkingDelta

Clock = Callable[[], datetime]


def _event(part: StreamPart) -> TurnEvent | None:
    match part:
        case TextDelta(text):
            return TextEvent(text)
        case ThinkingDelta(text):
            return ThinkingEvent(text)
        case _:
            return None


def _ended() -> ModelError:
    return TransportError("the model's stream ended without a reply")


def _one(need: Need) -> Flow[Any]:
    return (yield need)


def run_apart(awaitable: Awaitable[Any]) -> Any:
    """Run an awaitable to its end in a thread with an event loop of its own, whatever loop runs here."""
    import asyncio

    async def outcome() -> Any:
        return await awaitable

    box: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            box.append(asyncio.run(outcome()))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="wakeful-await", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return box[0]


def stream_turn(
    steps: Steps, model: ChatModel, answer: Callable[[Need], Any], inbox: Inbox, *, parallel: int, clock: Clock
) -> Iterator[TurnEvent]:
    """Run a turn, giving its events as they come. Closing the iterator leaves the turn where it stands."""
    pool: ThreadPool | None = None

    def serve(need: Any) -> Any:
        match need:
            case Sleep(seconds):
                return inbox.wait(seconds)
            case Call(function, args, kwargs):
                value = function(*args, **kwargs)
                if inspect.isgenerator(value):
                    return drive(cast("Flow[Any]", value), answer, clock=clock)
                return run_apart(value) if inspect.isawaitable(value) else value
            case _:
                return drive(_one(need), answer, clock=clock)

    try:
        item = next(steps)
        while True:
            value: Any = None
            try:
                match item:
                    case Emit(event):
                        yield event
                    case Stream(request):
                        reply: ChatReply | None = None
                        for part in model.stream(request):
                            if inbox.cancelled:
                                break
                            if isinstance(part, Done):
                                reply = part.reply
                                break
                            shown = _event(part)
                            if shown is not None:
                                yield shown
                        if reply is None and not inbox.cancelled:
                            raise _ended()
                        value = reply
                    case StartTools(jobs):
                        pool = ThreadPool(inbox, parallel)
                        pool.start(jobs)
                    case NextTool():
                        assert pool is not None
                        value = pool.next()
                    case _:
                        value = serve(item)
            except Exception as error:
                item = steps.throw(error)
            else:
                item = steps.send(value)
    except StopIteration:
        return
    finally:
        steps.close()


async def astream_turn(
    steps: Steps,
    model: ChatModel,
    answer: Callable[[Need], Awaitable[Any]],
    inbox: Inbox,
    *,
    parallel: int,
    clock: Clock,
) -> AsyncIterator[TurnEvent]:
    """Run a turn awaited, giving its events as they come. Closing the iterator leaves the turn where it stands."""
    import asyncio

    pool = TaskPool(inbox, parallel)
    woken = asyncio.Event()
    loop = asyncio.get_running_loop()
    inbox.on_cancel(lambda: loop.call_soon_threadsafe(woken.set))

    async def serve(need: Any) -> Any:
        match need:
            case Sleep(seconds):
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), seconds)
                return None
            case Call(function, args, kwargs):
                value = function(*args, **kwargs)
                if inspect.isgenerator(value):
                    return await adrive(cast("Flow[Any]", value), answer, clock=clock)
                return await value if inspect.isawaitable(value) else value
            case _:
                return await adrive(_one(need), answer, clock=clock)

    try:
        item = next(steps)
        while True:
            value: Any = None
            try:
                match item:
                    case Emit(event):
                        yield event
                    case Stream(request):
                        reply: ChatReply | None = None
                        async with aclosing(_aiter(model, request)) as parts:
                            async for part in parts:
                                if inbox.cancelled:
                                    break
                                if isinstance(part, Done):
                                    reply = part.reply
                                    break
                                shown = _event(part)
                                if shown is not None:
                                    yield shown
                        if reply is None and not inbox.cancelled:
                            raise _ended()
                        value = reply
                    case StartTools(jobs):
                        pool = TaskPool(inbox, parallel)
                        pool.start(jobs)
                    case NextTool():
                        value = await pool.next()
                    case _:
                        value = await serve(item)
            except Exception as error:
                item = steps.throw(error)
            else:
                item = steps.send(value)
    except StopIteration:
        return
    finally:
        await pool.close()
        steps.close()


async def _aiter(model: ChatModel, request: Any) -> AsyncGenerator[StreamPart, None]:
    async for part in model.astream(request):
        yield part
