"""The compactor at a turn's boundary: what it is given, how its answer is judged, and how much deeper to cut.

A compactor is anything with ``maybe_compact(acc, ctx) -> (acc, meta)``: a plain method, an async one, or a flow.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wakeful.conversation import AgentMemory
from wakeful.engine.hooks import Hooks, Pin, TurnInfo, Veto
from wakeful.engine.session import Session
from wakeful.errors import ConfigError, StaleWriter
from wakeful.needs import Call, Flow, ToolSpec
from wakeful.pricing import ModelCatalog
from wakeful.turn.effects import CompactInfo

logger = logging.getLogger("wakeful.turn")

HARDER = (0.75, 0.5, 0.25, 0.1)
"""Shares of the window that are tried in turn after the provider refused a request as too long, until one compacts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactContext:
    """What the compactor is told beside the conversation."""

    model: str | None
    window: int | None
    """Tokens; None only for a compactor that needs none."""
    prompt_tokens: int
    """Estimated tokens of system prompt and tool definitions of the next call; 0 when there is no window."""
    mid_round: bool


@dataclass(frozen=True, slots=True)
class Running:
    """The running conversation, as a compactor is given it."""

    memory: AgentMemory
    session: str
    turn_id: str


class NoCompaction:
    """Never compacts: no work, no window looked up."""

    def needs_window(self) -> bool:
        """Say that nothing is sized."""
        return False

    def maybe_compact(self, acc: Any, ctx: Any) -> tuple[Any, dict[str, Any]]:
        """Give the same conversation back."""
        del ctx
        return acc, {"compacted": False}


def check_compactor(compactor: Any, entry: str) -> None:
    """Refuse what only looks like a compactor, where the agent is made."""
    method = getattr(compactor, "maybe_compact", None)
    if not callable(method):
        raise ConfigError(f"{entry}: the compactor {type(compactor).__name__} has no maybe_compact(acc, ctx)")
    try:
        inspect.signature(method).bind(None, None)
    except TypeError as error:
        raise ConfigError(
            f"{entry}: {type(compactor).__name__}.maybe_compact can't be called with (acc, ctx): {error}"
        ) from error
    needs = getattr(compactor, "needs_window", None)
    if needs is not None:
        try:
            inspect.signature(needs).bind()
        except TypeError as error:
            raise ConfigError(f"{entry}: {type(compactor).__name__}.needs_window takes no arguments") from error
    validate = getattr(compactor, "validate_opts", None)
    if validate is None:
        return
    try:
        inspect.signature(validate).bind(None, None)
    except TypeError as error:
        raise ConfigError(f"{entry}: {type(compactor).__name__}.validate_opts takes (opts, entry)") from error
    validate(getattr(compactor, "options", {}), entry)


def needs_window(compactor: Any) -> bool:
    """Whether the compactor sizes against the model's window; one that does not say so does."""
    method = getattr(compactor, "needs_window", None)
    return True if method is None else bool(method())


def resolve_window(compactor: Any, model: str, catalog: ModelCatalog, pinned: int | None, entry: str) -> int | None:
    """Give the window for the compactor's context; None for one that needs none.

    Raises ``ConfigError`` for a model whose window nobody knows.
    """
    if not needs_window(compactor):
        return None
    options = getattr(compactor, "options", None)
    given = options.get("context_window") or options.get("window") if isinstance(options, Mapping) else None
    window = given or pinned or catalog.context_window(model)
    if window is None:
        raise ConfigError(
            f"{entry}: the catalogue does not know the window of model {model!r}, and the compactor sizes against it; "
            "give context_window=TOKENS, or a catalog that knows the model"
        )
    return int(window)


def prompt_tokens(count: Any, system: Any, tools: tuple[ToolSpec, ...]) -> int:
    """Estimate the tokens of system prompt and tool definitions."""
    text = system if isinstance(system, str) else json.dumps(list(system), default=str) if system else ""
    total = count(text, "text") if text else 0
    for spec in tools:
        total += count(f"{spec.name}\n{spec.description}", "text") + count(json.dumps(dict(spec.parameters)), "json")
    return int(total)


def compact_flow(
    session: Session, compactor: Any, hooks: Hooks, info: CompactInfo, ctx: CompactContext, turn: TurnInfo
) -> Flow[Mapping[str, Any]]:
    """Let the compactor look, and take over what it made. Give its meta; a failure leaves the conversation as it was."""
    memory = session.memory
    pins, veto = yield from _ask_hooks(hooks, memory, turn)
    if veto is not None and not info.harder:
        return {"compacted": False, "reason": "vetoed", "why": veto}
    for entry_id in pins:
        if entry_id in memory.entries:
            memory = memory.pin(entry_id)
    acc = Running(memory, session.id, info.turn_id)
    try:
        after, meta = yield from _compact(compactor, acc, ctx, harder=info.harder)
    except (ConfigError, StaleWriter):
        raise
    except Exception as error:
        logger.warning("the compactor %s failed", type(compactor).__name__, exc_info=True)
        return {"compacted": False, "error": f"{type(error).__name__}: {error}"}
    if after.memory is memory:
        session.memory = memory
        return {**meta, "compacted": False}
    return {**meta, "compacted": True, "memory": after.memory}


def _compact(compactor: Any, acc: Running, ctx: CompactContext, *, harder: bool) -> Flow[tuple[Any, dict[str, Any]]]:
    if not harder or ctx.window is None:
        return (yield from _once(compactor, acc, ctx))
    meta: dict[str, Any] = {"compacted": False}
    for share in HARDER:
        tight = CompactContext(
            model=ctx.model,
            window=max(1, int(ctx.window * share)),
            prompt_tokens=min(ctx.prompt_tokens, int(ctx.window * share / 2)),
            mid_round=ctx.mid_round,
        )
        after, meta = yield from _once(compactor, acc, tight)
        if after.memory is not acc.memory:
            return after, meta
    return acc, meta


def _once(compactor: Any, acc: Running, ctx: CompactContext) -> Flow[tuple[Any, dict[str, Any]]]:
    answer = yield Call(compactor.maybe_compact, (acc, ctx))
    if not (isinstance(answer, tuple) and len(answer) == 2 and hasattr(answer[0], "memory")):
        raise TypeError(f"{type(compactor).__name__}.maybe_compact must give (acc, meta), not {type(answer).__name__}")
    after, meta = answer
    items = meta if isinstance(meta, Mapping) else _fields(meta)
    return after, dict(items)


def _fields(meta: Any) -> dict[str, Any]:
    names = getattr(meta, "__slots__", None) or vars(meta)
    return {name: getattr(meta, name) for name in names if getattr(meta, name, None) is not None}


def _ask_hooks(hooks: Hooks, memory: AgentMemory, turn: TurnInfo) -> Flow[tuple[list[str], str | None]]:
    pins: list[str] = []
    veto: str | None = None
    for hook in hooks.at("before_compact"):
        try:
            answer = yield Call(hook, (memory, turn))
        except Exception:
            logger.warning("a before_compact hook raised", exc_info=True)
            continue
        if isinstance(answer, Pin):
            pins.extend(answer.ids)
        elif isinstance(answer, Veto):
            veto = answer.reason
    return pins, veto
