"""The compactor at a turn's boundary: what it is given, how its answer is judged, and how much deeper to cut.

Rules of the file:

- A failure leaves the conversation as it was, with ``error`` in the meta.
- ``before_compact`` hooks are asked when a compaction is at hand, never at a boundary where everything fits. What a
  vetoed compaction made is thrown away; a pin has it made anew.
- After the provider refused a request as too long, its own estimate is not believed: the compactor is given a window
  in which what it measured does not fit.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from wakeful.compaction.compactor import CompactContext, NoOp, WindowManager, check_compactor, needs_window
from wakeful.conversation import AgentMemory
from wakeful.engine.hooks import Hooks, Pin, TurnInfo, Veto
from wakeful.engine.session import Session
from wakeful.errors import ConfigError, StaleWriter
from wakeful.needs import Call, Flow, ToolSpec
from wakeful.pricing import ModelCatalog
from wakeful.turn.effects import CompactInfo

logger = logging.getLogger("wakeful.turn")

DEEPER = 0.6
"""Share of what the conversation was measured at that a deeper compaction leaves room for."""

SHARES = (0.75, 0.5, 0.25, 0.1)
"""Shares of the window that are tried in turn with a compactor that measures nothing, until one compacts."""

RESERVE = 4096
"""Most tokens that a window manager without a reserve of its own takes for the reply (half of a small window)."""


@dataclass(frozen=True, slots=True)
class Running:
    """The running conversation, as a compactor is given it."""

    memory: AgentMemory
    session: str
    turn_id: str


def checked_compactor(compactor: Any, entry: str) -> Any:
    """Give the compactor back, or refuse what only looks like one; None is ``NoOp``."""
    if compactor is None:
        return NoOp()
    options = getattr(compactor, "options", None)
    check_compactor(compactor, options if isinstance(options, Mapping) else None, entry=entry)
    return compactor


def for_session(compactor: Any, session: Session, *, reserve: int | None = None, focus: str | None = None) -> Any:
    """Give the compactor for one session: its archive keeps the session's spans apart; what it learns is its own.

    ``reserve``: tokens that the agent's requests ask for, for a manager that names none.
    """
    if type(compactor) is not WindowManager:
        return compactor
    if session.compactor is None:
        own: dict[str, Any] = {"space": archive_space(compactor, session.id), "dialect": session.dialect}
        if compactor.options.get("reserve") is None and reserve is not None:
            own["reserve"] = reserve
        session.compactor = WindowManager(**{**compactor.options, **own})
    if focus is not None:
        return WindowManager(**{**session.compactor.options, "instructions": focus})
    return session.compactor


def archive_space(compactor: Any, session: str) -> str:
    """Give the part of the archive that belongs to a session."""
    options = getattr(compactor, "options", None)
    base = options.get("space", "") if isinstance(options, Mapping) else ""
    return f"{base}/{session}" if base else session


def resolve_window(compactor: Any, model: str, catalog: ModelCatalog, pinned: int | None, entry: str) -> int | None:
    """Give the window for the compactor's context; None for one that needs none.

    Raises ``ConfigError`` for a model whose window nobody knows.
    """
    if not needs_window(compactor):
        return None
    options = getattr(compactor, "options", None)
    given = options.get("context_window") if isinstance(options, Mapping) else None
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
    """Let the compactor look. Give its meta; with ``memory``, the new conversation, when it compacted."""
    acc = Running(session.memory, session.id, info.turn_id)
    try:
        after, meta = yield from _compact(compactor, acc, ctx, harder=info.harder)
        if after.memory is acc.memory:
            return {**meta, "compacted": False}
        pins, veto = yield from _ask_hooks(hooks, acc.memory, turn)
        if veto is not None:
            return {"compacted": False, "reason": "vetoed", "why": veto}
        if pins:
            acc = replace(acc, memory=_pinned(acc.memory, pins))
            session.memory = acc.memory
            after, meta = yield from _compact(compactor, acc, ctx, harder=info.harder)
    except StaleWriter:
        raise
    except Exception as error:
        logger.warning("the compactor %s failed", type(compactor).__name__, exc_info=True)
        return {"compacted": False, "error": f"{type(error).__name__}: {error}"}
    if after.memory is acc.memory:
        return {**meta, "compacted": False}
    return {**meta, "compacted": True, "memory": after.memory}


def _pinned(memory: AgentMemory, ids: list[str]) -> AgentMemory:
    shown = {entry.id for entry in memory.active}
    for entry_id in ids:
        if entry_id in shown:
            memory = memory.pin(entry_id)
    return memory


def _compact(compactor: Any, acc: Running, ctx: CompactContext, *, harder: bool) -> Flow[tuple[Any, dict[str, Any]]]:
    after, meta = yield from _once(compactor, acc, ctx)
    if not harder or ctx.window is None or after.memory is not acc.memory:
        return after, meta
    measured = meta.get("tokens_before")
    if measured:
        windows = [_tight(compactor, int(measured * DEEPER), ctx)]
    else:
        windows = [replace(ctx, window=max(1, int(ctx.window * share)), prompt_tokens=0) for share in SHARES]
    compactor = _unpinned(compactor)
    for tight in windows:
        after, meta = yield from _once(compactor, acc, tight)
        if after.memory is not acc.memory:
            break
    return after, meta


def _tight(compactor: Any, room: int, ctx: CompactContext) -> CompactContext:
    """Give a context in whose window so many tokens of history fit."""
    options = getattr(compactor, "options", None)
    reserve = options.get("reserve") if isinstance(options, Mapping) else None
    needed = room + ctx.prompt_tokens
    window = needed + (reserve if reserve is not None else min(RESERVE, needed))
    return replace(ctx, window=max(1, window))


def _unpinned(compactor: Any) -> Any:
    """Give the compactor without a window of its own, so that the context's decides."""
    if type(compactor) is WindowManager and compactor.options.get("context_window") is not None:
        return WindowManager(**{**compactor.options, "context_window": None})
    return compactor


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
