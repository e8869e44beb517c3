"""The promises of every session store, as a suite to be subclassed:

```python
class TestMyStore(SessionStoreContract):
    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda: MyStore(tmp_path / "sessions.db")
```

``open_store`` opens the same place each time, or gives the same store when it keeps nothing (``persistent = False``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from wakeful.errors import NotFound, StaleWriter, StoreError
from wakeful.ops_session import (
    Claimed,
    SessionAppend,
    SessionClaim,
    SessionCompact,
    SessionErase,
    SessionFork,
    SessionList,
    SessionLoad,
    SessionMoveHead,
    SessionSaveTurn,
    SessionUndo,
    StoredCompaction,
    StoredEntry,
    StoredSession,
)
from wakeful.stores.sessions import SessionStore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DIALECT = "openai_chat"


def entry(entry_id: str, text: str = "", **values: Any) -> StoredEntry:
    """Make an entry."""
    return StoredEntry(id=entry_id, message=f'{{"content": "{text or entry_id}"}}', **values)


def claim(store: SessionStore, session: str = "s", epoch: int | None = None) -> Claimed:
    """Become the writer."""
    (claimed,) = store.execute((SessionClaim(session=session, dialect=DIALECT, at=NOON, epoch=epoch),))
    assert isinstance(claimed, Claimed)
    return claimed


def append(store: SessionStore, epoch: int, *ids: str, session: str = "s") -> tuple[StoredEntry, ...]:
    """Append entries with these ids."""
    op = SessionAppend(session=session, epoch=epoch, entries=tuple(entry(each) for each in ids))
    (stored,) = store.execute((op,))
    return stored  # type: ignore[no-any-return]  # the documented result


def load(store: SessionStore, session: str = "s", *, full: bool = False) -> StoredSession:
    """Read a session that is there."""
    (stored,) = store.execute((SessionLoad(session=session, full=full),))
    assert isinstance(stored, StoredSession)
    return stored


def ids(stored: StoredSession) -> list[str]:
    """Ids of what was loaded."""
    return [each.id for each in stored.entries]


def compaction(after: str, view: tuple[dict[str, Any], ...], *covered: str) -> StoredCompaction:
    """Make a compaction."""
    return StoredCompaction(id=f"c-{after}", after=after, view=view, covered=covered, meta={"tokens_before": 9})


class SessionStoreContract:
    """What every session store promises."""

    persistent = True
    """Whether what was written is there when the store is opened again."""

    @pytest.fixture
    def store(self, open_store: Callable[[], SessionStore]) -> Iterator[SessionStore]:
        """One store."""
        opened = open_store()
        yield opened
        opened.close()

    # --- writing and reading -----------------------------------------------------------------------------------------

    def test_entries_come_back_in_order_with_their_parents(self, store: SessionStore) -> None:
        epoch = claim(store).epoch
        op = SessionAppend(session="s", epoch=epoch, entries=(entry("a", turn_id="t", pinned=True), entry("b")))
        store.execute((op,))
        append(store, epoch, "c")
        stored = load(store)
        assert [(e.id, e.parent_id) for e in stored.entries] == [("a", None), ("b", "a"), ("c", "b")]
        first = stored.entries[0]
        assert (first.turn_id, first.pinned, first.message) == ("t", True, entry("a").message)
        assert (stored.head, stored.dialect, stored.epoch) == ("c", DIALECT, epoch)

    def test_a_session_that_nobody_made_reads_as_none(self, store: SessionStore) -> None:
        assert store.execute((SessionLoad(session="nobody"),)) == (None,)
        with pytest.raises(NotFound):
            append(store, 1, "a", session="nobody")

    def test_a_write_tried_again_changes_nothing_and_another_message_is_refused(self, store: SessionStore) -> None:
        epoch = claim(store).epoch
        append(store, epoch, "a", "b")
        again = append(store, epoch, "b", "c")
        assert [(e.id, e.parent_id) for e in again] == [("b", "a"), ("c", "b")]
        assert ids(load(store)) == ["a", "b", "c"]
        op = SessionAppend(session="s", epoch=epoch, entries=(entry("d"), entry("a", "other")))
        with pytest.raises(StoreError):
            store.execute((op,))
        assert ids(load(store)) == ["a", "b", "c"]

    def test_any_text_comes_back_as_it_was(self, store: SessionStore) -> None:
        import json

        epoch = claim(store).epoch
        texts = ["ünï 漢字 🦊", "nul \x00", "lone \ud800", 'quote " \\ back', "{brace} :param %(s)s"]
        written = tuple(
            StoredEntry(id=f"e{i}", message=json.dumps(text, ensure_ascii=False)) for i, text in enumerate(texts)
        )
        store.execute((SessionAppend(session="s", epoch=epoch, entries=written),))
        assert [json.loads(e.message) for e in load(store).entries] == texts

    def test_the_turns_state_is_kept_and_removed(self, store: SessionStore) -> None:
        epoch = claim(store).epoch
        state = {"phase": "steering", "calls": [{"n": 1}]}
        store.execute((SessionSaveTurn(session="s", epoch=epoch, state=state),))
        assert load(store).turn == state
        store.execute((SessionSaveTurn(session="s", epoch=epoch, state=None),))
        assert load(store).turn is None

    def test_a_transaction_is_all_or_nothing(self, store: SessionStore) -> None:
        epoch = claim(store).epoch
        append(store, epoch, "a")
        with pytest.raises(NotFound):
            store.execute(
                (
                    SessionAppend(session="s", epoch=epoch, entries=(entry("b"),)),
                    SessionSaveTurn(session="s", epoch=epoch, state={"x": 1}),
                    SessionMoveHead(session="s", epoch=epoch, head="nowhere"),
                )
            )
        stored = load(store)
        assert (ids(stored), stored.head, stored.turn) == (["a"], "a", None)
        assert [e.id for e in append(store, epoch, "b")] == ["b"]

    def test_what_was_written_is_there_when_opened_again(self, open_store: Callable[[], SessionStore]) -> None:
        if not self.persistent:
            pytest.skip("this store keeps nothing")
        first = open_store()
        epoch = claim(first).epoch
        append(first, epoch, "a")
        first.close()
        second = open_store()
        assert ids(load(second)) == ["a"]
        assert claim(second, epoch=epoch).fresh
        second.close()

    # --- fencing -----------------------------------------------------------------------------------------------------

    def test_a_claim_by_the_same_writer_keeps_its_epoch(self, store: SessionStore) -> None:
        first = claim(store)
        assert first.created
        again = claim(store, epoch=first.epoch)
        assert (again.epoch, again.fresh, again.created) == (first.epoch, True, False)

    def test_a_stale_writer_changes_nothing(self, store: SessionStore) -> None:
        old = claim(store).epoch
        append(store, old, "a")
        new = claim(store).epoch
        assert new > old
        made = compaction("a", ({"id": "a"},))
        for op in (
            SessionAppend(session="s", epoch=old, entries=(entry("x"),)),
            SessionSaveTurn(session="s", epoch=old, state={"stale": True}),
            SessionCompact(session="s", epoch=old, compaction=made),
            SessionUndo(session="s", epoch=old),
            SessionMoveHead(session="s", epoch=old, head=None),
        ):
            with pytest.raises(StaleWriter):
                store.execute((op,))
        stored = load(store)
        assert (ids(stored), stored.turn, stored.compaction) == (["a"], None, None)
        append(store, new, "b")
        assert not claim(store, epoch=old).fresh

    def test_one_of_many_claims_wins_and_the_others_are_fenced(self, store: SessionStore) -> None:
        claim(store)
        epochs: list[int] = []
        together(lambda _: epochs.append(claim(store).epoch), 8)
        assert len(set(epochs)) == 8
        written = []

        def write(number: int) -> None:
            try:
                append(store, epochs[number], f"e{number}")
                written.append(epochs[number])
            except StaleWriter:
                pass

        together(write, 8)
        assert written == [max(epochs)]

    def test_two_hundred_appends_at_the_same_time_lose_nothing(self, store: SessionStore) -> None:
        epoch = claim(store).epoch
        together(lambda n: [append(store, epoch, f"{n}-{i}") for i in range(25)], 8)
        stored = load(store)
        assert len(stored.entries) == 200
        assert set(ids(stored)) == {f"{n}-{i}" for n in range(8) for i in range(25)}
        parents = [each.parent_id for each in stored.entries]
        assert parents == [None, *ids(stored)[:-1]]
        for n in range(8):
            own = [each for each in ids(stored) if each.startswith(f"{n}-")]
            assert own == [f"{n}-{i}" for i in range(25)]

    # --- branches ----------------------------------------------------------------------------------------------------

    def test_going_back_keeps_what_followed_as_another_branch(self, store: SessionStore) -> None:
        epoch = claim(store).epoch
        append(store, epoch, "a", "b", "c")
        store.execute((SessionMoveHead(session="s", epoch=epoch, head="a"),))
        append(store, epoch, "d")
        assert ids(load(store)) == ["a", "d"]
        full = load(store, full=True)
        assert [(e.id, e.parent_id) for e in full.entries] == [("a", None), ("b", "a"), ("c", "b"), ("d", "a")]
        store.execute((SessionMoveHead(session="s", epoch=epoch, head=None),))
        assert ids(load(store)) == []

    def test_a_fork_and_its_origin_do_not_see_each_other(self, store: SessionStore) -> None:
        epoch = claim(store).epoch
        append(store, epoch, "a", "b", "c")
        store.execute((SessionFork(session="s", new="f", at="b", at_time=NOON),))
        fork_epoch = claim(store, "f").epoch
        append(store, fork_epoch, "x", session="f")
        append(store, epoch, "d")
        assert ids(load(store, "f")) == ["a", "b", "x"]
        assert ids(load(store)) == ["a", "b", "c", "d"]
        append(store, fork_epoch, "d", session="f")
        store.execute((SessionErase(session="s"),))
        assert ids(load(store, "f")) == ["a", "b", "x", "d"]

    def test_a_fork_needs_a_free_name_and_a_known_place(self, store: SessionStore) -> None:
        epoch = claim(store).epoch
        append(store, epoch, "a")
        claim(store, "taken")
        with pytest.raises(StoreError):
            store.execute((SessionFork(session="s", new="taken", at_time=NOON),))
        for session, at in (("nobody", None), ("s", "nowhere")):
            with pytest.raises(NotFound):
                store.execute((SessionFork(session=session, new="n", at=at, at_time=NOON),))
        assert store.execute((SessionLoad(session="n"),)) == (None,)

    # --- compactions -------------------------------------------------------------------------------------------------

    def test_a_compacted_session_loads_its_view_and_what_came_after(self, store: SessionStore) -> None:
        epoch = claim(store).epoch
        append(store, epoch, *(f"e{i}" for i in range(10)))
        view = ({"id": "sum", "message": '"s"'}, {"id": "m", "message": '"m"', "parts": ["e7", "e8"]}, {"id": "e9"})
        made = compaction("e9", view, *(f"e{i}" for i in range(7)))
        store.execute((SessionCompact(session="s", epoch=epoch, compaction=made),))
        append(store, epoch, "later")
        stored = load(store)
        assert ids(stored) == ["e7", "e8", "e9", "later"]
        assert stored.compaction is not None
        assert [dict(item) for item in stored.compaction.view] == [dict(item) for item in view]
        assert stored.compaction.covered == tuple(f"e{i}" for i in range(7))
        assert stored.compaction.meta == {"tokens_before": 9}
        assert len(load(store, full=True).entries) == 11

    def test_the_last_compaction_can_be_taken_back(self, store: SessionStore) -> None:
        epoch = claim(store).epoch
        append(store, epoch, "a", "b")
        first = compaction("b", ({"id": "b"},), "a")
        store.execute((SessionCompact(session="s", epoch=epoch, compaction=first),))
        append(store, epoch, "c")
        second = compaction("c", ({"id": "c"},), "b")
        store.execute((SessionCompact(session="s", epoch=epoch, compaction=second),))
        append(store, epoch, "d")
        assert ids(load(store)) == ["c", "d"]
        undo = SessionUndo(session="s", epoch=epoch)
        assert store.execute((undo,)) == (True,)
        assert ids(load(store)) == ["b", "c", "d"]
        assert store.execute((undo,)) == (True,)
        assert ids(load(store)) == ["a", "b", "c", "d"]
        assert store.execute((undo,)) == (False,)

    def test_a_branch_from_before_a_compaction_is_shown_whole(self, store: SessionStore) -> None:
        epoch = claim(store).epoch
        append(store, epoch, "a", "b", "c")
        made = compaction("c", ({"id": "c"},), "a", "b")
        store.execute((SessionCompact(session="s", epoch=epoch, compaction=made),))
        store.execute((SessionMoveHead(session="s", epoch=epoch, head="b"),))
        stored = load(store)
        assert (ids(stored), stored.compaction) == (["a", "b"], None)
        store.execute((SessionMoveHead(session="s", epoch=epoch, head="c"),))
        assert ids(load(store)) == ["c"]
        store.execute((SessionFork(session="s", new="f", at_time=NOON),))
        assert ids(load(store, "f")) == ["c"]
        assert ids(load(store, "f", full=True)) == ["a", "b", "c"]

    # --- all sessions ------------------------------------------------------------------------------------------------

    def test_sessions_are_listed_in_order_and_in_pages(self, store: SessionStore) -> None:
        for name in ("b/2", "a", "b/1", "b/3", "B"):
            claim(store, name)
        assert store.execute((SessionList(),)) == (("B", "a", "b/1", "b/2", "b/3"),)
        assert store.execute((SessionList(prefix="b/", limit=2),)) == (("b/1", "b/2"),)
        assert store.execute((SessionList(prefix="b/", after="b/2"),)) == (("b/3",),)

    def test_erasing_removes_a_session_whole_and_no_other(self, store: SessionStore) -> None:
        epoch = claim(store).epoch
        append(store, epoch, "a")
        other = claim(store, "other").epoch
        append(store, other, "a", session="other")
        assert store.execute((SessionErase(session="s"),)) == (True,)
        assert store.execute((SessionErase(session="s"), SessionLoad(session="s"))) == (False, None)
        assert ids(load(store, "other")) == ["a"]
        fresh = claim(store)
        assert fresh.created
        assert ids(load(store)) == []


def together(work: Callable[[int], object], count: int) -> None:
    """Run ``work`` in so many threads at the same time; raise what one raised."""
    barrier = threading.Barrier(count)
    failures: list[BaseException] = []

    def start(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=start, args=(number,)) for number in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if failures:
        raise failures[0]
