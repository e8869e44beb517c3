"""The default parts of context assembly, made from a memory, a tenant's template and a tool manifest.

Each is a plain awaitable that takes everything it needs and gives everything it makes; nothing is left behind in between.
"""

from __future__ import annotations

import inspect
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from wakeful.assembly.context import ContextConfig, HydratedMemory, IntentVerdict, Prompt, Prospective
from wakeful.assembly.hydrate import due_lines, wrap
from wakeful.assembly.jit import HYDRATE_CONTEXT, clamp, layers_for, render_short, tool_schema
from wakeful.assembly.preflight import rules_of, skills_of
from wakeful.assembly.stratified import Services, Task, render_prompt, tenant_of
from wakeful.assembly.template import Template
from wakeful.assembly.tools import Routing, route
from wakeful.assembly.triage import classify, enforced
from wakeful.compaction.meter import as_meter
from wakeful.consolidation.phases.profile import LABEL as PROFILE
from wakeful.engine.context import (
    ContextManager,
    EventSink,
    factory_of,
    resolve_strategy_name,
    tell,
)
from wakeful.engine.drive import adrive, drive, utc_now
from wakeful.errors import ConfigError, ModelError, WakefulError
from wakeful.needs import Flow, Need, ToolSpec, now, run
from wakeful.ops import QueryNodes, Visibility
from wakeful.records import MemoryLayer, MemoryNode, MemoryScope

logger = logging.getLogger("wakeful.context")

HydrationHook = Callable[..., Any]
"""Called with ``scope=, query=, count=, milliseconds=`` after each hydration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextParts:
    """The parts over one memory. ``memory`` None: nothing is remembered, and the prompt is made all the same."""

    config: ContextConfig = field(default_factory=ContextConfig)
    memory: Any = None
    """A ``Memory`` or an ``AsyncMemory``."""
    template: Template = field(default_factory=Template)
    tools: tuple[ToolSpec, ...] = ()
    on_hydration_complete: tuple[HydrationHook, ...] = ()
    on_event: EventSink | None = None
    tokens: Callable[[str], int] | None = None
    """Counts tokens; None: the estimate of ``compact``."""
    clock: Callable[[], datetime] = utc_now
    _meanings: dict[str, bytes] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Vectors of the tools, by their texts."""

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return self.tokens(text) if self.tokens is not None else _METER(text, "text")

    async def hydrate(
        self, query: str, scope: MemoryScope, *, intent_verdict: IntentVerdict | None = None
    ) -> HydratedMemory | None:
        """Recall for the prompt within the memory section's budget; the hooks hear of it."""
        if self.memory is None:
            return None
        verdict = self._triaged(query, intent_verdict)
        started = time.perf_counter()
        found: HydratedMemory = await _awaited(
            self.memory.hydrate(
                query, scope, intent_verdict=verdict, k=self.config.top_k, budget=self.config.memory_most
            )
        )
        spent = (time.perf_counter() - started) * 1_000
        for hook in self.on_hydration_complete:
            try:
                await _awaited(hook(scope=scope, query=query, count=found.entries_count, milliseconds=spent))
            except Exception:  # a user's hook must not fail the turn
                logger.exception("an on_hydration_complete hook failed")
        self._event("hydration", {"scope": scope.path, "count": found.entries_count, "milliseconds": spent})
        return found

    async def resolve_tools(self, query: str, scope: MemoryScope) -> list[str] | None:
        """Names of the tools for this query; None when the manifest is not narrowed."""
        if not self.tools:
            return None
        routing = await self.route(query)
        self._event("routing", {"scope": scope.path, "names": routing.names, "narrowed": routing.narrowed})
        return list(routing.names) if routing.narrowed else None

    async def route(self, query: str) -> Routing:
        """Score every tool for a query, by words and, where the memory has an embedder, by meaning.

        An embedder that fails costs the comparison by meaning, and not the turn.
        """
        flows = getattr(self.memory, "flows", None)
        config = self.config
        how: dict[str, Any] = {"always_include": config.always_include, "most": config.max_tools}
        if flows is not None and flows.embedder is not None:
            try:
                return await adrive(route(query, self.tools, meanings=self._meanings, **how), flows.aanswer)
            except ModelError:
                logger.warning("the embedder failed; tools are chosen by their words", exc_info=True)
        return drive(route(query, self.tools, **how), _nothing)

    async def build_prompt(
        self,
        *,
        scope: MemoryScope | None,
        memory_context: str = "",
        active_tools: Sequence[str] | None = None,
        prospective_tasks: str = "",
        activation_log: Mapping[str, Any] | None = None,
        query: str = "",
    ) -> Prompt:
        """Render the strata. Query and activation log are accepted for builders that show them; ours does not."""
        tenant_id, namespace = tenant_of(scope)
        services = Services(
            template=self.template,
            tenant_id=tenant_id,
            namespace=namespace,
            tools=self.tools,
            rules=await self._rules(scope),
            preferences=await self._preferences(scope),
        )
        task = Task(
            memory_context=memory_context,
            active_tools=None if active_tools is None else tuple(active_tools),
            prospective=prospective_tasks,
            time=f"Time: {self.clock():%Y-%m-%d %H:%M} UTC",
        )
        config = self.config
        return render_prompt(
            services,
            task,
            budget=config.budget,
            memory_least=config.memory_least,
            memory_most=config.memory_most,
            tokens=self.count,
        )

    async def build_jit_prompt(
        self, tenant_id: str, namespace: str, *, query: str, scope: MemoryScope | None = None
    ) -> Prompt:
        """Render the short prompt, with the pre-flight rules of the scope."""
        return render_short(self.template, tenant_id, namespace, await self._rules(scope))

    def withhold(self, prompt: Prompt, active: tuple[str, ...]) -> Mapping[str, Any]:
        """Definitions that need not be sent, and what leaving them out costs.

        ``tokens_saved`` are those of the definitions. ``tokens_uncached`` are those of the definitions that stay and of
        the stable strata: they come after what changed, so the provider reads them, and the whole history behind them,
        at full price whenever the names differ from those of the turn before.
        """
        names = [tool.name for tool in self.tools if tool.name not in active]
        sizes = {tool.name: self.count(json.dumps(tool_schema(tool, "anthropic"))) for tool in self.tools}
        stable = sum(section.tokens for section in prompt.sections if section.stratum != "L2")
        saved = sum(sizes[name] for name in names)
        return {"names": names, "tokens_saved": saved, "tokens_uncached": sum(sizes.values()) - saved + stable}

    async def read_prospective(self, scope: MemoryScope, query: str) -> Prospective:
        """The reminders that are due, or that this query triggers; each is given once.

        They are claimed here and settled when the turn is over (``settle``); an unsettled one comes again.
        """
        if self.memory is None:
            return Prospective()
        due = tuple(await _awaited(self.memory.due(scope, query=query)))
        return Prospective(text="\n".join(due_lines(due)), due=due)

    async def settle(self, scope: MemoryScope, due: Sequence[Any]) -> int:
        """Settle reminders that were shown; returns how many were still open."""
        return sum([bool(await _awaited(self.memory.ack(scope, each))) for each in due])

    async def skills_about(self, scope: MemoryScope, names: Sequence[str]) -> tuple[MemoryNode, ...]:
        """The skills in force about these tools, for the gate before a call."""
        flows = getattr(self.memory, "flows", None)
        if flows is not None:
            return await adrive(flows.skills_about(scope, names), flows.aanswer, clock=self.clock)
        return tuple(node for node in await self._skills(scope) if node.properties.get("tool") in names)

    async def hydrate_context(self, arguments: Mapping[str, Any], scope: MemoryScope) -> str:
        """Answer the ``hydrate_context`` tool: notes as data, bounded, and any failure as a text."""
        asked = clamp(arguments)
        if isinstance(asked, str):
            return asked
        if self.memory is None:
            return "error: there is no memory here"
        domain, top_k = asked
        layers = layers_for(domain)
        try:
            found: HydratedMemory = await _awaited(
                self.memory.hydrate(domain, scope, k=top_k, budget=self.config.memory_most, layers=layers)
            )
        except WakefulError as error:
            return f"error: {error}"
        return found.context or wrap(("nothing is remembered about this",))

    def _triaged(self, query: str, verdict: IntentVerdict | None) -> IntentVerdict | None:
        if self.config.triage == "off":
            return None
        seen = verdict if verdict is not None else classify(query)
        self._event("triage", {"label": seen.label, "confidence": seen.confidence, "reasons": seen.reasons})
        return enforced(seen) if self.config.triage == "enforce" else None

    async def _rules(self, scope: MemoryScope | None) -> tuple[str, ...]:
        return () if scope is None else rules_of(skills_of(await self._skills(scope)))

    async def _skills(self, scope: MemoryScope) -> tuple[MemoryNode, ...]:
        if self.memory is None:
            return ()
        found: tuple[MemoryNode, ...] = await _awaited(self.memory.skills(scope))
        return found

    async def _preferences(self, scope: MemoryScope | None) -> tuple[str, ...]:
        """Standing preferences: the profile that consolidation keeps."""
        flows = getattr(self.memory, "flows", None)
        if flows is None or scope is None:
            return ()
        found = await adrive(_profile(scope), flows.aanswer, clock=self.clock)
        return tuple(line for node in found if node.source.trust != "low" for line in node.content.splitlines() if line)

    def _event(self, name: str, facts: Mapping[str, Any]) -> None:
        tell(self.on_event, name, facts)


def make_context_manager(
    config: Any,
    *,
    memory: Any = None,
    template: Template | None = None,
    tools: Sequence[ToolSpec] | None = None,
    hydrate: Any = None,
    resolve_tools: Any = None,
    build_hms_prompt: Any = None,
    build_jit_prompt: Any = None,
    read_strat_overrides: Any = None,
    enable_hms_prompt: bool | None = None,
    read_prospective: Any = None,
    on_hydration_complete: Sequence[HydrationHook] = (),
    on_event: EventSink | None = None,
    tokens: Callable[[str], int] | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> ContextManager:
    """Make the context manager that a configuration names, once, at construction.

    Parts that are not given are ours, over ``memory``, ``template`` and ``tools``; any part given replaces ours. A
    configuration of one's own needs ``context_strategy`` or ``jit_context`` only. ``enable_hms_prompt`` given here wins.

    Raises ``ConfigError`` for an unknown strategy, or a template or tool of a wrong type.
    """
    name = resolve_strategy_name(config)
    if template is not None and not isinstance(template, Template):
        raise ConfigError(f"template is a Template, not {type(template).__name__}; Template.from_toml reads one")
    parts = ContextParts(
        config=config if isinstance(config, ContextConfig) else ContextConfig(),
        memory=memory,
        template=template if template is not None else Template(),
        tools=tuple(tools or ()),
        on_hydration_complete=tuple(on_hydration_complete),
        on_event=on_event,
        tokens=tokens,
        clock=clock,
    )
    own_prompt = build_hms_prompt is not None
    prompt = enable_hms_prompt if enable_hms_prompt is not None else getattr(config, "enable_hms_prompt", True)
    return factory_of(name)(
        {
            "hydrate": hydrate if hydrate is not None else parts.hydrate,
            "resolve_tools": resolve_tools if resolve_tools is not None else parts.resolve_tools,
            "build_hms_prompt": build_hms_prompt if own_prompt else parts.build_prompt,
            "build_jit_prompt": build_jit_prompt if build_jit_prompt is not None else parts.build_jit_prompt,
            "read_strat_overrides": read_strat_overrides,
            "enable_hms_prompt": prompt,
            "read_prospective": read_prospective or (None if own_prompt else parts.read_prospective),
            "withhold": parts.withhold if parts.config.narrow_definitions else None,
            "on_event": on_event,
            "parts": parts,
        }
    )


def _profile(scope: MemoryScope) -> Flow[tuple[MemoryNode, ...]]:
    visibility = Visibility(at=(yield from now()), layers=(MemoryLayer.SEMANTIC,))
    (found,) = yield from run(QueryNodes(scope=scope, visibility=visibility, label=PROFILE, order="id", limit=8))
    nodes: tuple[MemoryNode, ...] = found
    return nodes


def _nothing(need: Need) -> Any:
    raise ConfigError(f"choosing tools by their words needs nothing, not {type(need).__name__}")


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


_METER = as_meter(None).count

__all__ = ["HYDRATE_CONTEXT", "ContextParts", "make_context_manager"]
