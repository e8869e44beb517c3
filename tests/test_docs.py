"""The documentation is true: every example runs, every command is documented, every link leads somewhere."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from wakeful.cli import main
from wakeful.testing import ProviderServer, Say

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)")


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    text = page.read_text(encoding="utf-8")
    return [
        (text[: match.start()].count("\n") + 2, match.group(2))
        for match in BLOCK.finditer(text)
        if match.group(1) == language
    ]


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """An empty folder with the samples in it, and a provider that answers on this machine."""
    shutil.copytree(ROOT / "samples", tmp_path / "samples")
    monkeypatch.chdir(tmp_path)
    with ProviderServer() as server:
        server.plan(*(Say(f"answer {number}") for number in range(50)))
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.anthropic_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=named)
def test_every_example_runs(page, workplace, monkeypatch):
    example = ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", example)
    for line, code in blocks(page, "python"):
        padded = "\n" * (line - 1) + code
        exec(compile(padded, str(page), "exec"), vars(example))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=named)
def test_every_command_shown_works(page, workplace, capsys):
    for _, code in blocks(page, "console"):
        for line in code.splitlines():
            if line.startswith("$ wakeful "):
                assert main(shlex.split(line.removeprefix("$ wakeful "))) in (0, 1), line
                assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_somewhere(page):
    text = page.read_text(encoding="utf-8")
    missing = [target for target in LINK.findall(text) if not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("tool", ["write_cli_reference", "write_api_reference", "write_architecture"])
def test_generated_pages_are_up_to_date(tool):
    command = [sys.executable, str(ROOT / "tools" / f"{tool}.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run python tools/{tool}.py\n{done.stdout}{done.stderr}"
