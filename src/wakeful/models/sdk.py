"""What the adapters of provider SDKs share: one request logic in two colours, typed failures, refused parameters.

Rules of the file:

- A client that the user gives is used as it is, its own retries and timeouts included. One that is made here is closed
  here: a sync one when the model is dropped, an async one when its loop ends.
- ``_steps`` holds the logic once: it yields the parameters of a call and is sent the raw reply.
- A parameter that is a wish (temperature, effort, structured output) is left out when the model refuses it, and stays
  out for this adapter; ``refused`` shows which.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from typing import Any, ClassVar

from wakeful.errors import ConfigError, InvalidRequest, ModelError, TransportError
from wakeful.models.chat import afold, fold
from wakeful.models.retry import wrap
from wakeful.needs import ChatReply, ChatRequest, Done, StreamPart

Steps = Generator[dict[str, Any], Any, Any]

REFUSES = re.compile(r"support|permitted|allowed|unrecogni|unknown|unexpected|deprecated|extra (inputs|fields)")
"""Words of an error that says "this model does not take that", and not "your value is wrong".

Source: the error texts of Anthropic, OpenAI, vLLM and llama.cpp's server for parameters that a model lacks.
"""


class Assembler(ABC):
    """Puts a streamed reply together: raw events in, stream parts out, the whole reply at the end."""

    @abstractmethod
    def feed(self, event: Any) -> list[StreamPart]:
        """Take one raw event."""

    @abstractmethod
    def finish(self) -> ChatReply:
        """Give the whole reply. Raises ``TransportError`` when the stream ended early."""


class SdkModel(ABC):
    """A chat model behind a provider's SDK.

    ``client``: a sync or async client of the SDK; None: one is made when first needed, and reads its own environment.
    With a sync client alone, the awaited methods run it in a thread.
    """

    dialect: ClassVar[str]
    wishes: ClassVar[Mapping[str, str]]
    """Parameters that can be left out, by a word that names them in a refusal."""

    def __init__(self, name: str, *, client: Any = None) -> None:
        if not name:
            raise ConfigError("a model needs an id")
        self.name = name
        self.refused: set[str] = set()
        is_async = client is not None and self._is_async(client)
        self._client = None if is_async else client
        self._async_client = client if is_async else None
        self._given = client is not None
        self.base_url = getattr(client, "base_url", None)
        """Where requests go; None until the SDK has said it."""
        self._held: weakref.WeakKeyDictionary[Any, tuple[Any, AsyncIterator[None]]] = weakref.WeakKeyDictionary()

    def chat(self, request: ChatRequest) -> ChatReply:
        """Ask, and wait for the whole reply."""
        if self._needs_stream(request):
            return fold(self.stream(request))
        raw = _drive(self._steps(request, stream=False), self._send(self._sync_client()))
        return self._reply(raw)

    async def achat(self, request: ChatRequest) -> ChatReply:
        """Ask, and await the whole reply."""
        if self._needs_stream(request):
            return await afold(self.astream(request))
        client = await self._awaited_client()
        if client is None:
            import asyncio

            return await asyncio.to_thread(self.chat, request)
        raw = await _adrive(self._steps(request, stream=False), self._send(client))
        return self._reply(raw)

    def stream(self, request: ChatRequest) -> Iterator[StreamPart]:
        """Ask, and get the reply in parts; the last one is ``Done``."""
        raw = _drive(self._steps(request, stream=True), self._send(self._sync_client()))
        assembler = self._assembler()
        try:
            events = iter(raw)
            while True:
                try:
                    event = next(events)
                except StopIteration:
                    break
                except Exception as error:
                    raise wrap(error) from error
                yield from assembler.feed(event)
            yield Done(assembler.finish())
        finally:
            _close(raw)

    async def astream(self, request: ChatRequest) -> AsyncIterator[StreamPart]:
        """Ask, and await the reply in parts; the last one is ``Done``."""
        client = await self._awaited_client()
        if client is None:
            async for part in in_thread(self.stream(request)):
                yield part
            return
        raw = await _adrive(self._steps(request, stream=True), self._send(client))
        assembler = self._assembler()
        try:
            events = aiter(raw)
            while True:
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    break
                except Exception as error:
                    raise wrap(error) from error
                for part in assembler.feed(event):
                    yield part
            yield Done(assembler.finish())
        finally:
            closing = _close(raw)
            if inspect.isawaitable(closing):
                await closing

    def _steps(self, request: ChatRequest, *, stream: bool) -> Steps:
        while True:
            params = self._params(request)
            if stream:
                params.update(self._stream_params())
            try:
                return (yield params)
            except Exception as error:
                wrapped = wrap(error)
                wish = self._refused_wish(wrapped, params)
                if wish is None:
                    raise wrapped from (error if error is not wrapped else None)
                self.refused.add(wish)

    def _refused_wish(self, error: ModelError, params: Mapping[str, Any]) -> str | None:
        """Name the parameter that this refusal is about, if it was sent and can be left out."""
        text = str(error).lower()
        if not isinstance(error, InvalidRequest) or not REFUSES.search(text):
            return None
        sent = {*params, *(params.get("extra_body") or ())}
        for word, name in self.wishes.items():
            if name not in self.refused and name in sent and word in text:
                return name
        return None

    def _sync_client(self) -> Any:
        if self._client is None:
            if self._given:
                raise ConfigError(f"{self.name} was given an async client; use the awaited verb (acompact, arun, ...)")
            self._client = self._make_client(asynchronous=False)
            self.base_url = getattr(self._client, "base_url", None)
            weakref.finalize(self, self._client.close)
        return self._client

    async def _awaited_client(self) -> Any:
        """The given async client, or one of our own for this loop: connections can't move between loops."""
        if self._given:
            return self._async_client
        import asyncio

        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is None:
            client = self._make_client(asynchronous=True)
            self.base_url = getattr(client, "base_url", None)
            held = self._held[loop] = client, _until_the_loop_ends(client)
            await anext(held[1])
        return held[0]

    def _needs_stream(self, request: ChatRequest) -> bool:
        """Say whether the provider takes this request only as a stream."""
        return False

    @abstractmethod
    def _is_async(self, client: Any) -> bool:
        """Say whether the client's calls are awaited."""

    @abstractmethod
    def _make_client(self, *, asynchronous: bool) -> Any:
        """Make a client that reads its own environment. Raises ``MissingExtra``, ``AuthError``."""

    @abstractmethod
    def _send(self, client: Any) -> Callable[..., Any]:
        """Give the client's call."""

    @abstractmethod
    def _params(self, request: ChatRequest) -> dict[str, Any]:
        """Give the call's parameters, without those in ``refused``."""

    def _stream_params(self) -> dict[str, Any]:
        return {"stream": True}

    @abstractmethod
    def _reply(self, raw: Any) -> ChatReply:
        """Read the SDK's whole reply. Raises ``TransportError`` when it is none."""

    @abstractmethod
    def _assembler(self) -> Assembler:
        """Make what puts one streamed reply together."""


async def _until_the_loop_ends(client: Any) -> AsyncIterator[None]:
    """Close a client when this generator ends: with its loop (``asyncio.run`` ends every generator), or when dropped."""
    try:
        yield
    finally:
        await client.close()


def plain(value: Any) -> dict[str, Any]:
    """Give an SDK object as the plain data that the provider sent: fields that were not sent are left out.

    Raises ``TransportError`` for anything that is no such object (a body that was not JSON, for instance).
    """
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TransportError(f"the provider's reply is not of its own format: {str(value)[:200]!r}")
    data: dict[str, Any] = dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    return data


def _drive(steps: Steps, send: Callable[..., Any]) -> Any:
    try:
        params = next(steps)
        while True:
            try:
                value = send(**params)
            except Exception as error:
                params = steps.throw(error)
            else:
                params = steps.send(value)
    except StopIteration as stop:
        return stop.value


async def _adrive(steps: Steps, send: Callable[..., Any]) -> Any:
    try:
        params = next(steps)
        while True:
            try:
                value = await send(**params)
            except Exception as error:
                params = steps.throw(error)
            else:
                params = steps.send(value)
    except StopIteration as stop:
        return stop.value


def _close(raw: Any) -> Any:
    close = getattr(raw, "close", None)
    return close() if close is not None else None


async def in_thread(parts: Iterator[StreamPart]) -> AsyncIterator[StreamPart]:
    """Read a plain stream from a loop: each step runs in a thread."""
    import asyncio

    end = object()
    try:
        while (part := await asyncio.to_thread(next, parts, end)) is not end:
            yield part  # type: ignore[misc]  # the sentinel is ruled out above
    finally:
        # Cancelled in the middle of a step, the stream still runs in its thread; it closes when that step ends.
        with contextlib.suppress(ValueError):
            _close(parts)
