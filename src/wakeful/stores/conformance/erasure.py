"""Erasure: the subtree is gone on every path, late writers are stopped, the name can be used again."""

from __future__ import annotations

import pytest

from wakeful import ops as op
from wakeful.errors import NotFound, StaleWriter
from wakeful.records import MemoryScope
from wakeful.stores.conformance.fixtures import ACME, ANA, ANA_TODAY, BOB, EVERYTHING, START, edge, hour, ids, node
from wakeful.stores.conformance.scopes import fill, found_names, read_paths
from wakeful.stores.protocol import Store

LOOK_ALIKE = MemoryScope.parse("org:acme/user:ana2")


class ErasurePromises:
    """What erasing means."""

    def test_the_receipt_counts_what_was_there_and_nothing_is_left_on_any_path(self, store: Store) -> None:
        for owner, name in ((ANA, "ana"), (ANA_TODAY, "today"), (BOB, "bob"), (ACME, "acme"), (LOOK_ALIKE, "ana2")):
            fill(store, owner, name)
        for read in read_paths(ANA_TODAY, ("ana", "today")).values():
            store.execute((read,))
        (token,) = store.execute((op.AcquireLease(scope=ANA, owner="w", at=START, seconds=9),))
        (receipt,) = store.execute((op.Erase(ANA, hour(1)),))
        assert {key: receipt[key] for key in receipt if key != "pending"} == {
            "nodes": 6,
            "edges": 2,
            "history": 2,
            "reminders": 2,
            "vectors": 2,
            "state": 2,
            "leases": 1,
            "scopes": 2,
        }
        for reader in (ANA, ANA_TODAY):
            for path, read in read_paths(reader, ("ana", "today", "acme")).items():
                assert found_names(path, store.execute((read,))[0]) == {"acme"}, path
            history, state, due, below = store.execute(
                (
                    op.History(reader, "ana-1"),
                    op.GetState(reader, "mine"),
                    op.ClaimDue(scope=reader, at=hour(99)),
                    op.QuerySubtree(scope=reader, visibility=EVERYTHING, edges=True),
                )
            )
            assert (history, state, due, below) == ((), None, (), ((), ()))
        assert store.execute((op.ListScopes(ACME),))[0] == (ACME, LOOK_ALIKE, BOB)
        for reader, name in ((BOB, "bob"), (LOOK_ALIKE, "ana2")):
            (found,) = store.execute((op.QueryNodes(scope=reader, visibility=EVERYTHING, owned_only=True),))
            assert {each.rpartition("-")[0] for each in ids(found)} == {name}
        with pytest.raises(StaleWriter):
            store.execute((op.Fence(ANA, token),))

    def test_erasing_nothing_says_so(self, store: Store) -> None:
        (receipt,) = store.execute((op.Erase(ANA, START),))
        assert {value for key, value in receipt.items() if key != "pending"} == {0}

    def test_a_write_prepared_before_the_erasure_is_stopped(self, store: Store) -> None:
        late = node(ANA, "late", recorded_at=hour(1))
        below = node(ANA_TODAY, "below", recorded_at=hour(0))
        fill(store, ANA, "ana")
        store.execute((op.Erase(ANA, hour(1)),))
        for owner, row in ((ANA, late), (ANA_TODAY, below)):
            with pytest.raises(StaleWriter):
                store.execute((op.PutNodes(owner, (row,)),))
        with pytest.raises(NotFound):
            store.execute((op.Log(ANA, (op.Change(node=late, action="add", at=hour(0)),)),))
        with pytest.raises(StaleWriter):
            store.execute((op.PutEdges(ANA, (edge(ANA, "ana-1", "ana-2", recorded_at=hour(0)),)),))
        assert store.execute((op.QuerySubtree(scope=ANA),)) == ((),)
        assert store.execute((op.PutNodes(BOB, (node(BOB, "late", recorded_at=hour(1)),)),)) == (1,)

    def test_an_erased_name_and_its_ids_can_be_used_again(self, store: Store) -> None:
        fill(store, ANA, "ana")
        store.execute((op.Erase(ANA, hour(1)),))
        assert store.execute((op.PutNodes(ANA, (node(ANA, "new", "secret word", recorded_at=hour(2)),)),)) == (1,)
        fill(store, ANA, "ana")
        search = op.SearchText(scope=ANA, terms=("secret",), visibility=EVERYTHING)
        assert sorted(ids(store.execute((search,))[0])) == ["ana-1", "ana-2", "new"]

    def test_tokens_of_an_erased_scope_stay_dead(self, store: Store) -> None:
        (old,) = store.execute((op.AcquireLease(scope=ANA, owner="a", at=START, seconds=9),))
        store.execute((op.Erase(ANA, hour(1)),))
        (new,) = store.execute((op.AcquireLease(scope=ANA, owner="b", at=hour(2), seconds=9),))
        assert new > old

    def test_superseding_keeps_history_and_erasing_does_not(self, store: Store) -> None:
        old = node(ANA, "old", "lives in Oslo", valid_until=hour(1), superseded_at=hour(1), superseded_by="new")
        store.execute(
            (
                op.PutNodes(ANA, (old, node(ANA, "new", "lives in Rome", valid_from=hour(1)))),
                op.Log(ANA, (op.Change(node=old, action="supersede", at=hour(1)),)),
            )
        )
        then = op.QueryNodes(scope=ANA, visibility=op.Visibility(at=hour(5), as_of=START))
        now = op.QueryNodes(scope=ANA, visibility=op.Visibility(at=hour(5)))
        history = op.History(ANA, "old")
        assert [ids(each) for each in store.execute((then, now))] == [["old"], ["new"]]
        assert len(store.execute((history,))[0]) == 1
        store.execute((op.Erase(ANA, hour(6)),))
        assert store.execute((then, now, history)) == ((), (), ())
