"""Many vectors are searched through an index; what was erased stands in no table."""

from __future__ import annotations

import random
import re
import struct
import sys
from typing import Any

import psycopg
import pytest
from psycopg.types import TypeInfo

from wakeful import ops as op
from wakeful.stores.conformance.fixtures import ANA, ANA_TODAY, BOB, MODEL, START, hour, ids, node, now_visible, vector
from wakeful.stores.conformance.scopes import fill
from wakeful.stores.postgres import open_postgres, words
from wakeful.stores.postgres.codec import adapt
from wakeful.stores.postgres.reading import search_vector
from wakeful.stores.postgres.steps import Result
from wakeful.stores.postgres.store import PostgresStore

pytestmark = pytest.mark.postgres

WORDS = [f"wo{chr(97 + n)}rd" for n in range(20)]
FEW = 50
"""Rows above which the index serves, in these tests."""


@pytest.fixture
def low_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakeful.stores.postgres.reading.EXACT_ROWS", FEW)
    monkeypatch.setattr("wakeful.stores.postgres.nearness.EXACT_ROWS", FEW)


def points(count: int) -> list[bytes]:
    rng = random.Random(3)
    return [struct.pack("<4f", *(rng.gauss(0, 1) for _ in range(4))) for _ in range(count)]


def filled(url: str, count: int) -> PostgresStore:
    store = open_postgres(url)
    rows = tuple(
        node(ANA, f"n{n}", embedding=point, embedding_model=MODEL, status="draft" if n % 10 == 0 else "active")
        for n, point in enumerate(points(count))
    )
    few = tuple(node(BOB, f"b{n}", embedding=point, embedding_model=MODEL) for n, point in enumerate(points(8)))
    store.execute((op.PutNodes(ANA, rows), op.PutNodes(BOB, few)))
    return store


def search(**values: Any) -> op.SearchVector:
    asked = {
        "scope": ANA,
        "vector": vector(1, -0.2, 0.3, 0.1),
        "model": MODEL,
        "visibility": now_visible(),
        "limit": 20,
    }
    return op.SearchVector(**{**asked, **values})


def _model(url: str) -> int:
    with psycopg.connect(url) as connection:
        (number,) = connection.execute("SELECT id FROM wakeful.models WHERE name = %s", (MODEL,)).fetchone()
        return number


class TestNearness:
    def test_few_vectors_need_no_index(self, url: str) -> None:
        store = filled(url, 60)
        assert store.index_vectors() is False
        store.close()

    @pytest.mark.usefixtures("low_bound")
    def test_the_index_gives_what_a_full_comparison_gives(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        store = filled(url, 400)
        asked = (search(), search(limit=350), search(visibility=now_visible(statuses=("draft",))), search(scope=BOB))
        exact = store.execute(asked)
        assert store.index_vectors() is True
        assert store.index_vectors() is True
        found = store.execute(asked)
        for one, other in zip(exact, found, strict=True):
            assert ids(one) == ids(other)
            assert [hit.score for hit in one] == pytest.approx([hit.score for hit in other], abs=1e-3)
        assert [len(hits) for hits in found] == [20, 350, 20, 8]
        late = node(ANA, "late", embedding=vector(1, -0.2, 0.3, 0.1), embedding_model=MODEL)
        store.execute((op.PutNodes(ANA, (late,)),))
        assert ids(store.execute((search(limit=1),))[0]) == ["late"]
        store.close()

    @pytest.mark.usefixtures("low_bound")
    def test_the_statement_can_be_served_by_the_index_and_by_it_in_order(self, url: str) -> None:
        store = filled(url, 400)
        store.index_vectors()
        steps = search_vector(search())
        next(steps)
        statement = steps.send(Result([(400, 408.0, _model(url), True)], 1))
        store.close()
        with psycopg.connect(url) as connection:
            adapt(connection, TypeInfo.fetch(connection, "halfvec"))
            connection.execute("SET LOCAL enable_sort = off")
            rows = connection.execute(f"EXPLAIN (COSTS OFF) {statement.sql}", statement.values).fetchall()
        assert re.search(r"Index Scan using vectors_near_\d+", "\n".join(row[0] for row in rows))

    @pytest.mark.usefixtures("low_bound")
    def test_another_model_has_an_index_of_its_own(self, url: str) -> None:
        store = filled(url, 100)
        store.index_vectors()
        store.execute((op.SetEmbedding("other", 2),))
        changes = {
            f"n{n}": {"embedding": struct.pack("<2f", 1, n), "embedding_model": "other"}
            for n in range(1, 100)
            if n % 10
        }
        store.execute((op.UpdateNodes(scope=ANA, changes=changes),))
        assert store.index_vectors() is True
        near = search(vector=struct.pack("<2f", 1, 5), model="other", limit=1)
        assert ids(store.execute((near,))[0]) == ["n5"]
        store.close()

    @pytest.mark.usefixtures("low_bound")
    def test_an_index_that_its_vectors_outgrew_or_that_was_broken_off_is_built_again(
        self, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("wakeful.stores.postgres.nearness._ROWS_OF_A_LIST", 20)
        store = filled(url, 100)
        name = f"wakeful.vectors_near_{_model(url)}"

        def lists() -> str:
            with psycopg.connect(url) as connection:
                (definition,) = connection.execute("SELECT pg_get_indexdef(to_regclass(%s))", (name,)).fetchone()
            return re.search(r"lists='(\d+)'", definition)[1]

        store.index_vectors()
        assert lists() == "5"
        more = tuple(node(ANA, f"m{n}", embedding=point, embedding_model=MODEL) for n, point in enumerate(points(500)))
        store.execute((op.PutNodes(ANA, more[:100]),))
        store.index_vectors()
        assert lists() == "5"
        store.execute((op.PutNodes(ANA, more),))
        store.index_vectors()
        assert lists() == "30"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{name}'::regclass")
        assert store.index_vectors() is True
        with psycopg.connect(url) as connection:
            valid = connection.execute(f"SELECT indisvalid FROM pg_index WHERE indexrelid = '{name}'::regclass")
            assert valid.fetchone() == (True,)
        assert len(store.execute((search(limit=20),))[0]) == 20
        store.close()


class TestLeftovers:
    def test_no_table_holds_a_row_of_an_erased_scope_and_the_receipt_says_what_lingers(self, url: str) -> None:
        store = open_postgres(url)
        for owner, name in ((ANA, "ana"), (ANA_TODAY, "today")):
            fill(store, owner, name)
            store.execute((op.AcquireLease(scope=owner, owner="w", at=START, seconds=9),))
        (receipt,) = store.execute((op.Erase(ANA, hour(1)),))
        assert receipt["pending"] == ("vacuum", "wal")
        with psycopg.connect(url) as connection:
            for table in ("scopes", "nodes", "words", "vectors", "edges", "history", "states", "leases"):
                assert connection.execute(f"SELECT count(*) FROM wakeful.{table}").fetchone() == (0,), table
            (mark,) = connection.execute("SELECT mark FROM wakeful.tombstones").fetchone()
        assert b"ana" not in mark
        store.close()


def packed_rows(owner: int, texts: list[words.Text]) -> list[words.Row]:
    """The words of texts as the database gives them."""
    rows: dict[int, tuple[list[int], list[int], bytes]] = {}
    for term, run, raw in zip(*words.entries(texts), strict=True):
        runs, counts, held = rows.get(term, ([], [], b""))
        rows[term] = ([*runs, run], [*counts, len(raw)], held + raw)
    return [(owner, term, *row) for term, row in rows.items()]


class TestPackedWords:
    def test_scores_are_the_same_without_numpy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        texts = [words.analysed(n, "", f"tea {'lighthouse ' * (n % 3)} word{n % 7}") for n in range(2000)]
        rows = packed_rows(7, texts)
        sizes = [(7, 2000, sum(text.length for text in texts), 2000)]
        wanted = {words.term_key("lighthous"), words.term_key("word3")}
        asked = [row for row in rows if row[1] in wanted]
        fast = words.score(sizes, asked, 10_000)
        monkeypatch.setitem(sys.modules, "numpy", None)
        plain = words.score(sizes, asked, 10_000)
        assert sorted(fast.docs) == sorted(plain.docs)
        assert dict(zip(fast.docs, fast.scores, strict=True)) == pytest.approx(
            dict(zip(plain.docs, plain.scores, strict=True)), rel=1e-5
        )

    def test_the_best_come_however_few_are_kept(self) -> None:
        rng = random.Random(5)
        texts = [
            words.analysed(n, "", " ".join(rng.choices(WORDS, range(len(WORDS), 0, -1), k=9))) for n in range(3000)
        ]
        rows = packed_rows(7, texts)
        sizes = [(7, 3000, sum(text.length for text in texts), 3000)]
        for asked in (WORDS[:1], WORDS[:4], WORDS[-3:], [WORDS[0], WORDS[-1]]):
            wanted = {words.term_key(word) for word in asked}
            held = [row for row in rows if row[1] in wanted]
            whole = words.score(sizes, held, 3000)
            for keep in (1, 10, 100, 900):
                best = words.score(sizes, held, keep)
                assert best.found == whole.found
                assert len(best.docs) >= min(keep, whole.found)
                assert best.docs == whole.docs[: len(best.docs)]

    def test_what_was_written_after_the_sizes_were_read_is_left_to_the_next_query(self) -> None:
        texts = [words.analysed(n, "", "tea") for n in range(2 * words.RUN)]
        whole = words.score([(7, len(texts), len(texts), len(texts))], packed_rows(7, texts), 9999)
        assert sorted(whole.docs) == list(range(len(texts)))
        seen = words.score([(7, 1000, 1000, 1000)], packed_rows(7, texts), 9999)
        assert sorted(seen.docs) == list(range(words.RUN))

    def test_what_leaves_is_what_came(self) -> None:
        texts = [words.analysed(n, "", "tea and more tea") for n in (0, 5, 1023)]
        _, _, packed = words.entries(texts)
        assert all(words.without(raw, {0, 5, 1023}) == b"" for raw in packed)
        assert all(len(words.without(raw, {5})) == 8 for raw in packed)
