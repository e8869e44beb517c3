"""Resolve what an agent was given into its parts, and refuse what can't work while nothing has run."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from wakeful.assembly.context import ContextConfig
from wakeful.assembly.template import Template
from wakeful.compaction.budget import default_reserve
from wakeful.compaction.compactor import WindowManager
from wakeful.compaction.meter import as_meter
from wakeful.engine.agent_config import AgentConfig, make_compactor
from wakeful.engine.compacting import checked_compactor, resolve_window
from wakeful.engine.context_parts import make_context_manager
from wakeful.engine.gate import Gate
from wakeful.engine.history_tool import recall_history
from wakeful.engine.hooks import Hooks
from wakeful.engine.hydrate_tool import pulling
from wakeful.engine.parts import Parts
from wakeful.engine.tools import Tool, make_tools
from wakeful.errors import ConfigError
from wakeful.models.choose import coerce_model
from wakeful.records import MemoryScope

MARGIN = 64
"""A window's part that is kept free for the error of an estimate that has learnt from usage: 1/64, about 1.6 %. Measured
on 3,000 rounds by ``bench/long_agent.py``: the estimate falls short by 1.25 % at worst."""


def resolve_parts(
    config: AgentConfig,
    *,
    model: Any,
    tools: Sequence[Any],
    system: str | None,
    memory: Any,
    scope: MemoryScope | str | None,
    compactor: Any,
    hooks: Any,
    approve: Any,
    context: Any,
    archive: Any,
    catalog: Any,
    meter: Any,
) -> Parts:
    """Give the parts of an agent. Raises ``ConfigError`` for what can't work."""
    chat = coerce_model(model if model is not None else _named(config))
    if catalog is None:
        from wakeful.models.catalog import Catalog

        catalog = Catalog.default()
    if compactor is None and config.compactor is not None:
        compactor = make_compactor(config.compactor, "Agent")
    compactor = _with_archive(checked_compactor(compactor, "Agent"), archive)
    archive = archive if archive is not None else _option(compactor, "archive")
    where = _scope(scope if scope is not None else config.scope)
    given = make_tools(tools)
    manager = _manager(context, memory, given, config, system)
    own = [] if archive is None else [recall_history(archive, compactor)]
    made = make_tools([*given.values(), *own, *pulling(manager)])
    found = Hooks.of(hooks)
    found = found.plus("before_tool", [policy.before_tool for policy in config.make_policies()])
    if system is not None and not isinstance(system, str):
        raise ConfigError(f"Agent: system must be a text, not {type(system).__name__}")
    if approve is not None:
        _check_approver(approve)
    link = _memory(memory, where, config.nap_every)
    window = resolve_window(compactor, chat.name, catalog, config.context_window, "Agent")
    return Parts(
        name=config.name,
        model=chat,
        catalog=catalog,
        count=as_meter(meter, model=chat.name).count,
        compactor=compactor,
        window=window,
        reserve=_reserve(window, config.max_tokens, chat, catalog),
        system=system if system is not None else config.system,
        tools=made,
        specs=tuple(each.spec for each in made.values()),
        hooks=found,
        limits=config.limits(),
        budget=config.budget,
        approver=approve,
        context=_context(manager, link, chat.dialect),
        gate=_gate(manager, link, where),
        memory=link,
        scope=where,
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        thinking=config.thinking,
        model_timeout=config.model_timeout,
        tool_timeout=config.tool_timeout,
        parallel=config.parallel,
    )


def _reserve(window: int | None, asked: int | None, model: Any, catalog: Any) -> int | None:
    """Tokens to keep free: what a request asks for (the agent's limit, the model object's own, else the catalogue's),
    and a margin for the error of the estimate."""
    if window is None:
        return None
    margin = window // MARGIN
    own = getattr(model, "max_tokens", None)
    if asked is None and isinstance(own, int):
        asked = own
    if asked is not None:
        return min(asked, window // 2) + margin
    return default_reserve(window, catalog.output_limit(model.name)) + margin


def _named(config: AgentConfig) -> str:
    if config.model is None:
        raise ConfigError("Agent needs a model: Agent('anthropic/claude-sonnet-5'), a client, or a ChatModel")
    return config.model


def _option(compactor: Any, name: str) -> Any:
    options = getattr(compactor, "options", None)
    return options.get(name) if isinstance(options, Mapping) else None


def _with_archive(compactor: Any, archive: Any) -> Any:
    """Let a window manager without an archive use the agent's."""
    if archive is None or type(compactor) is not WindowManager or _option(compactor, "archive") is not None:
        return compactor
    return WindowManager(**{**compactor.options, "archive": archive})


def _scope(scope: MemoryScope | str | None) -> MemoryScope | None:
    return MemoryScope.parse(scope) if isinstance(scope, str) else scope


def _check_approver(approve: Any) -> None:
    if not callable(approve):
        raise ConfigError(f"approve is a function from calls to decisions, not {type(approve).__name__}")
    try:
        inspect.signature(approve).bind(())
    except TypeError as error:
        raise ConfigError(f"approve can't be called with one argument, the parked calls: {error}") from error


def _memory(memory: Any, scope: MemoryScope | None, nap_every: int) -> Any:
    if memory is None:
        return None
    if scope is None:
        raise ConfigError("Agent with a memory needs a scope: scope='org:acme/user:ana'")
    if hasattr(memory, "episodes") and hasattr(memory, "dropped") and hasattr(memory, "nap"):
        return memory
    from wakeful.engine.schedule import NapCadence
    from wakeful.engine.turn_memory import MemoryLink

    return MemoryLink(memory, scope, naps=NapCadence(nap_every))


def _manager(context: Any, memory: Any, tools: Mapping[str, Tool], config: AgentConfig, system: str | None) -> Any:
    """What makes the turn's context; a configuration or a tenant's template alone is given ours, over the memory."""
    if not isinstance(context, ContextConfig | Template):
        return context
    template = context if isinstance(context, Template) else Template(name=config.name)
    text = system if system is not None else config.system
    if text:
        template = replace(template, kernel="\n".join(part for part in (text, template.kernel) if part))
    return make_context_manager(
        context if isinstance(context, ContextConfig) else ContextConfig(),
        memory=memory,
        template=template,
        tools=tuple(tool.spec for tool in tools.values()),
    )


def _gate(manager: Any, link: Any, scope: MemoryScope | None) -> Gate | None:
    """The gate over the agent's memory, else over the one behind its context."""
    for source in (getattr(link, "flows", None), getattr(manager, "parts", None)):
        find = getattr(source, "skills_about", None)
        if find is not None and scope is not None:
            return Gate(find, scope)
    return None


def _context(context: Any, link: Any, dialect: str) -> Any:
    if context is None:
        return link if hasattr(link, "provide") else None
    if hasattr(context, "provide"):
        return context
    from wakeful.engine.turn_memory import AssembledProvider

    return AssembledProvider(context, blocks=dialect == "anthropic")
