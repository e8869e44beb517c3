"""``hydrate_context``: the tool by which a model pulls memory, where its prompt brings none."""

from __future__ import annotations

from typing import Any

from wakeful.assembly.jit import HYDRATE_CONTEXT
from wakeful.engine.context import JITContextManager
from wakeful.engine.tools import Tool, ToolContext


def pulling(manager: Any) -> list[Tool]:
    """The tool, for a context manager whose prompt tells the model to call it; nothing for any other."""
    if not isinstance(manager, JITContextManager) or manager.parts is None:
        return []
    parts = manager.parts

    async def hydrate_context(domain: str, top_k: int = 5, *, context: ToolContext) -> str:
        if context.scope is None:
            return "error: nobody is named whose memory this is"
        answer: str = await parts.hydrate_context({"domain": domain, "top_k": top_k}, context.scope)
        return answer

    return [Tool(spec=HYDRATE_CONTEXT, function=hydrate_context, context="context")]
