"""Sketches: what a store keeps of its rows for ranking is what the rows themselves say, whatever happened to them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful import ops as op
from wakeful.records import MemoryLayer, MemoryNode, MemoryScope, Source
from wakeful.sketches import Sketch, sketch_of
from wakeful.stores.conformance.fixtures import ANA, EVERYTHING, LATER, MODEL, SHARED, hour, node, now_visible, vector
from wakeful.stores.protocol import Store

TERMS = ("lighthous", "yesterday", "ana", "nowher")
_scopes = count()

_texts = st.sampled_from(
    (
        "the lighthouse", "Lighthouse, lighthouse!", "Did you see the lighthouse?", "I saw it yesterday", "  the lighthouse ",
        "灯台 5月3日", "iPhone in May", "",
    )
)  # fmt: skip
_values = st.fixed_dictionaries(
    {
        "layer": st.sampled_from((MemoryLayer.SEMANTIC, MemoryLayer.EPISODIC, MemoryLayer.PROCEDURAL)),
        "label": st.sampled_from(("", "Ana, 1 May 2023", "refund")),
        "importance": st.sampled_from((1.0, 5.0, 7.5)),
        "at": st.integers(0, 5).map(hour),
        "status": st.sampled_from(("active", "draft")),
        "source": st.builds(
            Source,
            session=st.sampled_from((None, "s", "t")),
            speaker=st.sampled_from((None, "Ana")),
            by=st.sampled_from(("user", "extractor")),
            entries=st.sampled_from(((), ("first", "second"))),
        ),
    }
)


def plain(sketch: Sketch) -> Sketch:
    """A sketch without the row that the store may have had at hand."""
    return sketch._replace(node=None)


def rows(store: Store, owner: MemoryScope, ids: Iterable[str]) -> dict[str, MemoryNode]:
    """Rows by id."""
    return {each.id: each for each in store.execute((op.GetNodes(owner, tuple(ids)),))[0]}


class SketchPromises:
    """What a recall weighs."""

    @settings(max_examples=25, deadline=None, suppress_health_check=SHARED)
    @given(given=st.lists(st.tuples(_texts, _values), min_size=1, max_size=8), data=st.data())
    def test_candidates_are_what_the_searches_find_and_their_sketches_what_the_rows_say(
        self, store: Store, given: list[tuple[str, dict[str, object]]], data: st.DataObject
    ) -> None:
        owner = MemoryScope.of(("org", f"sketch{next(_scopes)}"))
        names = [f"{owner.tenant_id}-{place}" for place in range(len(given))]
        made = [
            MemoryNode.new(
                scope=owner, id=name, content=text, embedding=vector(1, place), embedding_model=MODEL, **values  # type: ignore[arg-type]  # as drawn
            )
            for place, (name, (text, values)) in enumerate(zip(names, given, strict=True))
        ]  # fmt: skip
        store.execute((op.PutNodes(owner, tuple(made)),))
        for _ in range(2):
            self._check(store, owner, names)
            name = data.draw(st.sampled_from(names))
            text, values = data.draw(st.tuples(_texts, _values))
            changes = {
                "content": text,
                "label": values["label"],
                "source": values["source"],
                "status": values["status"],
            }
            store.execute((op.UpdateNodes(scope=owner, changes={name: changes}), op.Touch(owner, (names[0],), LATER)))
        self._check(store, owner, names)

    def _check(self, store: Store, owner: MemoryScope, names: list[str]) -> None:
        seen = now_visible(at=LATER)
        words = op.SearchText(scope=owner, terms=TERMS, visibility=seen, limit=3)
        near = op.SearchVector(scope=owner, vector=vector(1), model=MODEL, visibility=seen, limit=2)
        both = op.FindCandidates(
            scope=owner, terms=TERMS, vector=vector(1), model=MODEL, visibility=seen, by_words=3, by_meaning=2
        )
        by_words, by_meaning, found = store.execute((words, near, both))
        held = rows(store, owner, names)
        assert {each.sketch.id: each.words for each in found if each.words is not None} == {
            hit.node.id: pytest.approx(hit.score, rel=1e-5) for hit in by_words
        }
        assert {each.sketch.id: each.cosine for each in found if each.cosine is not None} == {
            hit.node.id: pytest.approx(hit.score, abs=1e-6) for hit in by_meaning
        }
        for each in found:
            assert plain(each.sketch) == plain(sketch_of(held[each.sketch.id], TERMS))
        (beside,) = store.execute((op.Adjacent(scope=owner, ids=tuple(names), visibility=seen, terms=TERMS),))
        for anchor, _, sketch in beside:
            assert plain(sketch) == plain(sketch_of(held[sketch.id], TERMS))
            assert held[anchor].source.session == sketch.session
        assert len({pair[:2] for pair in beside}) == len(beside)

    def test_a_search_by_one_thing_alone_and_by_nothing(self, store: Store) -> None:
        row = node(ANA, "one", "the lighthouse", embedding=vector(1), embedding_model=MODEL)
        store.execute((op.PutNodes(ANA, (row,)),))

        def ask(terms: tuple[str, ...], query: bytes | None, limit: int = 5) -> list[tuple[bool, bool]]:
            search = op.FindCandidates(
                scope=ANA, terms=terms, vector=query, model=MODEL if query else "", visibility=EVERYTHING,
                by_words=limit, by_meaning=limit,
            )  # fmt: skip
            (found,) = store.execute((search,))
            return [(each.words is not None, each.cosine is not None) for each in found]

        assert ask(("lighthous",), None) == [(True, False)]
        assert ask((), vector(1)) == [(False, True)]
        assert ask(("nowher",), vector(1)) == [(False, True)]
        assert ask(("lighthous",), vector(1)) == [(True, True)]
        assert ask((), None) == []
        assert ask(("lighthous",), vector(1), 0) == []

    def test_a_long_session_is_walked_in_the_order_in_which_it_was_said(self, store: Store) -> None:
        order = [(place * 7) % 300 for place in range(300)]
        said = tuple(node(ANA, f"n{at}", at=hour(at), source=Source(session="s")) for at in order)
        store.execute((op.PutNodes(ANA, said[:150]), op.PutNodes(ANA, said[150:])))
        ask = op.Adjacent(scope=ANA, ids=("n0", "n128", "n299"), visibility=now_visible(at=LATER))
        found = [(anchor, distance, each.id) for anchor, distance, each in store.execute((ask,))[0]]
        assert sorted(found) == [("n0", 1, "n1"), ("n128", -1, "n127"), ("n128", 1, "n129"), ("n299", -1, "n298")]
