"""Search by words and by meaning: in memory when numpy is there and the owner's rows fit, else in the file.

Both ways end in ``_hits``, where the one predicate of visibility has the last word on every row.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from wakeful import ops as op
from wakeful.records import MemoryNode, MemoryScope
from wakeful.sketches import Sketch
from wakeful.stores import bm25, candidates
from wakeful.stores.sqlite.rows import LAYER_NUMBER, STATUS_NUMBER, micros, visibility_parameters
from wakeful.stores.sqlite.transaction import SeenScope, Transaction
from wakeful.stores.vectors import half_cosines, unit

ROW_BYTES = 500
"""What a row takes in memory beside its vector, about."""
VECTOR_BYTES = 3.2
"""What a dimension takes: float16, a byte, and its share of the code."""
CANDIDATES = 400
"""Rows that the full-text index gives to be scored."""
TIES = 64
"""Rows read beyond the limit, so that equal scores can be put in id order."""
BLOCK = 4096
"""Rows of one step of a scan."""


def search_text(tx: Transaction, each: op.SearchText) -> tuple[op.TextHit, ...]:
    """Rows that hold any of the terms, best first."""
    terms = _index_terms(each.terms)
    if not terms or each.limit < 1:
        return ()
    tx.mark()
    seen = tx.seen_scopes(each.scope)
    segments = _segments(tx, seen)
    if segments is not None:
        from wakeful.stores.sidecar import search

        with together(segments):
            found = search.numbered(search.by_words(segments, terms, _wanted(each.visibility), each.limit))
    else:
        found = _match(tx, each, seen, terms) if seen else []
    return _hits(tx, each, found, seen)


def _index_terms(terms: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term for term in terms if _is_term(term)))


def _is_term(term: str) -> bool:
    """Whether a text can be one term of the index: what holds a space or a quote never is."""
    return bool(term) and not any(letter.isspace() or letter in "\"'\x00" for letter in term)


def _match(
    tx: Transaction, each: op.SearchText, seen: list[SeenScope], terms: tuple[str, ...]
) -> list[tuple[int, float]]:
    """Ask the full-text index for candidates, and score those by what the reader's own scopes hold.

    The index ranks by counts over the whole file; what is given depends on rows that the reader sees alone.
    """
    owners = " OR ".join(f'"{scope.id}"' for scope in seen)
    matches = [f's:({owners}) AND t:("{term}")' for term in terms]
    words = " OR ".join(f'"{term}"' for term in terms)
    parameters = {
        **visibility_parameters(each.visibility),
        "match": f"s:({owners}) AND t:({words})",
        "limit": max(CANDIDATES, 4 * each.limit),
    }
    texts = [(row, Counter(text.split())) for row, text in tx.run("match_terms", parameters)]
    rows = tx.one("count_visible", {"scopes": json.dumps([scope.id for scope in seen])})[0]
    mean = sum(counts.total() for _, counts in texts) / len(texts) if texts else 0.0
    scores = dict.fromkeys((row for row, _ in texts), 0.0)
    for term, match in zip(terms, matches, strict=True):
        weight = bm25.idf(rows, tx.one("count_matches", {"match": match})[0])
        for row, counts in texts:
            if counts[term]:
                scores[row] += weight * bm25.saturation(counts[term], counts.total(), mean)
    return sorted(scores.items(), key=lambda pair: -pair[1])[: 2 * each.limit + TIES]


def search_vector(tx: Transaction, each: op.SearchVector) -> tuple[op.TextHit, ...]:
    """Rows nearest to a vector, best first."""
    query = unit(each.vector, "the query's vector")
    if each.limit < 1:
        return ()
    tx.mark()
    seen = tx.seen_scopes(each.scope)
    space = tx.embedding()
    segments = _segments(tx, seen) if space is not None and space.model == each.model else None
    if segments is not None:
        from wakeful.stores.sidecar import search

        with together(segments):
            found = search.numbered(search.by_vector(segments, query, _wanted(each.visibility), each.limit))
    else:
        found = _scan(tx, each, seen, query)
    return _hits(tx, each, found, seen)


def find_candidates(tx: Transaction, each: op.FindCandidates) -> tuple[op.Found, ...]:
    """What the two searches find, as sketches; of a scope that is held in memory no row is read."""
    tx.mark()
    seen = tx.seen_scopes(each.scope)
    segments = _segments(tx, seen)
    space = tx.embedding()
    if segments is None or (each.vector is not None and (space is None or space.model != each.model)):
        words, nearest = candidates.searches(each)
        by_words = search_text(tx, words) if words is not None else ()
        by_meaning = search_vector(tx, nearest) if nearest is not None else ()
        return candidates.found(by_words, by_meaning, each.terms)
    from wakeful.stores.sidecar import search

    wanted = _wanted(each.visibility)
    terms = _index_terms(each.terms) if each.by_words > 0 else ()
    query = unit(each.vector, "the query's vector") if each.vector is not None and each.by_meaning > 0 else None
    with together(segments):
        worded = search.by_words(segments, terms, wanted, each.by_words) if terms else []
        near = search.by_vector(segments, query, wanted, each.by_meaning) if query is not None else []
        return tuple(search.candidates(worded, each.by_words, near, each.by_meaning, each.terms))


def adjacent(tx: Transaction, each: op.Adjacent) -> tuple[tuple[str, int, Sketch], ...] | None:
    """The rows said just before and after each of these; None for scopes that can't be held in memory."""
    tx.mark()
    segments = _segments(tx, tx.seen_scopes(each.scope))
    if segments is None:
        return None
    wanted = _wanted(each.visibility)
    found: list[tuple[str, int, Sketch]] = []
    with together(segments):
        for segment in segments:
            shown = segment.mask(wanted)
            beside = [
                (id_, distance, slot)
                for id_ in dict.fromkeys(each.ids)
                if (anchor := segment.outlines.places.get(id_)) is not None
                for distance, slot in segment.beside(anchor, shown, each.distance)
            ]
            made = segment.sketches([slot for _, _, slot in beside], each.terms)
            found += [(id_, distance, sketch) for (id_, distance, _), sketch in zip(beside, made, strict=True)]
    return tuple(found)


@contextmanager
def together(segments: Sequence[Any]) -> Iterator[None]:
    """Hold segments as they are, so that no other thread changes them during a search."""
    with ExitStack() as stack:
        for segment in segments:
            stack.enter_context(segment.lock)
        yield


def _scan(tx: Transaction, each: op.SearchVector, seen: list[SeenScope], query: bytes) -> list[tuple[int, float]]:
    """Compare every vector, block by block, keeping the best."""
    best: list[tuple[float, str, int]] = []
    for scope in seen:
        parameters = {**visibility_parameters(each.visibility), "scope": scope.id, "model": each.model}
        rows = tx.run("scan_vectors", parameters)
        while block := rows.fetchmany(BLOCK):
            same = [row for row in block if len(row[2]) * 2 == len(query)]
            scores = half_cosines([data for _, _, data in same], query)
            best += [(-score, id_, row) for (row, id_, _), score in zip(same, scores, strict=True)]
            best = sorted(best)[: each.limit]
    return [(row, -score) for score, _, row in best]


def _hits(
    tx: Transaction, each: op.SearchText | op.SearchVector, found: list[tuple[int, float]], seen: list[SeenScope]
) -> tuple[op.TextHit, ...]:
    """Give the best rows that the reader may be given; equal scores in id order."""
    nodes = read_rows(tx, [row for row, _ in found], seen)
    hits = [
        op.TextHit(nodes[row], score) for row, score in found if row in nodes and each.visibility.admits(nodes[row])
    ]
    hits.sort(key=lambda hit: (-hit.score, hit.node.id))
    return tuple(hits[: each.limit])


def read_rows(tx: Transaction, rows: Sequence[int], seen: list[SeenScope]) -> dict[int, MemoryNode]:
    """Read rows of the scopes that the reader sees, from memory where it holds them as they are now."""
    caches = [] if tx.sidecar is None else [tx.sidecar.nodes(scope.id, scope.change) for scope in seen]
    found: dict[int, MemoryNode] = {}
    missing = []
    for row in rows:
        for cache in caches:
            node = cache.get(row)
            if node is not None:
                found[row] = node
                break
        else:
            missing.append(row)
    if missing:
        owners = {scope.path: place for place, scope in enumerate(seen)}
        for row, node in tx.numbered_nodes("get_rows", {"rows": json.dumps(missing)}):
            place = owners.get(node.scope.path)
            if place is None:
                continue
            found[row] = node
            if caches:
                caches[place][row] = node
    return found


def _wanted(visibility: op.Visibility) -> Any:
    from wakeful.stores.sidecar import Wanted

    layers = (
        range(len(LAYER_NUMBER)) if visibility.layers is None else [LAYER_NUMBER[each] for each in visibility.layers]
    )
    statuses = [STATUS_NUMBER[each] for each in visibility.statuses]
    at = micros(visibility.at)
    assert at is not None
    return Wanted(
        kinds=frozenset(layer * 4 + status for layer in layers for status in statuses),
        at=at,
        as_of=micros(visibility.as_of),
        superseded=visibility.superseded,
        expired=visibility.expired,
    )


def _segments(tx: Transaction, seen: list[SeenScope]) -> list[Any] | None:
    """The segments of these owners, complete; None when they can't be held."""
    sidecar = tx.sidecar
    if sidecar is None:
        return None
    space = tx.embedding()
    model = "" if space is None else space.model
    segments = []
    for scope in sorted(seen, key=lambda scope: scope.id):
        segment = _segment(tx, scope, model, int((space.dimensions if space is not None else 0) * VECTOR_BYTES))
        if segment is None:
            return None
        segments.append(segment)
    return segments


def _segment(tx: Transaction, scope: SeenScope, model: str, vector_bytes: int) -> Any:
    from wakeful.stores.sidecar import Segment

    sidecar = tx.sidecar
    assert sidecar is not None
    segment = sidecar.get(scope.id)
    if segment is not None and segment.change >= scope.change and segment.model == model:
        return segment
    if segment is None or segment.change < scope.gone or segment.model != model or segment.is_sparse:
        rows = tx.one("count_rows", {"scope": scope.id})[0]
        if rows * (ROW_BYTES + vector_bytes) > sidecar.budget:
            return None
        segment = Segment(MemoryScope.parse(scope.path), model)
    with segment.lock:
        if segment.change < scope.change:
            revised: list[tuple[Any, ...]] = []
            if segment.slots:
                asked = {"scope": scope.id, "model": model, "change": segment.change, "until": segment.last_row}
                revised = tx.run("load_revised", asked).fetchall()
            asked = {"scope": scope.id, "model": model, "behind": segment.last_row}
            added = tx.run("load_rows", asked).fetchall()
            if segment.slots:
                asked = {"scope": scope.id, "change": segment.change}
                for row, id_, uses in tx.run("revised_rows", asked):
                    segment.nodes.pop(row, None)
                    segment.outlines.use(id_, uses)
            segment.replace(revised)
            segment.add(added)
            segment.change = scope.change
    sidecar.put(scope.id, segment)
    return segment
