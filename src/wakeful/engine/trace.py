"""Spans of a turn, by OpenTelemetry's conventions for generative AI; nothing at all without the extra ``otel``.

| span | name | kind of work |
|---|---|---|
| turn | ``invoke_agent NAME`` | the whole turn |
| model call | ``chat MODEL`` | internal ones carry ``wakeful.role`` |
| tool | ``execute_tool NAME`` | |
| compaction | ``wakeful.compact`` | tokens before and after, strategy |
| recall, nap | ``wakeful.recall``, ``wakeful.nap`` | |

No span carries a message, an argument or a result. Source of names and attributes:
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/ and gen-ai-agent-spans.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Protocol

PROVIDERS = {
    "anthropic": "anthropic",
    "openai_chat": "openai",
    "openai_responses": "openai",
    "gemini": "gcp.gemini",
    "bedrock": "aws.bedrock",
    "langchain": "langchain",
}
"""``gen_ai.provider.name`` by dialect."""


class Span(Protocol):
    """A running span."""

    def child(self, name: str, attributes: Mapping[str, Any] | None = None) -> Span:
        """Start a span below this one."""
        ...

    def set(self, **attributes: Any) -> None:
        """Add attributes; ``__`` in a name stands for a dot, None is left out."""
        ...

    def end(self, error: str | None = None) -> None:
        """End it; ``error`` is the kind of failure."""
        ...


class NoSpan:
    """A span that is not there."""

    __slots__ = ()

    def child(self, name: str, attributes: Mapping[str, Any] | None = None) -> Span:
        """Give itself."""
        del name, attributes
        return self

    def set(self, **attributes: Any) -> None:
        """Do nothing."""

    def end(self, error: str | None = None) -> None:
        """Do nothing."""


NO_SPAN: Span = NoSpan()


class OtelSpan:
    """A span of OpenTelemetry. Parents are passed by hand: a turn is a generator, and may change threads."""

    __slots__ = ("_span", "_tracer")

    def __init__(self, tracer: Any, name: str, parent: Any, attributes: Mapping[str, Any] | None) -> None:
        from opentelemetry import trace

        context = trace.set_span_in_context(parent) if parent is not None else None
        self._tracer = tracer
        self._span = tracer.start_span(name, context=context, attributes=_clean(attributes or {}))

    def child(self, name: str, attributes: Mapping[str, Any] | None = None) -> Span:
        """Start a span below this one."""
        return OtelSpan(self._tracer, name, self._span, attributes)

    def set(self, **attributes: Any) -> None:
        """Add attributes."""
        self._span.set_attributes(_clean({name.replace("__", "."): value for name, value in attributes.items()}))

    def end(self, error: str | None = None) -> None:
        """End it."""
        if error is not None:
            from opentelemetry.trace import Status, StatusCode

            self._span.set_attribute("error.type", error)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


def _clean(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if isinstance(value, str | int | float | bool)}


def turn_span(tracer: Any, agent: str, attributes: Mapping[str, Any]) -> Span:
    """Start the span of a turn. ``tracer``: an OpenTelemetry tracer; None: the global one where the extra is installed;
    False: none."""
    if tracer is False:
        return NO_SPAN
    if tracer is None:
        if _GLOBAL is None:
            return NO_SPAN
        tracer = _GLOBAL.get_tracer("wakeful")
    return OtelSpan(tracer, f"invoke_agent {agent}", None, {"gen_ai.operation.name": "invoke_agent", **attributes})


def _global() -> Any:
    if find_spec("opentelemetry") is None:
        return None
    from opentelemetry import trace

    return trace


_GLOBAL: Any = _global()
