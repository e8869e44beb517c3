"""The model's part of a turn: the request, the reply, what it used, and what its failure means."""

from __future__ import annotations

from typing import Any

from wakeful.engine.stream import UsageEvent
from wakeful.engine.trace import PROVIDERS
from wakeful.engine.turn_base import Emit, Steps, Stream, TurnParts
from wakeful.errors import (
    AuthError,
    ContextOverflow,
    InvalidRequest,
    ModelError,
    Overloaded,
    RateLimited,
    StaleWriter,
    TransportError,
)
from wakeful.needs import ChatReply, ChatRequest
from wakeful.turn import events as ev

CODES: dict[type[ModelError], str] = {
    AuthError: "auth",
    RateLimited: "rate_limit",
    Overloaded: "overloaded",
    ContextOverflow: "context_overflow",
    InvalidRequest: "invalid_request",
    TransportError: "transport",
}
"""Codes of failed model calls."""


class ModelSteps(TurnParts):
    """Ask the model."""

    def _request(self, tools: bool, thinking: bool) -> ChatRequest:
        parts = self.parts
        system, specs = self._prompt()
        return ChatRequest(
            messages=self._messages(),
            system=system,
            tools=specs,
            tool_choice="auto" if tools or not specs else "none",
            max_tokens=parts.max_tokens,
            temperature=parts.temperature,
            thinking=thinking and parts.thinking,
            timeout=parts.model_timeout,
        )

    def _messages(self) -> tuple[Any, ...]:
        """The conversation, with the turn's recalled context beside the message that it was recalled for."""
        messages = self.session.messages()
        block = getattr(self._context, "turn_block", None)
        if not block:
            return messages
        active = self.session.memory.active
        for index in range(len(active) - 1, -1, -1):
            if active[index].turn_id == self.state.turn_id and self._input_id in (None, *active[index].ids):
                view = self.session.dialect.read(messages[index])
                if view.role == "user":
                    note = self.session.dialect.note(block)
                    joined = self.session.dialect.merge([messages[index], note])
                    return (*messages[:index], joined, *messages[index + 1 :])
        return messages

    def _call_model(self, tools: bool, thinking: bool) -> Steps:
        if not self._provisioned:
            yield from self._provision()
        parts = self.parts
        request = self._request(tools, thinking)
        for hook in parts.hooks.at("before_model"):
            changed = yield from self._isolated("before_model", hook, request, self._info())
            request = changed if isinstance(changed, ChatRequest) else request
        self._model_span = self.span.child(
            f"chat {parts.model.name}",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": parts.model.name,
                "gen_ai.provider.name": PROVIDERS.get(parts.model.dialect, parts.model.dialect),
            },
        )
        try:
            reply: ChatReply | None = yield Stream(request)
        except ModelError as error:
            code = next((code for kind, code in CODES.items() if isinstance(error, kind)), "other")
            self._model_span.end(code)
            self.error = error
            return ev.ModelFailed(
                code=code, message=str(error), retryable=error.retryable, retry_after=error.retry_after
            )
        except StaleWriter:
            raise
        except Exception as error:
            self._model_span.end(type(error).__name__)
            self.error = error
            return ev.ModelFailed(code="other", message=f"{type(error).__name__}: {error}")
        if reply is None:
            self._model_span.end("cancelled")
            return ev.Cancel()
        self.error = None
        yield from self._replied(reply)
        return ev.ModelReplied(
            message=reply.message, text=reply.text, calls=reply.calls, stop=reply.stop, usage=reply.usage
        )

    def _replied(self, reply: ChatReply) -> Steps:
        parts, usage = self.parts, reply.usage
        model = reply.model or parts.model.name
        span = self._model_span
        if usage is not None:
            span.set(
                gen_ai__response__model=model,
                gen_ai__usage__input_tokens=usage.input_tokens,
                gen_ai__usage__output_tokens=usage.output_tokens,
            )
            cost = parts.price(usage, model)
            if cost is not None:
                self.cost = (self.cost or 0.0) + cost
            yield Emit(UsageEvent(usage, "main", model, cost))
            observe = getattr(self.session.compactor or parts.compactor, "observe", None)
            if observe is not None:
                yield from self._isolated("observe", observe, usage)
        span.end()
        for hook in parts.hooks.at("after_model"):
            yield from self._isolated("after_model", hook, reply, self._info())
