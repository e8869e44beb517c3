"""Assemble each turn's context: the two strategies, their default parts, and the one place that chooses between them.

Every part is a plain awaitable with the names of its keywords, so a user's own takes the place of ours:

| part | called with | gives |
|---|---|---|
| ``hydrate`` | ``(query, scope, *, intent_verdict)`` | ``HydratedMemory`` |
| ``resolve_tools`` | ``(query, scope)`` | tool names, or None for the full manifest |
| ``build_prompt`` | ``scope=, memory_context=, active_tools=, prospective_tasks=,`` | ``Prompt``, text |
| | ``activation_log=, query=`` | or None |
| JIT's ``build_prompt`` | ``(tenant_id, namespace, *, query, scope)`` | the same |

Scope is identity and is passed on whole. ``auto_hydrate`` is the hydration switch, and nothing else is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from wakeful.assembly.context import AssembledContext, HydratedMemory, IntentVerdict, Prompt, Prospective
from wakeful.assembly.stratified import shown_lines, tenant_of
from wakeful.errors import ConfigError
from wakeful.records import MemoryScope

logger = logging.getLogger("wakeful.context")

Hydrate = Callable[..., Awaitable[HydratedMemory | None]]
ResolveTools = Callable[..., Awaitable[list[str] | None]]
BuildPrompt = Callable[..., Awaitable["Prompt | str | None"]]
EventSink = Callable[[str, Mapping[str, Any]], Any]
"""Called with the name of an event (``triage``, ``routing``, ``hydration``, ``prompt_failed``) and its facts."""


@runtime_checkable
class ContextManager(Protocol):
    """A strategy that assembles the context of one turn. Called exactly once a turn."""

    async def assemble(
        self,
        *,
        query: str,
        scope: MemoryScope | None,
        intent_verdict: IntentVerdict | None,
        auto_hydrate: bool = True,
    ) -> AssembledContext:
        """Assemble the context for one query.

        ``scope`` is who asks, and reaches the prompt whether or not memory is hydrated; ``auto_hydrate`` alone decides
        that.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JITContextManager:
    """Render the short prompt and hydrate nothing; the model pulls memory with ``hydrate_context``."""

    build_prompt: BuildPrompt
    parts: Any = None
    """The ``ContextParts`` behind it, for an agent: they answer the tool that the prompt speaks of."""
    on_event: EventSink | None = None

    async def assemble(
        self,
        *,
        query: str,
        scope: MemoryScope | None,
        intent_verdict: IntentVerdict | None = None,
        auto_hydrate: bool = True,
    ) -> AssembledContext:
        """Assemble the context for one query; verdict and ``auto_hydrate`` are accepted and change nothing."""
        started = time.perf_counter()
        tenant_id, namespace = tenant_of(scope)
        made, error = await _built(self.build_prompt(tenant_id, namespace, query=query, scope=scope), self.on_event)
        metadata = _metadata("jit", started, 0, error)
        return AssembledContext(
            system_prompt=(made.text or None) if made else None,
            metadata=metadata,
            sections=made.sections if made else (),
            system_blocks=made.system_blocks if made else (),
            turn_block=made.turn_block if made else None,
        )


@dataclass(slots=True)
class _Task:
    """What of a turn was found out on the way to its prompt."""

    active: tuple[str, ...] | None = None
    coming: Prospective = field(default_factory=Prospective)


@dataclass(frozen=True, slots=True, kw_only=True)
class StratifiedHMSContextManager:
    """Hydrate memory, narrow the tools, and render the strata."""

    hydrate: Hydrate
    resolve_tools: ResolveTools
    build_prompt: BuildPrompt
    read_strat_overrides: Callable[[], Mapping[str, Any]] | None = None
    """For a builder that gives plain text: version and hash of what it made. A ``Prompt`` brings them itself."""
    enable_hms_prompt: bool = True
    """False: no prompt is made; what was hydrated is still returned."""
    read_prospective: Callable[[MemoryScope, str], Awaitable[Prospective | str]] | None = None
    """Due reminders, or their lines; None: none."""
    withhold: Callable[[Prompt, tuple[str, ...]], Mapping[str, Any]] | None = None
    """Given the prompt and the active tools: the ``names`` whose definitions are not to be sent, and what that costs.
    None: all definitions are sent."""
    parts: Any = None
    """The ``ContextParts`` behind it, for an agent: the gate, and the settling of reminders."""
    on_event: EventSink | None = None

    async def assemble(
        self,
        *,
        query: str,
        scope: MemoryScope | None,
        intent_verdict: IntentVerdict | None = None,
        auto_hydrate: bool = True,
    ) -> AssembledContext:
        """Assemble the context for one query.

        Memory is hydrated when there is a scope and ``auto_hydrate``. ``entries_count`` is of what stands in the
        prompt. A builder that gives None or "" gives no prompt and no overrides; one that raises does the same, and
        ``metadata["error"]`` says why.
        """
        started = time.perf_counter()
        hydrated: HydratedMemory | None = None
        if scope is not None and auto_hydrate:
            hydrated = await self.hydrate(query, scope, intent_verdict=intent_verdict)
        made: Prompt | None = None
        error: str | None = None
        task = _Task()
        if self.enable_hms_prompt:
            made, error = await _built(self._prompt(query, scope, hydrated, task), self.on_event)
        overrides: dict[str, Any] = {}
        if made is not None and hydrated is not None and made.sections:
            hydrated = _as_shown(hydrated, shown_lines(made, "memory"))
        if made is not None and made.text:
            overrides = dict(made.overrides)
            if not overrides and self.read_strat_overrides is not None:
                overrides = dict(self.read_strat_overrides())
        metadata = _metadata("stratified", started, hydrated.entries_count if hydrated else 0, error)
        if made is not None and task.active is not None and self.withhold is not None:
            metadata["narrowed"] = self.withhold(made, task.active)
        return AssembledContext(
            system_prompt=(made.text or None) if made else None,
            memory_context=hydrated,
            state_overrides=overrides,
            activation_log=hydrated.activation_log if hydrated else None,
            metadata=metadata,
            sections=made.sections if made else (),
            system_blocks=made.system_blocks if made else (),
            turn_block=made.turn_block if made else None,
            active_tools=task.active,
            withheld_tools=tuple(metadata.get("narrowed", {}).get("names", ())),
            due=_due_shown(task.coming, made) if made is not None else (),
        )

    async def _prompt(
        self, query: str, scope: MemoryScope | None, hydrated: HydratedMemory | None, task: _Task
    ) -> Prompt | str | None:
        if scope is not None:
            active = await self.resolve_tools(query, scope)
            task.active = None if active is None else tuple(active)
            if self.read_prospective is not None:
                read = await self.read_prospective(scope, query)
                task.coming = read if isinstance(read, Prospective) else Prospective(text=read or "")
        return await self.build_prompt(
            scope=scope,
            memory_context=hydrated.context if hydrated is not None else "",
            active_tools=None if task.active is None else list(task.active),
            prospective_tasks=task.coming.text,
            activation_log=hydrated.activation_log if hydrated is not None else None,
            query=query,
        )


def _due_shown(coming: Prospective, made: Prompt) -> tuple[Any, ...]:
    """The claimed reminders whose lines stand in the prompt; the others come again when their lease is over."""
    lines = coming.text.splitlines()
    shown = set(shown_lines(made, "prospective") if made.sections else lines)
    return tuple(due for line, due in zip(lines, coming.due, strict=False) if line in shown)


async def _built(
    building: Awaitable[Prompt | str | None], on_event: EventSink | None
) -> tuple[Prompt | None, str | None]:
    """Await a builder: (prompt, error). Text is wrapped; a ``Prompt`` may be empty and still tell what was left out."""
    try:
        made = await building
    except Exception as error:  # a user's part: the turn goes on without a prompt, and says so
        logger.exception("building the prompt failed; the turn goes on without one")
        said = f"{type(error).__name__}: {error}"
        tell(on_event, "prompt_failed", {"error": said})
        return None, said
    if isinstance(made, Prompt):
        return made, None
    return (Prompt(text=made) if made else None), None


def tell(sink: EventSink | None, name: str, facts: Mapping[str, Any]) -> None:
    """Tell a user's sink of an event; one that raises does not fail the turn."""
    if sink is None:
        return
    try:
        sink(name, facts)
    except Exception:
        logger.exception("an event sink failed on %s", name)


def _as_shown(hydrated: HydratedMemory, lines: tuple[str, ...]) -> HydratedMemory:
    """The hydrated memory as it stands in the prompt."""
    from wakeful.assembly.hydrate import unwrap, wrap

    before = unwrap(hydrated.context)
    if len(lines) == len(before):
        return hydrated
    kept = set(lines)
    pairs = list(zip(before, hydrated.nodes, strict=False))
    gone = tuple((hit.node.id, "the prompt's budget") for line, hit in pairs if line not in kept)
    return replace(
        hydrated,
        context=wrap(lines),
        entries_count=len(lines),
        nodes=tuple(hit for line, hit in pairs if line in kept),
        left_out=(*hydrated.left_out, *gone),
    )


def _metadata(name: str, started: float, entries: int, error: str | None) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "strategy_name": name,
        "latency_ms": (time.perf_counter() - started) * 1_000,
        "entries_count": entries,
    }
    if error is not None:
        metadata["error"] = error
    return metadata


Factory = Callable[[Mapping[str, Any]], ContextManager]
"""Makes a strategy from the parts, by their keyword names."""


def _jit(parts: Mapping[str, Any]) -> ContextManager:
    return JITContextManager(
        build_prompt=parts["build_jit_prompt"], parts=parts.get("parts"), on_event=parts.get("on_event")
    )


def _stratified(parts: Mapping[str, Any]) -> ContextManager:
    return StratifiedHMSContextManager(
        hydrate=parts["hydrate"],
        resolve_tools=parts["resolve_tools"],
        build_prompt=parts["build_hms_prompt"],
        read_strat_overrides=parts["read_strat_overrides"],
        enable_hms_prompt=parts["enable_hms_prompt"],
        read_prospective=parts["read_prospective"],
        withhold=parts.get("withhold"),
        parts=parts.get("parts"),
        on_event=parts.get("on_event"),
    )


_STRATEGIES: dict[str, Factory] = {"jit": _jit, "stratified": _stratified}


def register_strategy(name: str, factory: Factory) -> None:
    """Make a strategy known by name; ``factory`` gets the parts. Raises ``ConfigError`` for a taken name."""
    if name in _STRATEGIES:
        raise ConfigError(f"a context strategy named {name!r} is registered already")
    _STRATEGIES[name] = factory


def unregister_strategy(name: str) -> None:
    """Forget a registered strategy; the two built-in ones stay."""
    if name in ("jit", "stratified"):
        raise ConfigError(f"{name!r} is built in and can't be removed")
    _STRATEGIES.pop(name, None)


def factory_of(name: str) -> Factory:
    """The factory of a strategy by its resolved name."""
    return _STRATEGIES[name]


def resolve_strategy_name(config: Any) -> str:
    """Say which strategy a configuration names.

    ``config.context_strategy`` wins; None (or no such attribute) falls back to ``config.jit_context``. Reads nothing
    else. Raises ``ConfigError`` (a ``ValueError``) for a name that is not registered.
    """
    name = getattr(config, "context_strategy", None)
    if name is None:
        name = "jit" if config.jit_context else "stratified"
    if name not in _STRATEGIES:
        raise ConfigError(f"unknown context_strategy {name!r}; known: {', '.join(sorted(_STRATEGIES))}")
    return str(name)
