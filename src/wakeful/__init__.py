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
    from wakeful.engine.verbs import acompact, compact, plan_compaction, restore
    from wakeful.engine.window import Window

__version__ = "0.1.0"

_FROM = {
    "AgentMemory": "wakeful.conversation",
    "HONESTY_MARKER_SENTINEL": "wakeful.compaction.honesty",
    "NoOp": "wakeful.compaction.compactor",
    "Window": "wakeful.engine.window",
    "WindowManager": "wakeful.compaction.compactor",
    "acompact": "wakeful.engine.verbs",
    "compact": "wakeful.engine.verbs",
    "compose_memory_section": "wakeful.compaction.honesty",
    "plan_compaction": "wakeful.engine.verbs",
    "restore": "wakeful.engine.verbs",
}

__all__ = [
    "AgentMemory",
    "HONESTY_MARKER_SENTINEL",
    "NoOp",
    "Window",
    "WindowManager",
    "acompact",
    "compact",
    "compose_memory_section",
    "plan_compaction",
    "restore",
]


def __getattr__(name: str) -> Any:
    home = _FROM.get(name)
    if home is None:
        raise AttributeError(f"module 'wakeful' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_FROM})
