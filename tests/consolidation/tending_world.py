"""A scope with memories, and the driver that runs cycles over a store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from wakeful.consolidation.report import ConsolidationReport
from wakeful.engine.consolidate import consolidate_flow
from wakeful.engine.drive import drive
from wakeful.needs import Ask, Run
from wakeful.ops import GetNodes, PutNodes
from wakeful.records import MemoryNode, MemoryScope, Source
from wakeful.stores.inmemory import InMemoryStore

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANA = MemoryScope.parse("org:acme/user:ana")


class World:
    """A store, a clock that stands still, and short ways to fill and to tend it."""

    def __init__(self, store: Any = None) -> None:
        self.store = store if store is not None else InMemoryStore()
        self.now = NOW
        self.asked: list[str] = []
        self.reply: Callable[[Ask], Any] | None = None

    def put(self, *nodes: MemoryNode) -> None:
        for node in nodes:
            self.store.execute((PutNodes(node.scope, (node,)),))

    def get(self, name: str, scope: MemoryScope = ANA) -> MemoryNode:
        return self.store.execute((GetNodes(scope, (name,)),))[0][0]

    def answer(self, need: Any) -> Any:
        if isinstance(need, Run):
            return self.store.execute(need.ops)
        assert isinstance(need, Ask)
        assert self.reply is not None
        return self.reply(need)

    def tend(self, cadence: str = "nightly", scope: MemoryScope = ANA, **values: Any) -> ConsolidationReport:
        values.setdefault("at", self.now)
        return drive(consolidate_flow(scope, cadence, **values), self.answer, clock=lambda: self.now)

    def phase(self, name: str, **values: Any) -> Any:
        report = self.tend(**values)
        assert report.errors == {}
        return next(phase for phase in report.phases if phase.name == name)


def memory(name: str, content: str = "", *, hours: float = 1, scope: MemoryScope = ANA, **values: Any) -> MemoryNode:
    """A node asserted some hours ago; ``session`` is a short way to its source."""
    if "session" in values:
        values["source"] = Source(session=values.pop("session"))
    values.setdefault("layer", "semantic")
    return MemoryNode.new(id=name, scope=scope, content=content or name, at=NOW - timedelta(hours=hours), **values)
