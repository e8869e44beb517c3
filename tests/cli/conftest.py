from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from wakeful.cli import main


@pytest.fixture
def wakeful(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder: (exit code, standard output, standard error), and its JSON where asked."""
    monkeypatch.chdir(tmp_path)
    for name in ("WAKEFUL_DB", "WAKEFUL_SCOPE"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments):
        code = main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        lines = [json.loads(line) for line in out.split("\n") if line] if "--json" in arguments and out else []
        data = lines[0] if len(lines) == 1 else lines or None
        return SimpleNamespace(code=code, out=out, err=err, json=data)

    return run


@pytest.fixture
def at(monkeypatch):
    """The store and the scope, as the environment names them."""

    def use(scope="org:acme/user:ana", db="memory.db"):
        monkeypatch.setenv("WAKEFUL_SCOPE", scope)
        monkeypatch.setenv("WAKEFUL_DB", db)

    use()
    return use
