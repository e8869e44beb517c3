"""What a flow may need from the world, and the flow itself.

A flow is a generator that yields needs and is sent their answers: it decides, and never acts. The drivers in
``engine/drive.py`` answer needs with real stores, models, embedders and clocks, sync or async. In a test, ``next()``
and ``.send()`` are the driver.

| need | answer |
|---|---|
| ``Ask(request, role)`` | ``ChatReply`` |
| ``Embed(texts, kind)`` | ``Vectors``: one vector a text, as little-endian float32 bytes |
| ``Run(ops, store)`` | tuple of results, one an operation, all or nothing |
| ``Now()`` | timezone-aware UTC ``datetime`` |
| ``Sleep(seconds)`` | None |
| ``Call(function, args)`` | what the user's function returns, awaited when it is awaitable |
| ``All(needs)`` | tuple of answers; a driver may answer them at the same time |

A need that fails is raised inside the flow at its ``yield``, so a flow handles failure with ``try``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that a provider really counted for one call."""

    input_tokens: int = 0
    """All input tokens, cached ones included."""
    output_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens read from the provider's prompt cache."""
    cache_write_tokens: int = 0
    """Input tokens written to the provider's prompt cache."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool offered to a model."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """JSON schema of the arguments (an object)."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model made."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    invalid: str | None = None
    """The raw arguments when they are not a JSON object (``arguments`` is then empty). Such a call is answered with an
    error and never run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One model call.

    Either ``messages`` (native to the model's dialect) or ``prompt`` (one user text) is given.
    """

    messages: tuple[Any, ...] = ()
    prompt: str | None = None
    system: str | tuple[Mapping[str, Any], ...] | None = None
    """System text, or native system blocks with cache markers."""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["auto", "none"] = "auto"
    """``none``: the tools are defined, as a history with calls demands, but none may be called."""
    max_tokens: int | None = None
    temperature: float | None = None
    schema: Mapping[str, Any] | None = None
    """JSON schema that the reply's text must satisfy; adapters use the provider's structured output."""
    thinking: bool = True
    """False: ask the provider to answer without thinking."""
    timeout: float | None = None
    """Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """What a model answered."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    message: Any = None
    """The assistant message native to the model's dialect (Responses: a tuple of items), ready to be appended. None when
    the model said nothing that could be sent back."""
    thinking: str = ""
    stop: Literal["end", "tools", "length", "refused", "other"] = "end"
    usage: Usage | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text, in a streamed reply."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of the model's reasoning, in a streamed reply."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A tool call takes shape, in a streamed reply."""

    index: int
    """Place of the call among the reply's calls, from 0."""
    id: str = ""
    """The call's id; empty while not known."""
    name: str = ""
    arguments: str = ""
    """The next piece of the arguments' JSON."""


@dataclass(frozen=True, slots=True)
class Done:
    """The whole reply: the last part of a stream that did not fail."""

    reply: ChatReply


StreamPart: TypeAlias = TextDelta | ThinkingDelta | CallDelta | Done
"""What a streamed reply is made of. A stream ends with ``Done``, or raises a ``ModelError``."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a chat model."""

    request: ChatRequest
    role: str = "main"
    """Which model: ``main``, or an internal role such as ``summarizer`` or ``extractor``. Internal calls are tagged in
    the trace and never reach the user's stream."""


@dataclass(frozen=True, slots=True)
class Embed:
    """Turn texts into vectors."""

    texts: tuple[str, ...]
    kind: Literal["query", "document"] = "document"


Vectors: TypeAlias = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """Run store operations in one transaction, all or nothing."""

    ops: tuple[Any, ...]
    store: Literal["memory", "archive", "session"] = "memory"


@dataclass(frozen=True, slots=True)
class Now:
    """Tell the time."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Call:
    """Call a function of the user's, and await its result when it is awaitable."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class All:
    """Answer several needs, at the same time when the driver can."""

    needs: tuple[Need, ...]


Need: TypeAlias = Ask | Embed | Run | Now | Sleep | Call | All

Flow: TypeAlias = Generator[Need, Any, T]


def ask(request: ChatRequest, role: str = "main") -> Flow[ChatReply]:
    """Ask a chat model; ``reply = yield from ask(...)`` is typed."""
    reply: ChatReply = yield Ask(request, role)
    return reply


def embed(texts: tuple[str, ...], kind: Literal["query", "document"] = "document") -> Flow[Vectors]:
    """Embed texts; nothing is asked for an empty tuple."""
    if not texts:
        return ()
    vectors: Vectors = yield Embed(texts, kind)
    return vectors


def run(*ops: Any, store: Literal["memory", "archive", "session"] = "memory") -> Flow[tuple[Any, ...]]:
    """Run store operations in one transaction; nothing is asked for none."""
    if not ops:
        return ()
    results: tuple[Any, ...] = yield Run(ops, store)
    return results


def now() -> Flow[datetime]:
    """Tell the time (timezone-aware, UTC)."""
    moment: datetime = yield Now()
    return moment


def sleep(seconds: float) -> Flow[None]:
    """Wait."""
    yield Sleep(seconds)


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Flow[Any]:
    """Call a function of the user's, sync or async."""
    value = yield Call(function, args, kwargs)
    return value
