"""The searches over the segments of some owners: by words, by vector, and for the candidates of a recall."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from wakeful.ops import Found
from wakeful.sketches import Sketch
from wakeful.stores import bm25
from wakeful.stores.sidecar.best import best_above_zero
from wakeful.stores.sidecar.segment import Segment, Wanted


class Hits(NamedTuple):
    """What a search found in one segment, in no order; a few more than its limit on ties."""

    segment: Segment
    slots: Any
    scores: Any


def by_words(segments: Sequence[Segment], terms: Iterable[str], wanted: Wanted, limit: int) -> list[Hits]:
    """Rows that hold any of the terms, with their BM25 among all segments."""
    rows = sum(segment.alive for segment in segments)
    mean = (sum(segment.terms for segment in segments) / rows if rows else 0.0) or 1.0
    held = [[segment.postings(term) for segment in segments] for term in dict.fromkeys(terms)]
    weights = [bm25.idf(rows, sum(len(slots) for slots, _, _ in each)) * (bm25.K1 + 1) for each in held]
    found = []
    for place, segment in enumerate(segments):
        np = segment.np
        parts, shares = [], []
        for each, weight in zip(held, weights, strict=True):
            slots, counts, lengths = each[place]
            if len(slots):
                share = counts.astype("f4")
                norm = lengths * np.float32(bm25.K1 * bm25.B / mean)
                norm += np.float32(bm25.K1 * (1 - bm25.B))
                norm += share
                share /= norm
                share *= np.float32(weight)
                parts.append(slots)
                shares.append(share)
        if not parts:
            continue
        scores = np.bincount(np.concatenate(parts), np.concatenate(shares), segment.slots)
        shown = segment.mask(wanted)
        if not shown.all():
            scores *= shown
        found.append(Hits(segment, *best_above_zero(np, scores, limit)))
    return found


def by_vector(segments: Sequence[Segment], query: bytes, wanted: Wanted, limit: int) -> list[Hits]:
    """Rows nearest to a query (float32 bytes, unit length), with their cosine."""
    import numpy

    vector = numpy.frombuffer(query, "<f4")
    return [
        Hits(segment, *segment.vectors.nearest(vector, segment.mask(wanted), limit))
        for segment in segments
        if segment.vectors is not None and segment.vectors.width == len(vector)
    ]


def numbered(found: Iterable[Hits]) -> list[tuple[int, float]]:
    """Row numbers and scores of what was found."""
    return [
        pair
        for segment, slots, scores in found
        for pair in zip(segment.outlines.rows[slots].tolist(), scores.tolist(), strict=True)
    ]


def candidates(
    words: Sequence[Hits], most_words: int, near: Sequence[Hits], most_near: int, terms: Sequence[str]
) -> list[Found]:
    """Put together what was found by words and by vector, up to so many of each; equal scores go by id."""
    sketches: dict[int, dict[int, Sketch]] = {}
    for segment in {id(hits.segment): hits.segment for hits in (*words, *near)}.values():
        slots = list({slot for hits in (*words, *near) if hits.segment is segment for slot in hits.slots.tolist()})
        sketches[id(segment)] = dict(zip(slots, segment.sketches(slots, terms), strict=True))

    def best(found: Sequence[Hits], limit: int) -> dict[str, tuple[float, Sketch]]:
        scored = [
            (score, sketches[id(segment)][slot])
            for segment, slots, scores in found
            for slot, score in zip(slots.tolist(), scores.tolist(), strict=True)
        ]
        if len(scored) > limit:
            scored = sorted(scored, key=lambda item: (-item[0], item[1].id))[:limit]
        return {item[1].id: item for item in scored}

    by_word, by_near = best(words, most_words), best(near, most_near)
    out = [
        Found(sketch, score, by_near[id_][0] if id_ in by_near else None) for id_, (score, sketch) in by_word.items()
    ]
    out += [Found(sketch, None, score) for id_, (score, sketch) in by_near.items() if id_ not in by_word]
    return out
