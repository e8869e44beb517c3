"""Edges: one per scope, source, relation and target; strongest first; gone with their ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wakeful import ops as op
from wakeful.errors import MemoryContractError
from wakeful.records import MemoryEdge
from wakeful.stores.conformance.fixtures import ACME, ANA, ANA_TODAY, START, edge, hour, node
from wakeful.stores.protocol import Store


def targets(found: tuple[MemoryEdge, ...]) -> list[str]:
    """The targets of edges, in order."""
    return [each.target_id for each in found]


class GraphPromises:
    """What the graph gives."""

    def test_every_field_of_an_edge_comes_back(self, store: Store) -> None:
        given = edge(
            *(ANA, "a", "b"),
            relation="LIVES_IN",
            weight=0.25,
            provenance="consolidation",
            evidence=("e1", "e2"),
            properties={"k": [1, "é"]},
            valid_from=hour(-1),
            valid_until=hour(9),
            recorded_at=hour(1),
            superseded_at=hour(2),
            expires_at=hour(3),
        )
        store.execute((op.PutNodes(ANA, (node(ANA, "a"), node(ANA, "b"))), op.PutEdges(ANA, (given,))))
        assert store.execute((op.GetEdges(ANA, ("a",)),)) == ((given,),)

    def test_writing_an_edge_again_merges_it(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (node(ANA, "a"), node(ANA, "b"))),))
        first = edge(ANA, "a", "b", weight=0.2, evidence=("e1",), recorded_at=hour(1))
        again = edge(ANA, "a", "b", weight=0.9, evidence=("e2", "e1"), at=hour(5), id="another-id")
        assert store.execute((op.PutEdges(ANA, (first,)), op.PutEdges(ANA, (again,)))) == (1, 1)
        expected = replace(first, weight=0.9, evidence=("e1", "e2"), updated_at=hour(5))
        assert store.execute((op.GetEdges(ANA, ("b",)),)) == ((expected,),)

    def test_an_edge_id_that_is_taken_is_refused(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (node(ANA, "a"), node(ANA, "b"))),))
        store.execute((op.PutEdges(ANA, (edge(ANA, "a", "b", id="taken"),)),))
        with pytest.raises(MemoryContractError):
            store.execute((op.PutEdges(ANA, (edge(ANA, "b", "a", id="taken"),)),))

    def test_edges_are_chosen_by_direction_relation_strength_and_time(self, store: Store) -> None:
        nodes = tuple(node(ANA, name) for name in "abcde")
        edges = (
            edge(ANA, "a", "b", weight=0.1),
            edge(ANA, "a", "c", weight=0.9),
            edge(ANA, "a", "d", weight=0.5, relation="LIKES"),
            edge(ANA, "e", "a", weight=0.7),
            edge(ANA, "b", "c", weight=1.0),
            edge(ANA, "a", "e", weight=0.3, valid_until=START),
        )
        store.execute((op.PutNodes(ANA, nodes), op.PutEdges(ANA, edges)))

        def ask(*names: str, **values: object) -> list[str]:
            return targets(store.execute((op.GetEdges(ANA, names, **values),))[0])  # type: ignore[arg-type]

        assert ask("a") == ["c", "a", "d", "e", "b"]
        assert ask("a", direction="out") == ["c", "d", "e", "b"]
        assert ask("a", direction="in") == ["a"]
        assert ask("a", relation="LIKES") == ["d"]
        assert ask("a", limit_per_node=2) == ["c", "a"]
        assert ask("a", at=hour(1), direction="out") == ["c", "d", "b"]
        assert ask("a", at=hour(-1), direction="out") == ["c", "d", "e", "b"]
        assert ask("b", "c", limit_per_node=1) == ["c"]
        assert ask("missing") == []

    def test_an_edge_between_scopes_is_seen_by_its_owner_and_those_below(self, store: Store) -> None:
        store.execute(
            (
                op.PutNodes(ACME, (node(ACME, "policy"),)),
                op.PutNodes(ANA, (node(ANA, "fact"),)),
                op.PutEdges(ANA, (edge(ANA, "fact", "policy"),)),
            )
        )
        for reader, found in ((ANA, ["policy"]), (ANA_TODAY, ["policy"]), (ACME, [])):
            assert targets(store.execute((op.GetEdges(reader, ("policy", "fact")),))[0]) == found

    def test_no_edge_outlives_an_end(self, store: Store) -> None:
        store.execute(
            (
                op.PutNodes(ACME, (node(ACME, "policy"),)),
                op.PutNodes(ANA, (node(ANA, "fact"),)),
                op.PutEdges(ANA, (edge(ANA, "fact", "policy"), edge(ANA, "policy", "policy"))),
                op.DeleteNodes(ACME, ("policy",)),
            )
        )
        assert store.execute((op.GetEdges(ANA, ("policy", "fact")), op.Stats(ANA)))[0] == ()
        assert store.execute((op.Stats(ANA),))[0]["edges"] == 0

    def test_a_deleted_edge_is_gone_and_its_ends_stay(self, store: Store) -> None:
        one = edge(ANA, "a", "b")
        store.execute((op.PutNodes(ANA, (node(ANA, "a"), node(ANA, "b"))), op.PutEdges(ANA, (one,))))
        assert store.execute((op.DeleteEdges(ANA, (one.id, one.id, "missing")),)) == (1,)
        edges, nodes = store.execute((op.GetEdges(ANA, ("a",)), op.GetNodes(ANA, ("a", "b"))))
        assert (edges, len(nodes)) == ((), 2)
