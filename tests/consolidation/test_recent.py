"""The window: read once a cycle, never another scope's, never an empty one that looks real."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from wakeful.engine.recent import MemoryGraph, RecentSemanticNodes
from wakeful.errors import MemoryContractError
from wakeful.ops import PutNodes
from wakeful.records import MemoryLayer, MemoryNode, MemoryScope, NativeStorageScope
from wakeful.stores.inmemory import InMemoryStore

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANA = MemoryScope.parse("org:acme/user:ana")
BO = MemoryScope.parse("org:acme/user:bo")
TALK = ANA.child("session", "s1")


@dataclass(frozen=True)
class Context:
    scope: MemoryScope
    started_at: datetime = NOW


def node(name: str, scope: MemoryScope = ANA, hours: float = 1, layer: str = "semantic") -> MemoryNode:
    return MemoryNode.new(id=name, scope=scope, layer=layer, content=name, at=NOW - timedelta(hours=hours))


class Graph:
    """A graph that counts its reads and can be told to fail."""

    def __init__(self, rows, **flags) -> None:
        self.rows, self.reads, self.fail = rows, [], False
        for name, value in flags.items():
            setattr(self, name, value)

    async def query_nodes(self, scope, *, layer, **extra):
        self.reads.append((scope, extra))
        if self.fail:
            raise RuntimeError("down")
        return [row for row in self.rows if scope.sees(row.scope) and row.layer is layer]

    async def query_subtree(self, scope, wanted, *, limit):
        self.reads.append((scope, wanted))
        root = scope.scope if isinstance(scope, NativeStorageScope) else scope
        return [row for row in self.rows if root.contains(row.scope)]


def window(graph, context=Context(ANA), **values):
    recent = RecentSemanticNodes(graph, **values)
    return [each.id for each in asyncio.run(recent.for_cycle(context))]


def test_a_cycle_reads_once_and_its_phases_share_the_answer():
    async def two():
        graph = Graph([node("a")])
        recent = RecentSemanticNodes(graph)
        first = await recent.for_cycle(Context(ANA))
        again = await recent.for_cycle(Context(ANA))
        return first, again, graph.reads

    first, again, reads = asyncio.run(two())
    assert first is again
    assert len(reads) == 1


def test_a_second_cycle_reads_again_and_another_scope_gets_its_own():
    async def many():
        graph = Graph([node("a"), node("b", BO)])
        recent = RecentSemanticNodes(graph)
        got = [
            [each.id for each in await recent.for_cycle(Context(scope, at))]
            for scope, at in ((ANA, NOW), (BO, NOW), (ANA, NOW), (ANA, NOW + timedelta(hours=1)))
        ]
        return got, len(graph.reads)

    assert asyncio.run(many()) == ([["a"], ["b"], ["a"], ["a"]], 4)


def test_a_read_that_failed_leaves_no_empty_window_behind():
    async def fail_then_work():
        graph = Graph([node("a")])
        recent = RecentSemanticNodes(graph)
        graph.fail = True
        with pytest.raises(RuntimeError):
            await recent.for_cycle(Context(ANA))
        graph.fail = False
        return [each.id for each in await recent.for_cycle(Context(ANA))]

    assert asyncio.run(fail_then_work()) == ["a"]


def test_the_cut_off_is_inclusive_has_no_upper_bound_and_ignores_nodes_without_a_time():
    rows = [node("edge", hours=24), node("old", hours=24.001), node("future", hours=-5)]
    timeless = SimpleNamespace(id="timeless", scope=ANA, layer=MemoryLayer.SEMANTIC, updated_at=None)
    assert window(Graph([*rows, timeless])) == ["edge", "future"]


def test_a_graph_that_ranges_is_asked_for_the_range_and_checked_again():
    graph = Graph([node("new"), node("old", hours=99)], supports_updated_since=True)
    assert window(graph) == ["new"]
    assert graph.reads[0][1] == {"updated_since": NOW - timedelta(hours=24)}


def test_an_exact_owner_needs_a_scope_that_ends_in_a_session():
    legacy = MemoryScope.for_tenant("acme")
    with pytest.raises(MemoryContractError, match="session"):
        window(Graph([]), Context(legacy), exact_session_owner=True)
    with pytest.raises(MemoryContractError):
        window(Graph([]), SimpleNamespace(scope=SimpleNamespace(path="x"), started_at=NOW), exact_session_owner=True)


@pytest.mark.parametrize("kind", [None, "", "thread"])
def test_a_native_scope_needs_its_own_session_kind(kind):
    with pytest.raises(MemoryContractError, match="session_kind"):
        window(Graph([], stores_native_scopes=True), Context(TALK), exact_session_owner=True, session_kind=kind)


def test_a_native_scope_needs_a_graph_that_stores_native_scopes():
    with pytest.raises(MemoryContractError, match="stores_native_scopes"):
        window(Graph([]), Context(TALK), exact_session_owner=True, session_kind="session")


def test_a_native_scope_drops_other_owners_and_refuses_a_wrong_layer():
    below = TALK.child("step", "1")
    graph = Graph([node("mine", TALK), node("below", below)], stores_native_scopes=True)
    asked = {"exact_session_owner": True, "session_kind": "session"}
    assert window(graph, Context(TALK), **asked) == ["mine"]
    assert isinstance(graph.reads[0][0], NativeStorageScope)
    graph.rows.append(node("wrong", TALK, layer="episodic"))
    with pytest.raises(MemoryContractError, match="wrong"):
        window(graph, Context(TALK), **asked)


def test_a_legacy_scope_refuses_other_owners_and_wrong_layers():
    talk = MemoryScope.for_tenant("acme", "s1")
    assert window(Graph([node("mine", talk)]), Context(talk), exact_session_owner=True) == ["mine"]
    for stranger in (node("x", talk.child("step", "1")), node("x", talk, layer="episodic")):
        with pytest.raises(MemoryContractError, match="outside"):
            window(Graph([stranger]), Context(talk), exact_session_owner=True)


@pytest.mark.parametrize("error", [AttributeError, NotImplementedError, TypeError])
def test_a_graph_without_a_subtree_is_a_contract_error(error):
    class Poor:
        def query_subtree(self, *args, **kwargs):
            raise error("no")

    talk = MemoryScope.for_tenant("acme", "s1")
    with pytest.raises(MemoryContractError, match="query_subtree"):
        window(Poor(), Context(talk), exact_session_owner=True)
    with pytest.raises(MemoryContractError, match="query_subtree"):
        window(object(), Context(talk), exact_session_owner=True)


def test_our_own_graph_serves_both_windows():
    store = InMemoryStore()
    rows = (node("ana"), node("talk", TALK), node("old", hours=99), node("bo", BO))
    for row in rows:
        store.execute((PutNodes(row.scope, (row,)),))
    graph = MemoryGraph(store, clock=lambda: NOW)
    assert window(graph) == ["ana"]
    assert sorted(window(graph, Context(TALK))) == ["ana", "talk"]
    assert window(graph, Context(TALK), exact_session_owner=True, session_kind="session") == ["talk"]
