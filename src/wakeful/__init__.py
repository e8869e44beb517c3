"""The context layer for LLM agents: compact, assemble, remember, recall, consolidate.

Names are loaded when first used, so importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.assembly.context import AssembledContext, ContextConfig, HydratedMemory, IntentVerdict
    from wakeful.compaction.compactor import NoOp, WindowManager
    from wakeful.compaction.honesty import HONESTY_MARKER_SENTINEL, compose_memory_section
    from wakeful.consolidation.report import ConsolidationReport
    from wakeful.conversation import AgentMemory
    from wakeful.engine.agent import Agent
    from wakeful.engine.agent_config import AgentConfig
    from wakeful.engine.context import (
        ContextManager,
        JITContextManager,
        StratifiedHMSContextManager,
        resolve_strategy_name,
    )
    from wakeful.engine.context_parts import make_context_manager
    from wakeful.engine.memory import Memory
    from wakeful.engine.memory_async import AsyncMemory
    from wakeful.engine.recent import RecentSemanticNodes
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
    "AssembledContext": "wakeful.assembly.context",
    "AsyncMemory": "wakeful.engine.memory_async",
    "ConsolidationReport": "wakeful.consolidation.report",
    "ContextConfig": "wakeful.assembly.context",
    "ContextManager": "wakeful.engine.context",
    "HONESTY_MARKER_SENTINEL": "wakeful.compaction.honesty",
    "HydratedMemory": "wakeful.assembly.context",
    "IntentVerdict": "wakeful.assembly.context",
    "JITContextManager": "wakeful.engine.context",
    "Memory": "wakeful.engine.memory",
    "MemoryContractError": "wakeful.errors",
    "MemoryEdge": "wakeful.records",
    "MemoryLayer": "wakeful.records",
    "MemoryNode": "wakeful.records",
    "MemoryScope": "wakeful.records",
    "NoOp": "wakeful.compaction.compactor",
    "Recall": "wakeful.retrieval.hits",
    "RecentSemanticNodes": "wakeful.engine.recent",
    "StratifiedHMSContextManager": "wakeful.engine.context",
    "Turn": "wakeful.records",
    "Window": "wakeful.engine.window",
    "WindowManager": "wakeful.compaction.compactor",
    "acompact": "wakeful.engine.verbs",
    "compact": "wakeful.engine.verbs",
    "compose_memory_section": "wakeful.compaction.honesty",
    "make_context_manager": "wakeful.engine.context_parts",
    "plan_compaction": "wakeful.engine.verbs",
    "resolve_strategy_name": "wakeful.engine.context",
    "restore": "wakeful.engine.verbs",
    "tool": "wakeful.engine.tools",
}

__all__ = [
    "Agent",
    "AgentConfig",
    "AgentMemory",
    "AssembledContext",
    "AsyncMemory",
    "ConsolidationReport",
    "ContextConfig",
    "ContextManager",
    "HONESTY_MARKER_SENTINEL",
    "HydratedMemory",
    "IntentVerdict",
    "JITContextManager",
    "Memory",
    "MemoryContractError",
    "MemoryEdge",
    "MemoryLayer",
    "MemoryNode",
    "MemoryScope",
    "NoOp",
    "Recall",
    "RecentSemanticNodes",
    "StratifiedHMSContextManager",
    "Turn",
    "Window",
    "WindowManager",
    "acompact",
    "compact",
    "compose_memory_section",
    "make_context_manager",
    "plan_compaction",
    "resolve_strategy_name",
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
