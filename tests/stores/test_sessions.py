"""Session stores in the process and in a file."""

import multiprocessing
from pathlib import Path

import pytest

from wakeful.errors import ConfigError, SchemaError, StoreError
from wakeful.stores.sessions import open_session_store
from wakeful.stores.sessions.conformance import SessionStoreContract, append, claim, ids, load
from wakeful.stores.sessions.inmemory import InMemorySessions
from wakeful.stores.sessions.sqlite import SqliteSessions


class TestInMemory(SessionStoreContract):
    persistent = False

    @pytest.fixture
    def open_store(self):
        return InMemorySessions


class TestSqlite(SessionStoreContract):
    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda: open_session_store(f"sqlite:///{tmp_path}/sessions.db")


def _append_some(path: str, number: int, epoch: int) -> None:
    store = SqliteSessions(path)
    for i in range(25):
        append(store, epoch, f"{number}-{i}")
    store.close()


def test_processes_that_append_at_the_same_time_lose_nothing(tmp_path):
    path = str(tmp_path / "sessions.db")
    store = SqliteSessions(path)
    epoch = claim(store).epoch
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_some, args=(path, n, epoch)) for n in range(2)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
        assert each.exitcode == 0
    assert len(ids(load(store))) == 50
    store.close()


def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("no database at all, but long enough to be read as one" * 20)
    with pytest.raises(SchemaError):
        SqliteSessions(path)


def test_a_closed_store_says_so(tmp_path):
    store = SqliteSessions(tmp_path / "sessions.db")
    store.close()
    with pytest.raises(StoreError, match="closed"):
        claim(store)


@pytest.mark.parametrize("url", ["sessions.db", "mysql://host/x", "sqlite://", "redis:"])
def test_a_url_of_no_known_kind_is_refused(url):
    with pytest.raises(ConfigError):
        open_session_store(url)


def test_a_relative_url_is_a_relative_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    open_session_store("sqlite:///here.db").close()
    assert Path("here.db").exists()
