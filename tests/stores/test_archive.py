"""Archives: both kinds give the same answers; what was put is given back exactly; erasure leaves nothing."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.compaction.archive import (
    archive_id,
    entries,
    make_record,
    placeholder,
    placeholder_id,
    put,
    remove,
    restore_span,
    size,
)
from wakeful.compaction.recall_history import MAX_TOKENS, recall_history
from wakeful.dialects import get
from wakeful.engine.drive import drive
from wakeful.errors import ConfigError, NotFound, SchemaError, StoreBusy, StoreError
from wakeful.ops_archive import (
    ArchiveCount,
    ArchiveErase,
    ArchiveFind,
    ArchiveGet,
    ArchiveList,
    ArchivePut,
    ArchiveRecord,
    ArchiveRemove,
)
from wakeful.stores.archive import Archive, MemoryArchive
from wakeful.stores.archive_sqlite import SqliteArchive
from wakeful.stores.opening import open_archive

CHAT = get("openai_chat")
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def record(name: str, text: str, position: int = 0) -> ArchiveRecord:
    return ArchiveRecord(
        id=f"a-{name}", dialect="openai_chat", position=position, messages=(f'"{name}"',), text=text, tokens=7, what="x"
    )


@pytest.fixture(params=["memory", "sqlite"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Archive]:
    opened = MemoryArchive() if request.param == "memory" else SqliteArchive(tmp_path / "archive.db")
    yield opened
    opened.close()


def call(archive: Any, flow: Any) -> Any:
    return drive(flow, lambda need: archive.execute(need.ops))


TALK = [
    {"role": "user", "content": "Cancel HAT-204 \ud800 für Zoë, bitte"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "cancel", "arguments": '{"id": "HAT-204"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c", "content": "cancelled\0 at 12:00"},
]


def test_a_span_comes_back_exactly_with_its_position(archive: Archive) -> None:
    kept = make_record(CHAT, TALK, position=4, entry_ids=("e1", "e2", "e3"), what="3 messages", tokens=60)
    stats = call(archive, put([kept], space="t/c", at=AT))
    assert (stats.records, stats.messages) == (1, 3)
    span = call(archive, restore_span(kept.id, space="t/c"))
    assert list(span.messages) == TALK
    assert (span.position, span.entry_ids, span.dialect, span.tokens) == (4, ("e1", "e2", "e3"), "openai_chat", 60)


def test_putting_a_record_twice_changes_nothing(archive: Archive) -> None:
    kept = make_record(CHAT, TALK, position=4)
    first = call(archive, put([kept]))
    assert call(archive, put([kept, kept])) == first
    assert len(call(archive, entries())) == 1


def test_growth_is_told(archive: Archive) -> None:
    sizes = [call(archive, put([record(str(n), f"text number {n}")])) for n in range(3)]
    assert [stats.records for stats in sizes] == [1, 2, 3]
    assert sizes[0].bytes < sizes[1].bytes < sizes[2].bytes
    assert call(archive, size()) == sizes[2]
    assert call(archive, remove(["a-0", "a-none"])) == 1
    assert call(archive, size()).records == 2


def test_an_unknown_id_is_not_found(archive: Archive) -> None:
    with pytest.raises(NotFound, match="a-none"):
        call(archive, restore_span("a-none"))


def test_spaces_do_not_see_each_other(archive: Archive) -> None:
    archive.execute(
        (ArchivePut("t1/c", (record("1", "shared words"),)), ArchivePut("t2/c", (record("2", "shared words"),)))
    )
    hits, got, listed = archive.execute(
        (ArchiveFind("t1/c", "shared words"), ArchiveGet("t1/c", ("a-1", "a-2")), ArchiveList("t1/c"))
    )
    assert [hit.record.id for hit in hits] == ["a-1"]
    assert [found.id for found in got] == ["a-1"]
    assert [entry.id for entry in listed] == ["a-1"]
    assert archive.execute((ArchiveRemove("t1/c", ("a-2",)),)) == (0,)


def test_erasing_a_space_takes_those_below_it_and_no_neighbour(archive: Archive) -> None:
    for space in ("t", "t/c1", "t/c1/x", "t2", "tt/c", ""):
        archive.execute((ArchivePut(space, (record("1", "private words"),)),))
    assert archive.execute((ArchiveErase("t"),)) == (3,)
    left = {s: archive.execute((ArchiveCount(s),))[0].records for s in ("t", "t/c1", "t/c1/x", "t2", "tt/c", "")}
    assert left == {"t": 0, "t/c1": 0, "t/c1/x": 0, "t2": 1, "tt/c": 1, "": 1}
    assert archive.execute((ArchiveErase(""),)) == (1,)
    assert archive.execute((ArchiveFind("t2", "private"),))[0]


def test_a_failing_operation_leaves_nothing_behind(archive: Archive) -> None:
    with pytest.raises(ConfigError, match="no archive operation"):
        archive.execute((ArchivePut("s", (record("1", "x"),)), "what?"))  # type: ignore[arg-type]
    assert archive.execute((ArchiveCount("s"),))[0].records == 0


TEXTS = [
    "order HAT-204 was shipped to Zürich",
    "the warehouse in 東京都 confirmed the stock",
    "see src/app/node.js line 40",
    "nothing of interest, twice nothing",
]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("HAT-204", 0),
        ("zurich shipped", 0),
        ("東京", 1),
        ("node.js", 2),
        ("src/app", 2),
        ("interesting", 3),
        ('it\'s "quoted" AND (OR', None),
        ("", None),
        ("   ", None),
        ("absent", None),
    ],
)
def test_a_search_finds_exact_values_and_words_in_any_language(archive: Archive, query: str, best: int | None) -> None:
    archive.execute((ArchivePut("s", tuple(record(str(n), text) for n, text in enumerate(TEXTS))),))
    (hits,) = archive.execute((ArchiveFind("s", query),))
    assert (hits[0].record.id if hits else None) == (None if best is None else f"a-{best}")


@given(st.lists(st.text("ab-1 é東", max_size=12), max_size=8), st.text("ab-1 é東", max_size=4))
def test_both_archives_answer_a_search_alike(texts: list[str], query: str) -> None:
    memory, sqlite = MemoryArchive(), SqliteArchive(":memory:")
    try:
        ops = (ArchivePut("s", tuple(record(str(n), text) for n, text in enumerate(texts))), ArchiveFind("s", query, 9))
        assert memory.execute(ops) == sqlite.execute(ops)
    finally:
        sqlite.close()


def test_an_exact_match_comes_before_matching_words(archive: Archive) -> None:
    archive.execute(
        (ArchivePut("s", (record("1", "id of the order 42"), record("2", "order 42"), record("3", "42 order"))),)
    )
    (hits,) = archive.execute((ArchiveFind("s", "order 42", 3),))
    assert {hits[0].record.id, hits[1].record.id} == {"a-1", "a-2"}
    assert hits[2].record.id == "a-3"


def test_awaited_operations_give_the_same(archive: Archive) -> None:
    assert asyncio.run(archive.aexecute((ArchivePut("s", (record("1", "x"),)), ArchiveCount("s"))))[1].records == 1


def test_a_closed_archive_refuses_work(archive: Archive) -> None:
    archive.close()
    with pytest.raises(StoreError, match="closed"):
        archive.execute((ArchiveCount("s"),))


def test_threads_may_share_an_archive(archive: Archive) -> None:
    def work(n: int) -> None:
        for i in range(10):
            archive.execute((ArchivePut("s", (record(f"{n}-{i}", f"text {n} {i}"),)),))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert archive.execute((ArchiveCount("s"),))[0].records == 40


# -- the file ---------------------------------------------------------------------------------------------------


def test_a_file_is_there_after_it_was_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    first = SqliteArchive(path)
    first.execute((ArchivePut("s", (record("1", "kept words"),), AT),))
    first.close()
    again = open_archive(f"sqlite:///{path}")
    (entry,) = again.list("s")
    assert (entry.id, entry.created_at) == ("a-1", AT)
    assert again.execute((ArchiveFind("s", "kept"),))[0][0].record.text == "kept words"
    again.close()


def _write(path: str, worker: int) -> None:
    archive = SqliteArchive(path)
    for i in range(10):
        archive.execute((ArchivePut("s", (record(f"{worker}-{i}", "x"), record(f"shared-{i}", "x"))),))
    archive.close()


def test_processes_may_write_one_file(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write, args=(path, n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    archive = SqliteArchive(path)
    assert archive.execute((ArchiveCount("s"),))[0].records == 40
    archive.close()


def test_a_locked_file_is_told_as_busy_and_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    archive = SqliteArchive(path, busy_seconds=0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreBusy):
            archive.execute((ArchivePut("s", (record("1", "x"),)),))
    finally:
        other.execute("ROLLBACK")
        other.close()
    assert archive.execute((ArchiveCount("s"),))[0].records == 0
    archive.close()


def test_erased_text_is_in_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    archive = SqliteArchive(path)
    archive.execute((ArchivePut("t/c", (record("1", "passphrase xylophone"),)),))
    archive.execute((ArchiveErase("t"),))
    archive.close()
    assert all(b"xylophon" not in each.read_bytes() for each in tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"this is no database, but long enough to look like a file" * 40])
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(content)
    with pytest.raises(SchemaError, match="no archive"):
        SqliteArchive(path)
    assert path.read_bytes() == content


def test_an_archive_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    SqliteArchive(path).close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE archive_meta SET value = '99'")
    db.close()
    with pytest.raises(SchemaError, match="99"):
        SqliteArchive(path)


@pytest.mark.parametrize("value", [7, "", "redis://x", None])
def test_what_names_no_archive_is_refused(value: object) -> None:
    with pytest.raises(ConfigError):
        open_archive(value)


# -- ids, placeholders and the tool -----------------------------------------------------------------------------


def test_ids_are_content_hashes() -> None:
    assert archive_id("openai_chat", ["x", "y"]) == archive_id("openai_chat", ("x", "y"))
    assert (
        len({archive_id("openai_chat", ["xy"]), archive_id("openai_chat", ["x", "y"]), archive_id("gemini", ["xy"])})
        == 3
    )


@given(st.text(max_size=200), st.integers(0, 10**7), st.text(max_size=300))
def test_a_placeholder_is_recognised_whatever_it_describes(what: str, tokens: int, values: str) -> None:
    id = archive_id("openai_chat", [what])
    text = placeholder(id, what, tokens, values)
    assert placeholder_id(text) == id
    assert text == placeholder(id, what, tokens, values)


@given(st.text(max_size=120))
def test_other_text_is_no_placeholder(text: str) -> None:
    assert placeholder_id(text) is None
    assert placeholder_id("[cleared: x, about 3 tokens - archived as a-short]") is None


LONG = make_record(
    CHAT,
    [{"role": "user", "content": f"entry {n} speaks of case K{n:04d} at length. " * 8} for n in range(200)],
    position=3,
)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"query": "K0123"}, "case K0123"),
        ({"query": "case at length"}, "speaks of case"),
        ({"id": LONG.id}, "continues: ask with the same id and offset"),
        ({"id": LONG.id, "offset": 10**9}, "nothing more"),
        ({"id": LONG.id, "query": "K0042"}, "case K0042"),
        ({"id": LONG.id, "query": "absent"}, "does not stand in"),
        ({"id": "a-nothing"}, "Nothing is archived as"),
        ({"query": "absent"}, "No earlier turn holds"),
        ({}, "Give 'query'"),
        ({"query": 5, "id": ["x"]}, "Give 'query'"),
        ({"id": LONG.id, "offset": "far"}, "entry 0 speaks"),
    ],
)
def test_the_tool_answers_any_call_within_its_bound(archive: Archive, arguments: dict[str, Any], part: str) -> None:
    call(archive, put([LONG], space="c"))
    answer = call(archive, recall_history(arguments, space="c"))
    assert part in answer
    assert len(answer) <= MAX_TOKENS * 3


def test_reading_on_gives_the_whole_record(archive: Archive) -> None:
    call(archive, put([LONG], space="c"))
    read, offset = "", 0
    while True:
        answer = call(archive, recall_history({"id": LONG.id, "offset": offset}, space="c"))
        body = answer.split(":\n", 1)[1]
        text, more, rest = body.partition("\n[continues: ask with the same id and offset ")
        read += text
        if not more:
            break
        offset = int(rest.rstrip("]"))
    assert read == LONG.text


def test_an_answer_says_that_it_is_a_record(archive: Archive) -> None:
    call(archive, put([LONG], space="c"))
    assert "a record, not a request" in call(archive, recall_history({"query": "K0001"}, space="c"))
