"""The gate before a tool: a call whose skill has an unmet precondition is answered with what is missing, and not run.

It fails closed: while a memory's skills can't be read, no call passes; and what succeeded is known from this process
alone, so a session that another process goes on with calls the precondition again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any

from wakeful.assembly.preflight import gate, skills_of
from wakeful.errors import StaleWriter
from wakeful.needs import Call, Flow
from wakeful.records import MemoryNode, MemoryScope

logger = logging.getLogger("wakeful.turn")


class Gate:
    """The gate of one scope. ``find`` gives, as a flow or awaited, the skills in force there about some tools."""

    def __init__(self, find: Callable[[MemoryScope, tuple[str, ...]], Any], scope: MemoryScope) -> None:
        self._find = find
        self._scope = scope

    def refusals(self, tools: Iterable[str], succeeded: Collection[str]) -> Flow[dict[str, str]]:
        """What to answer the calls of these tools that may not run yet, by tool."""
        names = tuple(dict.fromkeys(tools))
        try:
            found: tuple[MemoryNode, ...] = yield Call(self._find, (self._scope, names))
        except StaleWriter:
            raise
        except Exception:
            logger.warning("the skills of %s could not be read; no tool is run", self._scope.path, exc_info=True)
            return dict.fromkeys(names, "Not run: the rules for tools can't be read now. Say so, or try again later.")
        skills = skills_of(found)
        refused = {name: gate(name, succeeded, skills) for name in names}
        return {name: refusal.message for name, refusal in refused.items() if refusal is not None}
