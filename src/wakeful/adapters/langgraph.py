"""A LangGraph node that keeps a graph's messages inside the model's window.

``create_context_window_node(config)`` gives an async node for a state with ``messages`` (reduced by ``add_messages``)
and ``deps``, from the decisions of ``wakeful.compaction.history_share``::

    graph.add_node("context_window", create_context_window_node(CompactionConfig(max_history_share=0.4)))
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from wakeful.adapters.langgraph_deps import (
    BaseAgentDeps,
    CallbackManager,
    LLMEndEvent,
    LLMStartEvent,
    MemoryFlusher,
    ModelProvider,
    NoOpObservabilityHook,
    ObservabilityHook,
    hook_of,
    log,
    notify,
    usage_dict,
)
from wakeful.compaction.history_share import (
    DEFAULT_WINDOW,
    SUMMARY_HEAD,
    CompactionConfig,
    ModelConfig,
    Split,
    exceeds,
    split,
    summary_prompt,
)
from wakeful.compaction.honesty import HONESTY_MARKER_SENTINEL, compose_memory_section
from wakeful.errors import ConfigError, MissingExtra
from wakeful.models.langchain import resolved_name, text_of

__all__ = [
    "HONESTY_MARKER_SENTINEL",
    "BaseAgentDeps",
    "CallbackManager",
    "CompactionConfig",
    "LLMEndEvent",
    "LLMStartEvent",
    "MemoryFlusher",
    "ModelConfig",
    "ModelProvider",
    "NoOpObservabilityHook",
    "ObservabilityHook",
    "compose_memory_section",
    "create_context_window_node",
    "flush_memory",
]

NODE_NAME = "context_window_summariser"
"""The name under which the summariser's call is reported."""
State = Mapping[str, Any]
Node = Callable[[State], Awaitable[dict[str, Any]]]


def create_context_window_node(
    config: CompactionConfig,
    *,
    model_config: ModelConfig | None = None,
    role_models: Mapping[str, ModelConfig] | None = None,
) -> Node:
    """Make the node: ``async state -> partial state``.

    ``model_config``: the running agent's model; its window counts when the config names none. ``role_models``: its
    ``"summary"`` is the summariser, as it is. The node never raises: what goes wrong is logged, the state stays as it
    was. Raises ``ConfigError`` for a config of another type, ``MissingExtra`` without LangChain.
    """
    if not isinstance(config, CompactionConfig):
        raise ConfigError(f"create_context_window_node takes a CompactionConfig, not {type(config).__name__}")
    try:
        import langchain_core.messages  # noqa: F401
    except ImportError as error:
        raise MissingExtra("langgraph", needed_for="the context window node") from error

    async def context_window(state: State) -> dict[str, Any]:
        try:
            messages = list(state["messages"])
            if not exceeds(messages, config, model_config):
                return {}
            chosen = split(messages, config.keep_recent_messages)
            if chosen is None:
                return {}
            summary = await _summarise(state, [messages[i] for i in chosen.old], config, role_models or {})
            if not summary.strip():
                log.warning("the summariser gave a blank summary; the messages stay as they were")
                return {}
            update = _update(messages, chosen, summary)
            if config.enable_memory_flush:
                await flush_memory(state)
        except Exception:
            log.exception("the context window node failed; the state stays as it was")
            return {}
        return update

    return context_window


async def flush_memory(state: State) -> None:
    """Flush memory through the ``MemoryFlusher`` of the state's deps.

    Does nothing without a container, or when what it holds has no callable ``flush``. What the flusher raises is raised.
    """
    get = getattr(state.get("deps"), "get", None)
    flusher = get(MemoryFlusher) if callable(get) else None
    flush = getattr(flusher, "flush", None)
    if callable(flush) and hasattr(waiting := flush(state), "__await__"):
        await waiting


async def _summarise(
    state: State, old: Sequence[Any], config: CompactionConfig, role_models: Mapping[str, ModelConfig]
) -> str:
    """Ask the summariser, with the start and the end of the call told to the hook and the callback manager."""
    from langchain_core.messages import HumanMessage
    from langchain_core.runnables import Runnable

    deps = state["deps"]
    chosen = role_models.get("summary")
    if not isinstance(chosen, ModelConfig):
        chosen = ModelConfig(config.compaction_model, max_tokens=config.max_chunk_tokens)
    llm = deps.require(ModelProvider).get_chat_model(chosen)
    prompt = [HumanMessage(content=summary_prompt(old, room_chars=_room_chars(chosen, config)))]
    model = resolved_name(llm) or chosen.model_name
    run_id = state.get("run_id") or ""
    hook = hook_of(deps)
    manager = state.get("_callback_manager") or deps.get(CallbackManager)
    if manager is not None and manager.is_noop:
        manager = None

    await notify(hook.on_llm_start, model, prompt, run_id)
    if manager is not None:
        start = LLMStartEvent(model=model, messages=prompt, run_id=run_id, node_name=NODE_NAME)
        await notify(manager.on_llm_start, start)
    started, clock = datetime.now(UTC), time.perf_counter()
    text, usage, failure = "", {}, ""
    try:
        # A run with this tag stays out of the graph's own message stream, so no summary token reaches the user.
        tagged = {"config": {"tags": ["nostream", NODE_NAME]}} if isinstance(llm, Runnable) else {}
        response = await llm.ainvoke(prompt, **tagged)
        text, usage = text_of(response), usage_dict(response)
    except BaseException as error:
        failure = f"{type(error).__name__}: {error}"
        raise
    finally:
        await notify(hook.on_llm_end, model, text, usage, run_id)
        if manager is not None:
            end = LLMEndEvent(
                model=model,
                text=text,
                run_id=run_id,
                node_name=NODE_NAME,
                duration_ms=(time.perf_counter() - clock) * 1_000,
                started_at_utc=started,
                usage=usage,
                error=failure or None,
            )
            await notify(manager.on_llm_end, end)
    return text


def _room_chars(model: ModelConfig, config: CompactionConfig) -> int:
    """Give the characters that the summariser can read beside what it writes; half the window at least."""
    window = model.context_window or DEFAULT_WINDOW
    room = max(window // 2, window - (model.max_tokens or 0))
    return max(1, int(room * 0.9) * config.chars_per_token)


def _update(messages: Sequence[Any], chosen: Split, summary: str) -> dict[str, Any]:
    """Make the partial state: removals, then the summary in the place of a removed message.

    ``add_messages`` puts a message where the one with its id stood. Where the latest human message stands before the
    first old one, the two swap ids, so that the summary stands before it: no system message in the middle.
    """
    from langchain_core.messages import RemoveMessage, SystemMessage

    old = [messages[i] for i in chosen.old]
    kept_ids = {m.id for i, m in enumerate(messages) if i not in set(chosen.old) and getattr(m, "id", None)}
    ids = [i for i in dict.fromkeys(getattr(m, "id", None) for m in old) if i and i not in kept_ids]
    section = compose_memory_section(
        summary_text=f"{SUMMARY_HEAD}\n{summary}", last_compacted_index=len(old), entries_count=0
    )
    place = ids[0] if ids else None
    moved: list[Any] = []
    human = messages[chosen.kept_before[0]] if chosen.kept_before else None
    if human is not None and human.id and place is not None:
        moved.append(human.model_copy(update={"id": place}))
        place = human.id
    note = SystemMessage(content=section, id=place)
    return {"messages": [*(RemoveMessage(id=each) for each in ids), *moved, note]}
