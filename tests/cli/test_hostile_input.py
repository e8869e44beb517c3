"""Whatever a command is given for a store, a scope or a file: one clear line, exit code 2, and nothing written."""

from __future__ import annotations

import argparse
import json
import sqlite3
from pathlib import Path

import pytest

from wakeful.cli import parser

SCOPED = {
    "remember": ("text",),
    "recall": ("text",),
    "memory ls": (),
    "memory show": ("id",),
    "memory history": ("id",),
    "memory forget": ("id",),
    "memory approve": ("id",),
    "memory export": (),
    "memory import": ("export.jsonl",),
    "memory erase": ("--yes",),
    "memory stats": (),
    "memory reembed": ("--embedder", "static"),
    "remind": ("water the plants", "--event", "spring"),
    "due": (),
    "ingest": ("talk.json",),
    "nap": (),
    "context": ("text",),
    "chat": (),
}
"""Commands that act on one scope of a store, with what else they need."""
UNSCOPED = {"schedule": (), "worker": ("--once",)}
FILES = {"inspect": (), "compact": ("--window", "1000"), "replay": ("--window", "1000"), "validate": (), "ingest": ()}


def subcommands(top: argparse.ArgumentParser, prefix: str = "") -> list[str]:
    found = []
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                found += subcommands(sub, f"{prefix}{name} ") or [f"{prefix}{name}"]
    return found


def test_the_tables_name_every_command():
    assert set(subcommands(parser())) == {*SCOPED, *UNSCOPED, *FILES, "restore"}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a conversation, an export, and things that are no store."""
    (tmp_path / "talk.json").write_text('[{"role": "user", "content": "hello"}]')
    (tmp_path / "export.jsonl").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("these are notes, and no database at all\n" * 50)
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE invoices (id INTEGER)")
    other.commit()
    other.close()
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith(("-shm", "-wal"))
    }


def refused(wakeful, place, *arguments):
    before = contents(place)
    done = wakeful(*arguments)
    assert done.code == 2, (arguments, done)
    assert done.out == "", (arguments, done)
    last = done.err.strip().splitlines()[-1]
    assert last.startswith("wakeful: "), (arguments, done.err)
    assert len(last) > len("wakeful: ") + 10, (arguments, done.err)
    assert contents(place) == before, arguments
    return last


@pytest.mark.parametrize("command", [*SCOPED, *UNSCOPED])
@pytest.mark.parametrize(
    "store",
    ["folder", "notes.txt", "other.db", "mysql://localhost/x", "sqlite://", "", "postgresql://127.0.0.1:1/none"],
)
def test_what_is_no_store_is_refused_and_left_as_it_is(wakeful, place, command, store):
    scope = ("--scope", "user:ana") if command in SCOPED else ()
    rest = SCOPED.get(command) or UNSCOPED.get(command, ())
    refused(wakeful, place, *command.split(), "--db", store, *scope, *rest)


@pytest.mark.parametrize("command", SCOPED)
@pytest.mark.parametrize(
    "scope", ["", "ana", "user:", ":ana", "user:a/user:b", "user:a//b:c", "user:a\x00b", "user:a:b", "*"]
)
def test_what_is_no_scope_is_refused_before_a_store_is_made(wakeful, place, command, scope):
    line = refused(wakeful, place, *command.split(), "--db", "new.db", f"--scope={scope}", *SCOPED[command])
    assert "scope" in line


@pytest.mark.parametrize("command", FILES)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("missing.json", None),
        ("folder", None),
        ("empty.json", b""),
        ("blank.json", b" \n\n"),
        ("binary.json", bytes(range(256))),
        ("utf16.json", '[{"role": "user"}]'.encode("utf-16")),
        ("half.json", b'[{"role": "user", "content": "hel'),
        ("number.json", b"7"),
        ("text.json", b'"hello"'),
        ("numbers.json", b"[1, 2, 3]"),
        ("deep.json", b"[" * 100_000 + b"]" * 100_000),
        ("strange.json", b'{"rows": [1]}'),
        ("broken.jsonl", b'{"role": "user", "content": "a"}\n{"role": \n'),
        ("deep.jsonl", b"[" * 100_000 + b"\n"),
        ("digits.json", b'[{"role": "user", "content": "a", "n": ' + b"1" * 6_000 + b"}]"),
        ("digits.jsonl", b'{"role": "user", "content": "a", "n": ' + b"1" * 6_000 + b"}\n"),
        ("constant.json", b'[{"role": "user", "content": NaN}]'),
    ],
)
def test_what_is_no_conversation_is_refused(wakeful, place, command, name, content):
    if content is not None:
        (place / name).write_bytes(content)
    scope = ("--db", "new.db", "--scope", "user:ana") if command == "ingest" else ()
    refused(wakeful, place, command, name, *FILES[command], *scope)


@pytest.mark.parametrize("command", [*SCOPED, *UNSCOPED, *FILES, "restore"])
def test_an_unknown_option_is_told_with_the_usage_of_its_own_command(wakeful, place, command):
    done = wakeful(*command.split(), *(SCOPED.get(command) or FILES.get(command) or ()), "--no-such-option")
    assert done.code == 2
    assert done.err.startswith(f"usage: wakeful {command}"), done.err


ODD = {
    "surrogate.json": '[{"role": "user", "content": "half \\ud800 a character"}, {"role": "assistant", "content": "ok"}]',
    "separators.jsonl": '{"role": "user", "content": "a\u2028b\x85c"}\n{"role": "assistant", "content": "ok"}\n',
    "lines without the name.json": '{"role": "user", "content": "a"}\n{"role": "assistant", "content": "ok"}\n',
    "crlf.jsonl": '{"role": "user", "content": "a"}\r\n{"role": "assistant", "content": "ok"}\r\n',
}
"""Files that are odd and still conversations."""


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("command", ["inspect", "validate", "compact", "replay"])
@pytest.mark.parametrize("as_json", [False, True])
def test_what_is_odd_and_still_a_conversation_is_read(wakeful, place, name, command, as_json):
    (place / name).write_bytes(ODD[name].encode())
    done = wakeful(command, name, *FILES[command], *(["--json"] if as_json else []))
    assert done.code == 0, done
    if as_json:
        assert done.json


@pytest.mark.parametrize("name", ODD)
def test_what_is_written_is_read_back_as_the_same_messages(wakeful, place, name):
    (place / name).write_bytes(ODD[name].encode())
    assert wakeful("compact", name, "--window", "1000", "--out", "out.json").code == 0
    lines = ODD[name].split("\n") if name.endswith("l") or "lines" in name else [ODD[name]]
    given = [json.loads(line) for line in lines if line.strip()]
    assert json.loads((place / "out.json").read_bytes())["messages"] == (given[0] if len(given) == 1 else given)


@pytest.mark.parametrize("text", ['[{"role": "alien", "content": "x"}]', '[{"role": null, "content": "x"}]'])
def test_a_format_that_nobody_knows_leaves_no_archive_behind(wakeful, place, text):
    (place / "alien.json").write_text(text)
    line = refused(
        wakeful, place, "compact", "alien.json", "--window", "1000", "--archive", "new.db", "--out", "o.json"
    )
    assert "--format" in line
