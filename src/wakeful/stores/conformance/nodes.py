"""Nodes: the whole record comes back, writing again merges, visibility is one table, all or nothing."""

from __future__ import annotations

import struct
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful import ops as op
from wakeful.errors import EmbeddingMismatch, MemoryContractError, WakefulError
from wakeful.records import MemoryLayer, MemoryNode, Source
from wakeful.stores.conformance.fixtures import (
    ACME,
    ANA,
    BOB,
    EVERYTHING,
    LATER,
    MODEL,
    SHARED,
    START,
    Opener,
    hour,
    ids,
    node,
    now_visible,
    vector,
)
from wakeful.stores.protocol import EmbeddingSpace, Store

HOSTILE = (
    *("'; DROP TABLE node; --", '"', "`", "$1", "%s", "{}", "\\", "../../etc/passwd", "/abs", "select", "a\nb", "\t"),
    *("x" * 10_240, "NULL", "🧠", "\u202ertl", "é", "e\u0301", "\x01", "</memory>", "?1", ":scope", "@p", "#", "*"),
)
"""Text that breaks out of unbound queries, file names and markup."""


def whole(**values: Any) -> MemoryNode:
    """A node with a value in every field."""
    return node(
        ANA,
        "whole",
        "Ana moved to Rome.",
        **{
            "label": "city",
            "properties": {"a": [1, 2.5, None, True], "ключ": {"b": "é"}, "n": -0.5},
            "importance": 7.5,
            "status": "draft",
            "source": Source(
                session="s", turn="t", ref="D1:3", entries=("e1", "e2"), by="extractor", trust="low", speaker="Ana"
            ),
            "updated_at": hour(1),
            "accessed_at": hour(2),
            "valid_from": hour(-5),
            "valid_until": hour(50),
            "recorded_at": hour(3),
            "superseded_at": hour(4),
            "superseded_by": "other",
            "expires_at": hour(99),
            "access_count": 3,
            "activation_count": 4,
            "pinned": True,
            "embedding": vector(0.6, 0.8),
            "embedding_model": MODEL,
            **values,
        },
    )


VISIBILITY_TABLE: tuple[tuple[str, dict[str, Any], dict[str, Any], bool], ...] = (
    ("plain", {}, {}, True),
    ("draft", {"status": "draft"}, {}, False),
    ("draft asked for", {"status": "draft"}, {"statuses": ("draft",)}, True),
    ("retracted", {"status": "retracted"}, {}, False),
    ("other layer", {}, {"layers": (MemoryLayer.EPISODIC,)}, False),
    ("its layer among others", {}, {"layers": (MemoryLayer.EPISODIC, MemoryLayer.SEMANTIC)}, True),
    ("no layer", {}, {"layers": ()}, False),
    ("expires later", {"expires_at": hour(1)}, {}, True),
    ("expires now", {"expires_at": START}, {}, False),
    ("expired", {"expires_at": hour(-1)}, {}, False),
    ("expired asked for", {"expires_at": hour(-1)}, {"expired": True}, True),
    ("expired, as of before", {"expires_at": hour(-1)}, {"as_of": hour(-2)}, False),
    ("valid from now", {"valid_from": START}, {}, True),
    ("not yet valid", {"valid_from": hour(1)}, {}, False),
    ("not yet valid, as of then", {"valid_from": hour(1)}, {"as_of": hour(1)}, True),
    ("valid until now", {"valid_until": START}, {}, False),
    ("valid until now, as of before", {"valid_until": START}, {"as_of": hour(-1)}, True),
    ("superseded", {"superseded_at": hour(-1)}, {}, False),
    ("superseded asked for", {"superseded_at": hour(-1), "valid_until": hour(-3)}, {"superseded": True}, True),
    ("superseded, as of before", {"superseded_at": hour(-1)}, {"as_of": hour(-2)}, True),
    ("superseded, as of then", {"superseded_at": hour(-1)}, {"as_of": hour(-1)}, False),
    ("closed by what superseded it, as of inside", {"superseded_at": hour(-1), "valid_until": hour(-9)},
     {"as_of": hour(-10)}, True),
    ("closed by what superseded it, as of the gap", {"superseded_at": hour(-1), "valid_until": hour(-9)},
     {"as_of": hour(-5)}, False),
    ("superseded though valid for longer", {"superseded_at": hour(-1), "valid_until": hour(9)}, {}, False),
)  # fmt: skip


class NodePromises:
    """What is written comes back, and nothing else."""

    def test_every_field_of_a_node_comes_back(self, store: Store) -> None:
        given_node = whole()
        store.execute((op.PutNodes(ANA, (given_node,)),))
        (found,) = store.execute((op.QuerySubtree(scope=ANA),))[0]
        assert struct.unpack("<4f", found.embedding) == pytest.approx(struct.unpack("<4f", vector(0.6, 0.8)), abs=1e-3)
        assert replace(found, embedding=None) == replace(given_node, embedding=None)
        assert found.scope.levels == ANA.levels
        (bare,) = store.execute((op.GetNodes(ANA, ("whole",)),))[0]
        assert bare == replace(given_node, embedding=None)

    @settings(max_examples=25, deadline=None, suppress_health_check=SHARED)
    @given(text=st.one_of(st.text(max_size=60), st.sampled_from(HOSTILE)))
    def test_any_text_comes_back_as_it_was_or_is_refused(self, store: Store, text: str) -> None:
        clean = "\x00" not in text
        try:
            text.encode()
        except UnicodeEncodeError:
            clean = False
        for field in ("label", "content", "id"):
            try:
                values: dict[str, Any] = {field: text or "empty"}
                written = replace(node(ANA, "n", "text"), **values)
                store.execute((op.PutNodes(ANA, (written,)),))
            except MemoryContractError:
                assert not clean
                continue
            assert clean
            assert store.execute((op.GetNodes(ANA, (written.id,)),)) == ((written_back(store, written),),)

    @pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
    def test_hostile_text_is_data_in_every_place(self, store: Store, text: str) -> None:
        written = replace(
            whole(
                label=text,
                properties={text: text, "subject": text, "attribute": text},
                source=Source(session=text, ref=text),
                superseded_at=None,
            ),
            status="active",
        )
        store.execute((op.PutNodes(ANA, (node(ANA, "other"), written)), op.PutState(ANA, text, text)))
        queries = (
            op.QueryNodes(scope=ANA, visibility=EVERYTHING, label=text),
            op.QueryNodes(scope=ANA, visibility=EVERYTHING, session=text),
            op.QueryNodes(scope=ANA, visibility=EVERYTHING, properties={text: text}),
            op.QueryNodes(scope=ANA, visibility=EVERYTHING, properties={"subject": text, "attribute": text}),
        )
        for found in store.execute(queries):
            assert ids(found) == ["whole"]
        assert store.execute((op.GetState(ANA, text), op.GetNodes(ANA, (text,)))) == (text, ())
        for terms in ((text,), (text, text)):
            store.execute((op.SearchText(scope=ANA, terms=terms, visibility=EVERYTHING),))

    def test_a_claim_is_found_by_subject_and_attribute_and_nothing_that_looks_like_it_is(self, store: Store) -> None:
        said: dict[str, dict[str, Any]] = {
            "asked": {"subject": "ana b", "attribute": "city", "value": 1},
            "other words": {"subject": "b", "attribute": "city ana"},
            "joined": {"subject": "ana", "attribute": "b city"},
            "number": {"subject": 7, "attribute": "7"},
            "text": {"subject": "7", "attribute": "7"},
            "half": {"attribute": "city"},
            "empty": {"subject": "", "attribute": ""},
        }
        rows = tuple(node(ANA, name, properties=properties) for name, properties in said.items())
        other = node(BOB, "another's", properties=said["asked"])
        above = node(ACME, "above", properties=said["asked"], layer=MemoryLayer.EPISODIC)
        for each in (rows, (other,), (above,)):
            store.execute((op.PutNodes(each[0].scope, each),))

        def found(properties: dict[str, Any], **filters: Any) -> list[str]:
            query = op.QueryNodes(scope=ANA, visibility=EVERYTHING, properties=properties, order="id", **filters)
            return sorted(ids(store.execute((query,))[0]))

        asked = {"subject": "ana b", "attribute": "city"}
        assert found(asked) == ["above", "asked"]
        assert found(asked, owned_only=True) == ["asked"]
        assert found({**asked, "value": 2}) == []
        assert found({**asked, "value": 1}, owned_only=True) == ["asked"]
        assert found({"subject": 7, "attribute": "7"}) == ["number"]
        assert found({"subject": "7", "attribute": "7"}) == ["text"]
        assert found({"subject": "", "attribute": ""}) == ["empty"]
        semantic = replace(EVERYTHING, layers=(MemoryLayer.SEMANTIC,))
        query = op.QueryNodes(scope=ANA, visibility=semantic, properties=asked)
        assert ids(store.execute((query,))[0]) == ["asked"]

    @pytest.mark.parametrize("layers", [(layer,) for layer in MemoryLayer] + [tuple(MemoryLayer)[:2], ()])
    def test_a_query_of_layers_gives_the_rows_of_these_alone(
        self, store: Store, layers: tuple[MemoryLayer, ...]
    ) -> None:
        rows = tuple(node(ANA, f"{layer}-{n}", layer=layer, label="same") for layer in MemoryLayer for n in range(3))
        store.execute((op.PutNodes(ANA, rows),))
        wanted = sorted(row.id for row in rows if row.layer in layers)
        for filters in ({}, {"order": "importance"}, {"label": "same"}, {"updated_since": START}):
            query = op.QueryNodes(scope=ANA, visibility=replace(EVERYTHING, layers=layers), **filters)
            assert sorted(ids(store.execute((query,))[0])) == wanted, filters

    @pytest.mark.parametrize("properties", [{"a": "\x00"}, {"a": "\ud800"}, {"a": object()}, {"a": float("nan")}])
    def test_properties_that_no_store_can_keep_are_refused(self, store: Store, properties: dict[str, Any]) -> None:
        with pytest.raises(MemoryContractError):
            store.execute((op.PutNodes(ANA, (node(ANA, "one", properties=properties),)),))
        assert store.execute((op.GetNodes(ANA, ("one",)),)) == ((),)

    @pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"], ids=["nul", "surrogate"])
    def test_a_name_that_no_store_can_keep_is_refused_by_reads_and_writes(self, store: Store, text: str) -> None:
        seen, anna = EVERYTHING, ANA
        for each in (
            op.GetNodes(anna, (text,)),
            op.GetEdges(anna, (text,)),
            op.QueryNodes(scope=anna, visibility=seen, session=text),
            op.QueryNodes(scope=anna, visibility=seen, properties={text: 1}),
            op.Adjacent(scope=anna, ids=(text,), visibility=seen),
            op.UpdateNodes(scope=anna, changes={text: {"importance": 2.0}}),
            op.Touch(anna, (text,), START),
            op.DeleteNodes(anna, (text,)),
            op.DeleteEdges(anna, (text,)),
            op.History(anna, text),
            op.ClaimDue(scope=anna, at=START, event=text),
            op.AckDue(scope=anna, id=text, occurrence="x"),
            op.AcquireLease(scope=anna, owner=text, at=START, seconds=1),
            op.GetState(anna, text),
            op.PutState(anna, text, 1),
            op.ListScopes(anna, after=text),
        ):
            with pytest.raises(MemoryContractError, match=r"NUL|surrogate"):
                store.execute((each,))
        assert store.execute((op.SearchText(scope=anna, terms=(text,), visibility=seen, limit=3),)) == ((),)

    def test_a_backslash_before_u0000_is_no_nul(self, store: Store) -> None:
        properties = {"code": r"\u0000", "more": r"\\u0000"}
        store.execute((op.PutNodes(ANA, (node(ANA, "n", properties=properties),)),))
        assert store.execute((op.GetNodes(ANA, ("n",)),))[0][0].properties == properties

    def test_times_keep_their_instant_whatever_their_zone(self, store: Store) -> None:
        offsets = (14, -11, 0, 5.5)
        moments = [datetime(2026, 2, 28, 23, 30, tzinfo=timezone(timedelta(hours=offset))) for offset in offsets]
        nodes = tuple(node(ANA, f"n{place}", at=moment) for place, moment in enumerate(moments))
        store.execute((op.PutNodes(ANA, nodes),))
        query = op.QueryNodes(scope=ANA, visibility=EVERYTHING, order="asserted", descending=False)
        found = store.execute((query,))[0]
        assert [each.asserted_at for each in found] == sorted(moments)
        assert all(each.asserted_at.tzinfo is UTC for each in found)

    def test_a_store_restamps_nothing_and_stamps_when_it_first_knew(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (node(ANA, "one"),)),))
        (found,) = store.execute((op.GetNodes(ANA, ("one",)),))[0]
        assert (found.asserted_at, found.updated_at) == (START, START)
        assert found.recorded_at is not None
        store.execute((op.PutNodes(ANA, (node(ANA, "one", at=hour(1)),)),))
        (again,) = store.execute((op.GetNodes(ANA, ("one",)),))[0]
        assert again.recorded_at == found.recorded_at

    def test_writing_again_merges_and_never_resets(self, store: Store) -> None:
        first = whole(access_count=3, recorded_at=hour(3))
        second = node(ANA, "whole", "Ana moved to Oslo.", at=hour(20), label="home", importance=2)
        store.execute((op.PutNodes(ANA, (first,)), op.PutNodes(ANA, (second,))))
        (found,) = store.execute((op.QuerySubtree(scope=ANA),))[0]
        assert (found.content, found.label, found.importance, found.status) == (
            *(second.content, "home"),
            *(2, "active"),
        )
        assert (found.asserted_at, found.updated_at, found.recorded_at) == (START, hour(20), hour(3))
        assert (found.access_count, found.activation_count, found.accessed_at) == (3, 4, hour(2))
        assert (found.valid_until, found.superseded_at, found.properties) == (None, None, {})
        store.execute((op.PutNodes(ANA, (node(ANA, "whole", "Ana moved to Oslo.", at=hour(2), label="home"),)),))
        (late,) = store.execute((op.GetNodes(ANA, ("whole",)),))[0]
        assert late.updated_at == hour(20)

    def test_a_changed_text_never_keeps_the_vector_of_the_old_one(self, store: Store) -> None:
        embedded = node(ANA, "one", "lives in Oslo", embedding=vector(1), embedding_model=MODEL)
        same = node(ANA, "one", "lives in Oslo", at=hour(1), importance=9)
        moved = node(ANA, "one", "lives in Rome", at=hour(2))
        for written, kept in ((embedded, True), (same, True), (moved, False)):
            store.execute((op.PutNodes(ANA, (written,)),))
            (found,) = store.execute((op.QuerySubtree(scope=ANA),))[0]
            assert (found.embedding is not None, found.embedding_model) == (kept, MODEL if kept else None)
        store.execute((op.PutNodes(ANA, (embedded,)), op.UpdateNodes(scope=ANA, changes={"one": {"content": "x"}})))
        (found,) = store.execute((op.QuerySubtree(scope=ANA),))[0]
        assert found.embedding is None
        search = op.SearchVector(scope=ANA, vector=vector(1), model=MODEL, visibility=now_visible())
        words = op.SearchText(scope=ANA, terms=("oslo",), visibility=now_visible())
        assert store.execute((search, words)) == ((), ())

    @pytest.mark.parametrize(
        ("case", "fields", "reader", "shown"), VISIBILITY_TABLE, ids=[r[0] for r in VISIBILITY_TABLE]
    )
    def test_one_predicate_hides_a_row_on_every_path(
        self, store: Store, case: str, fields: dict[str, Any], reader: dict[str, Any], shown: bool
    ) -> None:
        said = Source(session="s")
        row = node(ANA, "row", "lighthouse", source=said, embedding=vector(1), embedding_model=MODEL, **fields)
        anchor = node(ANA, "anchor", "anchor", source=said, at=hour(-1))
        store.execute((op.PutNodes(ANA, (anchor, row)),))
        visibility = now_visible(**reader)
        paths: tuple[op.MemoryOp, ...] = (
            op.GetNodes(ANA, ("row",), visibility),
            op.QueryNodes(scope=ANA, visibility=visibility, session="s", label="", updated_since=START),
            op.QuerySubtree(scope=ANA, visibility=visibility, updated_since=START),
            op.SearchText(scope=ANA, terms=("lighthous",), visibility=visibility, limit=1),
            op.SearchVector(scope=ANA, vector=vector(1), model=MODEL, visibility=visibility, limit=1),
        )
        assert visibility.admits(row) is shown
        for path, found in zip(paths, store.execute(paths), strict=True):
            assert ids(found) == (["row"] if shown else []), (case, path)
        both = op.FindCandidates(
            scope=ANA,
            terms=("lighthous",),
            vector=vector(1),
            model=MODEL,
            visibility=visibility,
            by_words=1,
            by_meaning=1,
        )
        beside, candidates = store.execute((op.Adjacent(scope=ANA, ids=("anchor",), visibility=visibility), both))
        assert [(distance, each.id) for _, distance, each in beside] == ([(1, "row")] if shown else [])
        assert [each.sketch.id for each in candidates] == (["row"] if shown else [])

    def test_compare_and_set_leaves_a_row_alone_that_moved_on(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (node(ANA, "one", at=hour(1)), node(ANA, "two", at=hour(1)))),))
        stale = op.PutNodes(
            ANA,
            (node(ANA, "one", "new", at=hour(2)), node(ANA, "two", "new", at=hour(2)), node(ANA, "gone", at=hour(2))),
            expected={"one": START, "two": hour(1), "gone": START},
        )
        update = op.UpdateNodes(
            scope=ANA,
            changes={"one": {"importance": 9}, "two": {"importance": 9}},
            expected={"one": hour(1), "two": hour(1)},
        )
        assert store.execute((stale, update)) == (1, 1)
        found = store.execute((op.GetNodes(ANA, ("one", "two", "gone")),))[0]
        assert [(each.content, each.importance) for each in found] == [("one", 9), ("new", 5)]

    def test_an_update_changes_the_named_fields_and_no_time_by_itself(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (whole(),)),))
        changes: dict[str, dict[str, Any]] = {
            "whole": {"importance": 3, "status": "active", "superseded_at": None},
            "missing": {"importance": 1},
        }
        assert store.execute((op.UpdateNodes(scope=ANA, changes=changes),)) == (1,)
        expected = replace(whole(), importance=3, status="active", superseded_at=None, embedding=None)
        assert store.execute((op.GetNodes(ANA, ("whole",)),)) == ((expected,),)

    @pytest.mark.parametrize("name", ["id", "scope", "recorded_at", "colour"])
    def test_an_update_of_a_fixed_or_unknown_field_is_refused(self, store: Store, name: str) -> None:
        store.execute((op.PutNodes(ANA, (whole(),)),))
        with pytest.raises(MemoryContractError, match=name):
            store.execute((op.UpdateNodes(scope=ANA, changes={"whole": {name: "x"}}),))

    def test_touching_counts_use_and_moves_nothing_else(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (whole(),)),))
        touches = (
            op.Touch(ANA, ("whole", "whole", "missing"), hour(9)),
            op.Touch(ANA, ("whole",), hour(8), "activation"),
        )
        assert store.execute(touches) == (1, 1)
        (found,) = store.execute((op.GetNodes(ANA, ("whole",)),))[0]
        expected = replace(whole(), access_count=4, activation_count=5, accessed_at=hour(9), embedding=None)
        assert found == expected

    def test_a_failed_operation_undoes_all_before_it(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (node(ANA, "kept", "before"),)),))
        broken = (
            op.PutNodes(ANA, (node(ANA, "kept", "after"), node(ANA, "added"))),
            op.PutState(ANA, "key", 1),
            op.DeleteNodes(ANA, ("kept",)),
            op.AcquireLease(scope=ANA, owner="w", at=START, seconds=60),
            op.PutNodes(ANA, (node(ANA, "elsewhere"), replace(node(ANA, "x"), scope=ANA.child("session", "s")))),
        )
        with pytest.raises(MemoryContractError):
            store.execute(broken)
        (nodes,) = store.execute((op.QueryNodes(scope=ANA, visibility=EVERYTHING),))
        assert [(each.id, each.content) for each in nodes] == [("kept", "before")]
        search = op.SearchText(scope=ANA, terms=("befor",), visibility=EVERYTHING)
        state, hits, lease = store.execute(
            (op.GetState(ANA, "key"), search, op.AcquireLease(scope=ANA, owner="v", at=START, seconds=1))
        )
        assert (state, ids(hits)) == (None, ["kept"])
        assert lease is not None

    def test_queries_filter_before_the_limit_and_order_by_what_is_asked(self, store: Store) -> None:
        nodes = tuple(
            node(
                *(ANA, f"n{place}"),
                at=hour(place),
                importance=1 + (place * 7) % 10,
                label=f"l{place % 2}",
                properties={"k": place % 3, "flag": place % 2 == 0, "none": None},
            )
            for place in range(9)
        )
        store.execute((op.PutNodes(ANA, nodes),))

        def ask(**values: Any) -> list[str]:
            query = op.QueryNodes(**{"scope": ANA, "visibility": EVERYTHING, **values})
            return ids(store.execute((query,))[0])

        assert ask(limit=2) == ["n8", "n7"]
        assert ask(limit=2, descending=False) == ["n0", "n1"]
        assert ask(updated_since=hour(7)) == ["n8", "n7"]
        assert ask(label="l1", limit=2) == ["n7", "n5"]
        assert ask(properties={"k": 2}, limit=2) == ["n8", "n5"]
        assert ask(properties={"k": 1, "flag": True}) == ["n4"]
        assert ask(properties={"flag": 1}) == []
        assert ask(properties={"none": None, "k": 0}, limit=1) == ["n6"]
        assert ask(properties={"missing": None}) == []
        assert ask(order="importance", limit=3) == ["n7", "n4", "n1"]
        assert ask(order="asserted", descending=False, limit=1) == ["n0"]
        assert ask(order="id", descending=False, after="n4", limit=2) == ["n5", "n6"]
        assert ask(order="id", after="n4", limit=2) == ["n3", "n2"]
        assert len(ask(limit=None)) == 9
        assert ask(limit=0) == []

    def test_queries_range_over_last_use_expiry_and_supersession(self, store: Store) -> None:
        nodes = (
            node(ANA, "fresh", at=hour(8)),
            node(ANA, "idle", at=hour(1)),
            node(ANA, "used", at=hour(1), accessed_at=hour(7)),
            node(ANA, "expires", at=hour(5), expires_at=hour(6)),
            node(ANA, "replaced", at=hour(5), superseded_at=hour(6)),
        )
        store.execute((op.PutNodes(ANA, nodes),))

        def ask(**values: Any) -> set[str]:
            query = op.QueryNodes(**{"scope": ANA, "visibility": EVERYTHING, **values})
            return set(ids(store.execute((query,))[0]))

        assert ask(idle_before=hour(5)) == {"idle"}
        assert ask(idle_since=hour(1), idle_before=hour(1)) == set()
        assert ask(idle_since=hour(7)) == {"fresh", "used"}
        assert ask(accessed_since=hour(7)) == {"used"}
        assert ask(accessed_since=hour(7.5)) == set()
        assert ask(expires_before=hour(6)) == {"expires"}
        assert ask(expires_before=hour(5.9)) == set()
        assert ask(superseded_before=hour(6.1)) == {"replaced"}
        assert ask(superseded_before=hour(6)) == set()

    def test_vectors_come_with_nodes_only_when_asked_for(self, store: Store) -> None:
        held = node(ANA, "held", embedding=vector(1.0), embedding_model=MODEL)
        store.execute((op.PutNodes(ANA, (held,)),))
        plain, whole_node = store.execute((op.GetNodes(ANA, ("held",)), op.GetNodes(ANA, ("held",), embeddings=True)))
        assert plain[0].embedding is None
        assert whole_node[0].embedding is not None
        assert whole_node[0].embedding_model == MODEL

    def test_the_subtree_is_read_page_by_page_in_the_order_of_writing(self, store: Store) -> None:
        first, second = ANA.child("session", "a"), ANA.child("session", "b")
        names = ["z", "m", "a", "q", "c"]
        for owner in (second, ANA, first):
            store.execute((op.PutNodes(owner, tuple(node(owner, f"{owner.session}-{name}") for name in names)),))
        expected = [f"{owner.session}-{name}" for owner in (ANA, first, second) for name in names]
        found: list[str] = []
        while True:
            (page,) = store.execute((op.QuerySubtree(scope=ANA, limit=4, after=found[-1] if found else None),))
            if not page:
                break
            found += ids(page)
        assert found == expected

    def test_neighbours_are_those_said_before_and_after_in_the_same_session(self, store: Store) -> None:
        said, other = Source(session="s"), Source(session="t")
        turns = [node(ANA, f"turn{n}", source=said, layer="episodic", at=START) for n in (3, 1, 2)]
        later = [node(ANA, f"later{n}", source=said, layer="episodic", at=hour(n)) for n in (2, 1)]
        apart = [
            node(ANA, "fact", source=said, at=START),
            node(ANA, "elsewhere", source=other, layer="episodic", at=START),
            node(ANA, "nowhere", layer="episodic", at=START),
            node(ANA, "hidden", source=said, layer="episodic", at=START, status="retracted"),
        ]
        store.execute((op.PutNodes(ANA, (turns[0], *apart, *turns[1:], *later)),))
        ask = op.Adjacent(
            scope=ANA, ids=("turn2", "nowhere", "missing", "turn3"), visibility=now_visible(at=LATER), distance=2
        )
        found = [(anchor, distance, each.id) for anchor, distance, each in store.execute((ask,))[0]]
        assert sorted(found) == [
            *(("turn2", -2, "turn3"), ("turn2", -1, "turn1"), ("turn2", 1, "later1"), ("turn2", 2, "later2")),
            *(("turn3", 1, "turn1"), ("turn3", 2, "turn2")),
        ]

    def test_deleting_a_node_takes_all_that_hangs_on_it(self, store: Store) -> None:
        one = node(ANA, "one", "lighthouse", embedding=vector(1), embedding_model=MODEL)
        store.execute((op.PutNodes(ANA, (one,)), op.Log(ANA, (op.Change(node=one, action="add", at=START),))))
        assert store.execute((op.DeleteNodes(ANA, ("one", "one", "missing")),)) == (1,)
        reads = (
            op.GetNodes(ANA, ("one",)),
            op.History(ANA, "one"),
            op.SearchText(scope=ANA, terms=("lighthous",), visibility=EVERYTHING),
            op.SearchVector(scope=ANA, vector=vector(1), model=MODEL, visibility=EVERYTHING),
        )
        assert store.execute(reads) == ((), (), (), ())
        store.execute((op.PutNodes(ANA, (node(ANA, "one", "tower"),)),))
        assert store.execute(reads)[1:] == ((), (), ())

    def test_history_keeps_every_version_in_order(self, store: Store) -> None:
        versions = [replace(whole(), content=f"version {n}", embedding=None, embedding_model=None) for n in range(3)]
        changes = tuple(
            op.Change(node=each, action="revise", reason=f"r{place}", at=hour(place))
            for place, each in enumerate(versions)
        )
        store.execute((op.PutNodes(ANA, (versions[-1],)), op.Log(ANA, changes[:2]), op.Log(ANA, changes[2:])))
        assert store.execute((op.History(ANA, "whole"),)) == (changes,)

    def test_a_vector_of_another_model_or_size_is_refused_naming_both(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (node(ANA, "one", embedding=vector(1), embedding_model=MODEL),)),))
        assert store.embedding == EmbeddingSpace(MODEL, 4)
        others = {"other/model": vector(1), MODEL: vector(1) + b"\0\0\0\0"}
        for model, other in others.items():
            with pytest.raises(EmbeddingMismatch, match=f"(?s){MODEL}.*{model}.*reembed"):
                store.execute((op.PutNodes(ANA, (node(ANA, "two", embedding=other, embedding_model=model),)),))
        assert store.execute((op.GetNodes(ANA, ("two",)),)) == ((),)

    def test_a_store_moves_to_another_model_row_by_row_while_words_go_on(self, store: Store) -> None:
        rows = tuple(node(ANA, f"n{n}", f"lighthouse {n}", embedding=vector(1), embedding_model=MODEL) for n in (1, 2))
        store.execute((op.PutNodes(ANA, rows), op.SetEmbedding("other", 2)))
        new = struct.pack("<2f", 0, 1)
        update = op.UpdateNodes(scope=ANA, changes={"n1": {"embedding": new, "embedding_model": "other"}})
        stale = op.QuerySubtree(scope=ANA, stale_for="other")
        search = op.SearchVector(scope=ANA, vector=new, model="other", visibility=now_visible())
        old = op.SearchVector(scope=ANA, vector=vector(1), model=MODEL, visibility=now_visible())
        words = op.SearchText(scope=ANA, terms=("lighthous",), visibility=now_visible())
        assert [sorted(ids(each)) for each in store.execute((stale, search, words))] == [["n1", "n2"], [], ["n1", "n2"]]
        found = store.execute((update, stale, search, old, words))
        assert [sorted(ids(each)) for each in found[1:]] == [["n2"], ["n1"], ["n2"], ["n1", "n2"]]
        assert store.embedding == EmbeddingSpace("other", 2)

    def test_opening_with_another_embedder_is_refused_until_adopted(self, open_store: Opener) -> None:
        if not self.persistent:  # type: ignore[attr-defined]  # from Fixtures
            pytest.skip("nothing is there when it is opened again")
        first = open_store(embedding=EmbeddingSpace(MODEL, 4))
        first.execute((op.PutNodes(ANA, (node(ANA, "one", embedding=vector(1), embedding_model=MODEL),)),))
        first.close()
        for other in (EmbeddingSpace("other", 4), EmbeddingSpace(MODEL, 8)):
            with pytest.raises(EmbeddingMismatch, match="reembed"):
                open_store(embedding=other)
        again = open_store()
        assert again.embedding == EmbeddingSpace(MODEL, 4)
        again.close()
        adopted = open_store(embedding=EmbeddingSpace("other", 8), adopt=True)
        assert adopted.embedding == EmbeddingSpace("other", 8)
        assert ids(adopted.execute((op.QuerySubtree(scope=ANA, stale_for="other"),))[0]) == ["one"]
        adopted.close()

    def test_what_was_acknowledged_is_there_when_opened_again(self, open_store: Opener) -> None:
        if not self.persistent:  # type: ignore[attr-defined]  # from Fixtures
            pytest.skip("nothing is there when it is opened again")
        first = open_store()
        first.execute((op.PutNodes(ANA, (whole(),)), op.PutState(ANA, "k", {"a": 1})))
        before = first.execute((op.QuerySubtree(scope=ANA),))
        first.close()
        again = open_store()
        assert again.execute((op.QuerySubtree(scope=ANA),)) == before
        assert again.execute((op.GetState(ANA, "k"),)) == ({"a": 1},)
        again.close()

    def test_a_closed_store_says_so(self, open_store: Opener) -> None:
        closed = open_store()
        closed.close()
        with pytest.raises(WakefulError, match="closed"):
            closed.execute((op.GetState(ANA, "k"),))

    def test_what_is_no_operation_is_refused(self, store: Store) -> None:
        with pytest.raises(MemoryContractError):
            store.execute(("DROP TABLE",))  # type: ignore[arg-type]


def written_back(store: Store, written: MemoryNode) -> MemoryNode:
    """The node as the store gives it, but with what the store alone may set taken from the store."""
    (found,) = store.execute((op.GetNodes(ANA, (written.id,)),))[0]
    return replace(
        written,
        recorded_at=found.recorded_at,
        asserted_at=found.asserted_at,
        updated_at=found.updated_at,
        access_count=found.access_count,
    )
