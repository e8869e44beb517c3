"""What a LangGraph node of ours is given by the graph around it: small protocols, and a container that finds them.

Each collaborator is optional but the model provider, and that one is needed only when something is compacted.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar, runtime_checkable

from wakeful.compaction.history_share import ModelConfig
from wakeful.errors import ConfigError

T = TypeVar("T")

log = logging.getLogger("wakeful.adapters.langgraph")


@runtime_checkable
class ModelProvider(Protocol):
    """Gives chat models."""

    def get_chat_model(self, config: ModelConfig) -> Any:
        """Give a LangChain chat model (anything with ``ainvoke``) for this config."""
        ...


@runtime_checkable
class ObservabilityHook(Protocol):
    """Sees every model call, always."""

    async def on_llm_start(self, model: str, messages: Sequence[Any], run_id: str) -> None:
        """A call begins."""
        ...

    async def on_llm_end(self, model: str, text: str, usage: Mapping[str, Any], run_id: str) -> None:
        """A call has ended; ``text`` is empty and ``usage`` too when it failed."""
        ...


class NoOpObservabilityHook:
    """Sees nothing: the default."""

    async def on_llm_start(self, model: str, messages: Sequence[Any], run_id: str) -> None:
        """Do nothing."""

    async def on_llm_end(self, model: str, text: str, usage: Mapping[str, Any], run_id: str) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMStartEvent:
    """A model call begins."""

    model: str
    messages: Sequence[Any]
    run_id: str
    node_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMEndEvent:
    """A model call has ended."""

    model: str
    text: str
    run_id: str
    node_name: str
    duration_ms: float
    started_at_utc: datetime
    usage: Mapping[str, Any] = field(default_factory=dict)
    """Tokens as LangChain's ``usage_metadata`` names them; empty when the model told none."""
    error: str | None = None
    """What went wrong; None when the call succeeded."""


@runtime_checkable
class CallbackManager(Protocol):
    """Passes events of a run on to whoever listens."""

    @property
    def is_noop(self) -> bool:
        """True when nobody listens."""
        ...

    async def on_llm_start(self, event: LLMStartEvent) -> None:
        """A call begins."""
        ...

    async def on_llm_end(self, event: LLMEndEvent) -> None:
        """A call has ended."""
        ...


@runtime_checkable
class MemoryFlusher(Protocol):
    """Brings what is in memory to where it lasts."""

    async def flush(self, state: Mapping[str, Any]) -> None:
        """Flush; an exception leaves the graph's state as it was."""
        ...


class BaseAgentDeps:
    """A container of collaborators, resolved by type.

    ``BaseAgentDeps(provider, hook)`` finds each by what it can do; ``BaseAgentDeps({T: it})`` and ``provide(T, it)``
    name the type, and win. The attributes of a subclass's instance are searched too. The observability hook defaults to
    the one that does nothing.
    """

    def __init__(self, *collaborators: Any) -> None:
        self._provided: dict[Any, Any] = {}
        self._collaborators = tuple(each for each in collaborators if not isinstance(each, Mapping))
        for each in collaborators:
            if isinstance(each, Mapping):
                self._provided.update(each)

    def provide(self, kind: type[T], it: T) -> BaseAgentDeps:
        """Give ``it`` whenever ``kind`` is asked for; returns the container."""
        self.__dict__.setdefault("_provided", {})[kind] = it
        return self

    def get(self, kind: type[T]) -> T | None:
        """Find a collaborator of this type; None when there is none."""
        own = self.__dict__
        provided = own.get("_provided", {})
        if kind in provided:
            found: T = provided[kind]
            return found
        attributes = [value for name, value in own.items() if name not in ("_provided", "_collaborators")]
        for each in (*own.get("_collaborators", ()), *attributes):
            if isinstance(each, kind):
                return each
        return NoOpObservabilityHook() if kind is ObservabilityHook else None  # type: ignore[return-value]

    def require(self, kind: type[T]) -> T:
        """Find a collaborator of this type. Raises ``ConfigError`` when there is none."""
        found = self.get(kind)
        if found is None:
            name = getattr(kind, "__name__", str(kind))
            raise ConfigError(f"the graph's deps hold no {name}; give one: BaseAgentDeps(your_{name.lower()})")
        return found


async def notify(function: Any, *args: Any) -> None:
    """Call a user's hook, awaited when it wants to be; what it raises is logged and goes no further."""
    try:
        value = function(*args)
        if inspect.isawaitable(value):
            await value
    except Exception:
        log.exception("a hook failed: %s", getattr(function, "__qualname__", function))


def hook_of(deps: Any) -> Any:
    """Give the observability hook of a container, ours or another's; the one that does nothing when it has none."""
    found = deps.get(ObservabilityHook)
    if found is None:
        try:
            found = deps.require(ObservabilityHook)
        except Exception:
            log.debug("the graph's deps hold no observability hook")
    return found if found is not None else NoOpObservabilityHook()


def usage_dict(message: Any) -> dict[str, Any]:
    """Give the usage that a LangChain message carries, as it stands; empty when it carries none."""
    usage = getattr(message, "usage_metadata", None)
    return dict(usage) if isinstance(usage, Mapping) else {}
