"""Search: filtered before the limit, any language, one direction of scores, no tenant starved by another."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful import ops as op
from wakeful.errors import MemoryContractError
from wakeful.records import MemoryScope
from wakeful.stores.conformance.fixtures import ACME, ANA, BOB, LATER, MODEL, SHARED, ids, node, now_visible, vector
from wakeful.stores.protocol import Store
from wakeful.terms import query_terms

LANGUAGES = (
    ("東京", "彼は東京都に住んでいる"),
    ("都", "彼は東京都に住んでいる"),
    ("서울", "그는 서울에 산다"),
    ("สวัสดี", "เขาพูดว่าสวัสดีครับ"),
    ("محمد", "اسمه مُحَمَّد"),
    ("ISTANBUL", "İstanbul'da yaşıyor"),
    ("strasse", "Die Straße ist lang"),
    ("cafe", "the cafe\u0301 closes"),
    ("abc", "ａｂｃ full width"),
    ("👧", "family 👩‍👩‍👧"),
    ("C++", "writes C++ daily"),
    ("node.js", "runs Node.js 20"),
    ("A10293", "contract CN-A10293"),
    ("2024-03-01", "due on 2024-03-01"),
    ("running", "she runs far"),
)


class SearchPromises:
    """What words and vectors find."""

    @pytest.mark.parametrize(("query", "text"), LANGUAGES)
    def test_words_of_any_language_find_their_text(self, store: Store, query: str, text: str) -> None:
        others = tuple(node(ANA, f"other{place}", other) for place, (_, other) in enumerate(LANGUAGES) if other != text)
        store.execute((op.PutNodes(ANA, (*others, node(ANA, "wanted", text))),))
        search = op.SearchText(scope=ANA, terms=tuple(query_terms(query)), visibility=now_visible(), limit=1)
        assert ids(store.execute((search,))[0]) == ["wanted"]

    def test_a_label_is_searched_like_the_text(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (node(ANA, "one", "something", label="lighthouse"),)),))
        search = op.SearchText(scope=ANA, terms=("lighthous",), visibility=now_visible())
        assert ids(store.execute((search,))[0]) == ["one"]

    def test_rare_words_repeated_words_and_short_texts_score_higher(self, store: Store) -> None:
        texts = {
            "common": "tea tea tea",
            "filler": "tea with milk",
            "rare": "tea in the lighthouse",
            "twice": "lighthouse near the lighthouse",
            "long": "lighthouse " + "and many other words that say nothing of it at all " * 4,
        }
        store.execute((op.PutNodes(ANA, tuple(node(ANA, name, text) for name, text in texts.items())),))
        search = op.SearchText(scope=ANA, terms=("lighthous", "tea"), visibility=now_visible())
        hits = store.execute((search,))[0]
        assert ids(hits)[0] == "rare"
        assert ids(hits).index("twice") < ids(hits).index("long")
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert all(score > 0 for score in scores)

    def test_no_terms_and_unknown_terms_find_nothing(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (node(ANA, "one"),)),))
        for terms in ((), ("nowhere",)):
            assert store.execute((op.SearchText(scope=ANA, terms=terms, visibility=now_visible()),)) == ((),)

    def test_a_small_tenant_is_not_starved_by_a_large_one_nor_shown_rows_of_it(self, store: Store) -> None:
        crowd = tuple(
            node(BOB, f"bob{n}", "lighthouse lighthouse", embedding=vector(1), embedding_model=MODEL)
            for n in range(300)
        )
        few = tuple(
            node(ANA, f"ana{n}", "a lighthouse among other things", embedding=vector(0.6, 0.8), embedding_model=MODEL)
            for n in range(3)
        )
        store.execute((op.PutNodes(BOB, crowd), op.PutNodes(ANA, few)))
        searches = (
            op.SearchText(scope=ANA, terms=("lighthous",), visibility=now_visible(), limit=3),
            op.SearchVector(scope=ANA, vector=vector(1), model=MODEL, visibility=now_visible(), limit=3),
        )
        for hits in store.execute(searches):
            assert ids(hits) == ["ana0", "ana1", "ana2"]

    def test_hidden_rows_take_no_place_among_the_hits(self, store: Store) -> None:
        hidden = tuple(
            node(ANA, f"draft{n}", "lighthouse", status="draft", embedding=vector(1), embedding_model=MODEL)
            for n in range(120)
        )
        shown = node(ANA, "shown", "lighthouse and more", embedding=vector(0, 1), embedding_model=MODEL)
        store.execute((op.PutNodes(ANA, (*hidden, shown)),))
        searches = (
            op.SearchText(scope=ANA, terms=("lighthous",), visibility=now_visible(), limit=1),
            op.SearchVector(scope=ANA, vector=vector(1), model=MODEL, visibility=now_visible(), limit=1),
        )
        for hits in store.execute(searches):
            assert ids(hits) == ["shown"]

    def test_scores_do_not_depend_on_rows_that_the_reader_does_not_see(self, store: Store) -> None:
        store.execute((op.PutNodes(ANA, (node(ANA, "one", "lighthouse tea"), node(ANA, "two", "tea"))),))
        search = op.SearchText(scope=ANA, terms=("lighthous", "tea"), visibility=now_visible())
        before = [(hit.node.id, pytest.approx(hit.score)) for hit in store.execute((search,))[0]]
        store.execute((op.PutNodes(BOB, tuple(node(BOB, f"b{n}", "lighthouse") for n in range(50))),))
        assert [(hit.node.id, hit.score) for hit in store.execute((search,))[0]] == before

    def test_what_was_just_written_changed_or_deleted_is_found_so(self, store: Store) -> None:
        search = op.SearchText(scope=ANA, terms=("lighthous",), visibility=now_visible())
        nearest = op.SearchVector(scope=ANA, vector=vector(1), model=MODEL, visibility=now_visible())
        for round_ in range(3):
            name = f"n{round_}"
            row = node(ANA, name, "lighthouse", embedding=vector(1), embedding_model=MODEL)
            store.execute((op.PutNodes(ANA, (row,)),))
            assert [ids(each) for each in store.execute((search, nearest))] == [[name], [name]]
            store.execute((op.UpdateNodes(scope=ANA, changes={name: {"status": "retracted"}}),))
            assert store.execute((search, nearest)) == ((), ())
            store.execute((op.UpdateNodes(scope=ANA, changes={name: {"status": "active", "content": "tower"}}),))
            assert store.execute((search, nearest)) == ((), ())
            store.execute((op.DeleteNodes(ANA, (name,)),))

    def test_a_search_sees_what_its_own_transaction_wrote_and_no_failed_one(self, store: Store) -> None:
        words = op.SearchText(scope=ANA, terms=("lighthous",), visibility=now_visible())
        near = op.SearchVector(scope=ANA, vector=vector(1), model=MODEL, visibility=now_visible())
        one, two = (node(ANA, f"n{n}", "lighthouse", embedding=vector(1), embedding_model=MODEL) for n in (1, 2))
        results = store.execute(
            (
                *(op.PutNodes(ANA, (one,)), words, near),
                *(op.UpdateNodes(scope=ANA, changes={"n1": {"content": "tower"}}), words, near),
                *(op.PutNodes(ANA, (two,)), words, near, op.DeleteNodes(ANA, ("n2",)), words, near),
            )
        )
        assert [ids(each) for each in results if not isinstance(each, int)] == [
            *(["n1"], ["n1"], [], [], ["n2"], ["n2"], [], []),
        ]
        with pytest.raises(MemoryContractError):
            store.execute((op.PutNodes(ANA, (two,)), words, near, op.PutNodes(ANA, (node(ACME, "x"),))))
        store.execute((op.PutNodes(ANA, (node(ANA, "other"),)),))
        assert store.execute((words, near)) == ((), ())

    def test_a_hit_shows_the_row_as_it_is_now(self, store: Store) -> None:
        words = op.SearchText(scope=ANA, terms=("lighthous",), visibility=now_visible(at=LATER))
        store.execute((op.PutNodes(ANA, (node(ANA, "one", "lighthouse", layer="prospective",
                                              properties={"event": "go"}),)), words))  # fmt: skip
        changes: tuple[op.MemoryOp, ...] = (
            op.Touch(ANA, ("one",), LATER),
            op.Touch(ANA, ("one",), LATER, "activation"),
            op.UpdateNodes(scope=ANA, changes={"one": {"importance": 9}}),
            op.AckDue(scope=ANA, id="one", occurrence="go"),
            op.PutNodes(ANA, (node(ANA, "one", "the lighthouse", at=LATER),)),
        )
        for change in changes:
            store.execute((change,))
            (hit,), held = store.execute((words, op.GetNodes(ANA, ("one",))))
            assert (hit.node,) == held

    def test_rows_of_ancestors_are_searched_with_the_own_ones(self, store: Store) -> None:
        store.execute(
            (
                op.PutNodes(ACME, (node(ACME, "theirs", "lighthouse", embedding=vector(1), embedding_model=MODEL),)),
                op.PutNodes(ANA, (node(ANA, "mine", "lighthouse", embedding=vector(1, 0.1), embedding_model=MODEL),)),
            )
        )
        searches = (
            op.SearchText(scope=ANA, terms=("lighthous",), visibility=now_visible()),
            op.SearchVector(scope=ANA, vector=vector(1), model=MODEL, visibility=now_visible()),
        )
        for hits in store.execute(searches):
            assert sorted(ids(hits)) == ["mine", "theirs"]

    def test_cosine_is_the_score_of_a_vector_search(self, store: Store) -> None:
        angles = {"same": (1, 0), "near": (0.8, 0.6), "across": (0, 1), "against": (-1, 0)}
        rows = tuple(node(ANA, name, embedding=vector(*at), embedding_model=MODEL) for name, at in angles.items())
        store.execute((op.PutNodes(ANA, rows),))
        search = op.SearchVector(scope=ANA, vector=vector(2, 0), model=MODEL, visibility=now_visible())
        hits = store.execute((search,))[0]
        assert ids(hits) == ["same", "near", "across", "against"]
        assert [hit.score for hit in hits] == pytest.approx([1, 0.8, 0, -1], abs=1e-3)
        assert all(hit.node.embedding is None for hit in hits)

    @pytest.mark.parametrize("values", [(0.0,), (math.nan,), (math.inf,)])
    def test_a_vector_without_a_direction_is_refused(self, store: Store, values: tuple[float, ...]) -> None:
        search = op.SearchVector(scope=ANA, vector=vector(*values), model=MODEL, visibility=now_visible())
        with pytest.raises(MemoryContractError):
            store.execute((search,))
        broken = node(ANA, "one", embedding=vector(*values), embedding_model=MODEL)
        with pytest.raises(MemoryContractError):
            store.execute((op.PutNodes(ANA, (broken,)),))

    @settings(max_examples=15, deadline=None, suppress_health_check=SHARED)
    @given(
        numbers=st.lists(st.integers(-3, 3), min_size=8, max_size=160),
        query=st.tuples(*[st.integers(-3, 3)] * 4).filter(any),
        limit=st.integers(1, 12),
    )
    def test_the_nearest_are_those_of_a_full_comparison(
        self, store: Store, numbers: list[int], query: tuple[int, ...], limit: int
    ) -> None:
        owner = MemoryScope.of(("org", f"o{hash((tuple(numbers), query, limit)) & 0xFFFFFFFF}"))
        points = [numbers[place : place + 4] for place in range(0, len(numbers) - 3, 4)]
        points = [point for point in points if any(point)]
        rows = tuple(
            node(owner, f"{owner.tenant_id}-{place}", embedding=_unit(point), embedding_model=MODEL)
            for place, point in enumerate(points)
        )
        search = op.SearchVector(
            scope=owner, vector=_unit(list(query)), model=MODEL, visibility=now_visible(at=LATER), limit=limit
        )
        hits = store.execute((op.PutNodes(owner, rows), search))[1]
        wanted = sorted((_cosine(point, query) for point in points), reverse=True)[:limit]
        assert [hit.score for hit in hits] == pytest.approx(wanted, abs=2e-3)


def _unit(values: list[int]) -> bytes:
    length = math.hypot(*values)
    return struct.pack("<4f", *(value / length for value in values))


def _cosine(one: list[int], other: tuple[int, ...]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / math.hypot(*one) / math.hypot(*other)
