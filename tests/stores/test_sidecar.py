"""Search in memory finds what a plain reading of the same rows finds."""

from __future__ import annotations

import math
from collections import Counter

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.records import MemoryScope
from wakeful.stores import bm25
from wakeful.stores.sidecar import Segment, Wanted
from wakeful.stores.sidecar.best import best_above_zero
from wakeful.stores.sidecar.search import by_words, numbered
from wakeful.stores.sidecar.vectors import Vectors
from wakeful.stores.vectors import dots

EVERY = Wanted(kinds=frozenset(range(20)), at=0, as_of=None, superseded=True, expired=True)

texts = st.lists(st.sampled_from(["oslo", "boat", "tea", "sold", "blue"]), min_size=1, max_size=6).map(" ".join)


def row(number: int, text: str) -> tuple[object, ...]:
    outline = (f"n{number}", None, None, 0, 5.0, 0, "", text, None)
    return (number, 1, 0, None, None, None, None, text, None, *outline)


@given(
    scores=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]) | st.floats(0, 9), min_size=1, max_size=400),
    limit=st.integers(1, 40),
)
def test_the_best_are_those_that_sorting_gives(scores: list[float], limit: int) -> None:
    slots, kept = best_above_zero(numpy, numpy.array(scores * 20), limit)
    best = sorted((score for score in scores * 20 if score > 0), reverse=True)[:limit]
    assert sorted(kept.tolist(), reverse=True)[:limit] == best
    assert all((scores * 20)[slot] == score for slot, score in zip(slots.tolist(), kept.tolist(), strict=True))


@settings(max_examples=40)
@given(batches=st.lists(st.lists(texts, min_size=1, max_size=300), min_size=1, max_size=4), data=st.data())
def test_words_are_scored_as_by_a_plain_reading_whatever_was_added_and_replaced(
    batches: list[list[str]], data: st.DataObject
) -> None:
    segment, held = Segment(MemoryScope.parse("org:acme"), ""), {}
    for batch in batches:
        fresh = dict(enumerate(batch, len(held)))
        segment.add([row(number, text) for number, text in fresh.items()])
        held |= fresh
        changed = data.draw(st.dictionaries(st.sampled_from(sorted(held)), texts, max_size=5))
        segment.replace([row(number, text) for number, text in changed.items()])
        held |= changed
    terms = ("oslo", "tea", "unknown")
    found = dict(numbered(by_words([segment], terms, EVERY, len(held))))
    bags = {number: Counter(text.split()) for number, text in held.items()}
    mean = sum(bag.total() for bag in bags.values()) / len(bags)
    wanted = {}
    for number, bag in bags.items():
        score = sum(
            bm25.idf(len(bags), sum(term in other for other in bags.values()))
            * bm25.saturation(bag[term], bag.total(), mean)
            for term in terms
            if bag[term]
        )
        if score:
            wanted[number] = score
    assert found.keys() == wanted.keys()
    assert all(math.isclose(found[number], score, rel_tol=1e-5) for number, score in wanted.items())


@settings(max_examples=20)
@given(rows=st.integers(1, 1200), seed=st.integers(0, 9))
def test_products_by_blocks_are_the_products(rows: int, seed: int) -> None:
    rng = numpy.random.default_rng(seed)
    matrix, query = rng.standard_normal((rows, 16)).astype("f2"), rng.standard_normal(16).astype("f4")
    assert numpy.allclose(dots(matrix, query), matrix.astype("f4") @ query, rtol=1e-4, atol=1e-4)


def test_many_vectors_are_found_with_their_whole_cosine() -> None:
    rng = numpy.random.default_rng(1)
    matrix = rng.standard_normal((6_000, 64)).astype("f4")
    matrix /= numpy.linalg.norm(matrix, axis=1)[:, None]
    held = Vectors(numpy, 64, len(matrix))
    halves = matrix.astype("f2")
    held.add(range(len(matrix)), [each.tobytes() for each in halves])
    shown = numpy.ones(len(matrix), "?")
    shown[7] = False
    slots, cosines = held.nearest(matrix[5], shown, 10)
    assert slots[numpy.argmax(cosines)] == 5
    assert 7 not in held.nearest(matrix[7], shown, 10)[0]
    assert numpy.allclose(cosines, halves[slots].astype("f4") @ matrix[5], atol=1e-6)
