"""Who sees and who owns: exact segments, every read path, every write path."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful import ops as op
from wakeful.errors import MemoryContractError, NotFound
from wakeful.records import MemoryLayer, MemoryScope, Source
from wakeful.stores.conformance.fixtures import (
    ACME,
    ANA,
    ANA_TODAY,
    BOB,
    EVERYTHING,
    LATER,
    MODEL,
    SHARED,
    START,
    edge,
    ids,
    node,
    now_visible,
    vector,
)
from wakeful.stores.protocol import Store

LOOK_ALIKES = (
    *("a_b", "axb", "a%", "a", "ab", "A", "acme", "acme-corp", "acme.", "acme0", "*", "%", "_", "?", "[a]", "\\", " "),
    *("a ", " a", "é", "e\u0301", "а", "ａ", "İ", "i", "ı", "'", '"', "';--", "$1", "..", "null", "None", "{}", "😀"),
)
"""Ids that a joined string, a wildcard, a folding or a trimming would take for one another."""

_roots = itertools.count()
_paths = st.lists(st.sampled_from(LOOK_ALIKES), min_size=0, max_size=2)


def fill(store: Store, owner: MemoryScope, name: str) -> None:
    """Write one of everything that a scope can own; every id begins with the name."""
    said = Source(session="talk")
    nodes = (
        node(owner, f"{name}-1", "secret word one", source=said, embedding=vector(1), embedding_model=MODEL),
        node(owner, f"{name}-2", "secret word two", source=said, at=START + timedelta(seconds=1)),
        node(owner, f"{name}-3", layer="prospective", properties={"due_at": START.isoformat()}),
    )
    store.execute(
        (
            op.PutNodes(owner, nodes),
            op.PutEdges(owner, (edge(owner, f"{name}-1", f"{name}-2"),)),
            op.Log(owner, (op.Change(node=nodes[0], action="add", reason=name, at=START),)),
            op.PutState(owner, "mine", name),
        )
    )


def read_paths(reader: MemoryScope, names: tuple[str, ...]) -> dict[str, op.MemoryOp]:
    """Every way to read that gives the ids of nodes."""
    every = tuple(f"{name}-{number}" for name in names for number in (1, 2, 3))
    visible = now_visible(at=LATER)
    return {
        "get": op.GetNodes(reader, every),
        "query": op.QueryNodes(scope=reader, visibility=visible, limit=None),
        "query by time": op.QueryNodes(scope=reader, visibility=visible, updated_since=START, order="id"),
        "query by session": op.QueryNodes(scope=reader, visibility=visible, session="talk"),
        "words": op.SearchText(scope=reader, terms=("secret", "word"), visibility=visible),
        "meaning": op.SearchVector(scope=reader, vector=vector(1), model=MODEL, visibility=visible),
        "candidates": op.FindCandidates(
            scope=reader,
            terms=("secret", "word"),
            vector=vector(1),
            model=MODEL,
            visibility=visible,
            by_words=50,
            by_meaning=50,
        ),
        "neighbours": op.Adjacent(scope=reader, ids=every, visibility=visible),
    }


def found_names(path: str, result: Any) -> set[str]:
    """Whose rows a read path gave."""
    if path == "neighbours":
        return {each.id.rpartition("-")[0] for _, _, each in result}
    if path == "candidates":
        return {each.sketch.id.rpartition("-")[0] for each in result}
    return {each.rpartition("-")[0] for each in ids(result)}


class ScopePromises:
    """Visibility and ownership."""

    @settings(max_examples=25, deadline=None, suppress_health_check=SHARED)
    @given(paths=st.lists(_paths, min_size=2, max_size=4, unique_by=tuple))
    def test_every_read_path_gives_the_rows_of_the_scope_and_its_ancestors_and_no_others(
        self, store: Store, paths: list[list[str]]
    ) -> None:
        root = MemoryScope.of(("org", f"root{next(_roots)}"))
        owners = {
            f"{root.tenant_id}-{place}": root.narrow(*zip(("brand", "user"), path, strict=False))
            for place, path in enumerate(paths)
        }
        for name, owner in owners.items():
            fill(store, owner, name)
        for reader in owners.values():
            expected = {name for name, owner in owners.items() if reader.levels[: len(owner.levels)] == owner.levels}
            for path, read in read_paths(reader, tuple(owners)).items():
                (result,) = store.execute((read,))
                assert found_names(path, result) == expected, path
            self._check_other_reads(store, reader, owners, expected)

    def _check_other_reads(
        self, store: Store, reader: MemoryScope, owners: dict[str, MemoryScope], expected: set[str]
    ) -> None:
        mine = next(name for name, owner in owners.items() if owner == reader)
        below = {name for name, owner in owners.items() if owner.levels[: len(reader.levels)] == reader.levels}
        every = tuple(f"{name}-1" for name in owners)
        subtree, edges, state, due, stats, scopes = store.execute(
            (
                op.QuerySubtree(scope=reader, edges=True),
                op.GetEdges(reader, every),
                op.GetState(reader, "mine"),
                op.ClaimDue(scope=reader, at=START, lease_seconds=0),
                op.Stats(reader),
                op.ListScopes(reader),
            )
        )
        assert {each.id.rpartition("-")[0] for each in subtree[0]} == below
        assert {each.source_id.rpartition("-")[0] for each in subtree[1]} == below
        assert {each.source_id.rpartition("-")[0] for each in edges} == expected
        assert state == mine
        assert ids(due) == [f"{mine}-3"]
        assert (stats["nodes"], stats["visible"]) == (3, 3 * len(expected))
        assert set(scopes) == {owners[name] for name in below}
        for name in owners:
            (history,) = store.execute((op.History(reader, f"{name}-1"),))
            assert [each.reason for each in history] == ([name] if name in expected else [])

    @pytest.mark.parametrize("writer", [BOB, ACME, ANA_TODAY, MemoryScope.parse("org:acme-corp")])
    def test_a_write_touches_no_row_of_another_scope_even_a_visible_one(
        self, store: Store, writer: MemoryScope
    ) -> None:
        fill(store, ANA, "ana")
        before = store.execute((op.QuerySubtree(scope=ANA, edges=True), op.History(ANA, "ana-1")))
        (ana_edge,) = before[0][1]
        results = store.execute(
            (
                op.UpdateNodes(scope=writer, changes={"ana-1": {"content": "taken"}}),
                op.Touch(writer, ("ana-1",), LATER),
                op.DeleteNodes(writer, ("ana-1", "ana-2")),
                op.DeleteEdges(writer, (ana_edge.id,)),
                op.AckDue(scope=writer, id="ana-3", occurrence=START.isoformat()),
            )
        )
        assert results == (0, 0, 0, 0, False)
        with pytest.raises(MemoryContractError):
            store.execute((op.PutNodes(writer, (node(writer, "ana-1", "taken"),)),))
        with pytest.raises(MemoryContractError):
            store.execute((op.PutNodes(writer, (node(ANA, "ana-9"),)),))
        with pytest.raises(NotFound):
            store.execute((op.Log(writer, (op.Change(node=node(ANA, "ana-1"), action="add", at=START),)),))
        assert store.execute((op.QuerySubtree(scope=ANA, edges=True), op.History(ANA, "ana-1"))) == before

    def test_a_taken_id_is_refused_in_words_that_do_not_tell_whose_it_is(self, store: Store) -> None:
        fill(store, ANA, "ana")
        messages = []
        for writer in (BOB, MemoryScope.parse("org:other")):
            with pytest.raises(MemoryContractError) as caught:
                store.execute((op.PutNodes(writer, (node(writer, "ana-1"),)),))
            messages.append(str(caught.value).replace(writer.path, "HERE"))
        assert messages[0] == messages[1]
        assert ANA.path not in messages[0]

    def test_an_edge_never_reaches_a_row_that_its_owner_does_not_see(self, store: Store) -> None:
        fill(store, ANA, "ana")
        fill(store, BOB, "bob")
        fill(store, ACME, "acme")
        for target in ("bob-1", "missing"):
            with pytest.raises(NotFound):
                store.execute((op.PutEdges(ANA, (edge(ANA, "ana-1", target),)),))
        assert store.execute((op.PutEdges(ANA, (edge(ANA, "ana-1", "acme-1"),)),)) == (1,)
        assert [each.target_id for each in store.execute((op.GetEdges(BOB, ("acme-1",)),))[0]] == ["acme-2"]

    def test_the_namespace_is_a_label_and_tells_no_scopes_apart(self, store: Store) -> None:
        labelled = MemoryScope.of(*ANA.levels, namespace="green")
        store.execute((op.PutNodes(labelled, (node(labelled, "one"),)),))
        assert ids(store.execute((op.GetNodes(ANA, ("one",)),))[0]) == ["one"]

    def test_scopes_are_listed_in_path_order_page_by_page(self, store: Store) -> None:
        owners = [MemoryScope.parse(f"org:o/user:{name}") for name in ("b", "a", "a-b", "a.b", "é", "z")]
        for place, owner in enumerate(owners):
            store.execute((op.PutNodes(owner, (node(owner, f"n{place}"),)),))
        root = MemoryScope.parse("org:o")
        found: list[str] = []
        while True:
            (page,) = store.execute((op.ListScopes(root, limit=2, after=found[-1] if found else None),))
            if not page:
                break
            found += [each.path for each in page]
        assert found == sorted(owner.path for owner in owners)
        assert store.execute((op.ListScopes(),))[0] == store.execute((op.ListScopes(root),))[0]

    def test_a_scope_without_rows_gives_nothing_and_not_everything(self, store: Store) -> None:
        fill(store, ANA, "ana")
        nowhere = MemoryScope.parse("org:nowhere/user:ana")
        for path, read in read_paths(nowhere, ("ana",)).items():
            assert store.execute((read,)) == ((),), path
        subtree, stats = store.execute((op.QuerySubtree(scope=nowhere, visibility=EVERYTHING), op.Stats(nowhere)))
        assert subtree == ()
        assert (stats["nodes"], stats["visible"]) == (0, 0)

    def test_a_reader_gets_its_own_rows_alone_when_asked(self, store: Store) -> None:
        fill(store, ACME, "acme")
        fill(store, ANA, "ana")
        query = op.QueryNodes(
            scope=ANA, visibility=now_visible(layers=(MemoryLayer.SEMANTIC,)), owned_only=True, order="id"
        )
        assert sorted(ids(store.execute((query,))[0])) == ["ana-1", "ana-2"]
