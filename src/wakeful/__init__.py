"""The context layer for LLM agents: compact, assemble, remember, recall, consolidate.

Names are loaded when first used, so importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.compaction.compactor import NoOp, WindowManager
    from wakeful.compaction.honesty import HONESTY_MARKER_SENTINEL, compose_memory_section
    from wakeful.conversation import AgentMemory
    from wakeful.engine.agent import Agent
    from wakeful.engine.agent_config import AgentConfig
    from wakeful.engine.memory import Memory
    from wakeful.engine.memory_async import AsyncMemory
    from wakeful.engine.tools import tool
    from wakeful.engine.verbs import acompact, compact, plan_compaction, restore
    from wakeful.engine.window import Window
    from wakeful.errors import MemoryContractError
    from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, MemoryScope, Turn
    from wakeful.retrieval.hits import Recall

__version__ = "0.1.0"

_FROM = {
    "Agent": "wakeful.engine.agent",
    "AgentConfig": "wakeful.engine.agent_config",
    "AgentMemory": "wakeful.conversation",
    "AsyncMemory": "wakeful.engine.memory_async",
    "HONESTY_MARKER_SENTINEL": "wakeful.compaction.honesty",
    "Memory": "wakeful.engine.memory",
    "MemoryContractError": "wakeful.errors",
    "MemoryEdge": "wakeful.records",
    "MemoryLayer": "wakeful.records",
    "MemoryNode": "wakeful.records",
    "MemoryScope": "wakeful.records",
    "NoOp": "wakeful.compaction.compactor",
    "Recall": "wakeful.retrieval.hits",
    "Turn": "wakeful.records",
    "Window": "wakeful.engine.window",
    "WindowManager": "wakeful.compaction.compactor",
    "acompact": "wakeful.engine.verbs",
    "compact": "wakeful.engine.verbs",
    "compose_memory_section": "wakeful.compaction.honesty",
    "plan_compaction": "wakeful.engine.verbs",
    "restore": "wakeful.engine.verbs",
    "tool": "wakeful.engine.tools",
}

__all__ = [
    "Agent",
    "AgentConfig",
    "AgentMemory",
    "AsyncMemory",
    "HONESTY_MARKER_SENTINEL",
    "Memory",
    "MemoryContractError",
    "MemoryEdge",
    "MemoryLayer",
    "MemoryNode",
    "MemoryScope",
    "NoOp",
    "Recall",
    "Turn",
    "Window",
    "WindowManager",
    "acompact",
    "compact",
    "compose_memory_section",
    "plan_compaction",
    "restore",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _FROM.get(name)
    if home is None:
        raise AttributeError(f"module 'wakeful' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_FROM})
