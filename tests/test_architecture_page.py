"""The architecture page names every module, and no module that is not there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "wakeful"
ROW = re.compile(r"^\| `([^`]+\.py)` \| (.+) \|$", re.MULTILINE)


def rows() -> list[tuple[str, str]]:
    return ROW.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))


def sections() -> set[str]:
    """Files of the packages that have a heading of their own, with their docstring under it."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return {f"{name}/__init__.py" for name in re.findall(r"^### ([\w/]+)$", page, re.MULTILINE)}


def modules() -> set[str]:
    return {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if path.read_text(encoding="utf-8")}


def test_every_module_has_its_line():
    assert sorted(modules() - {name for name, _ in rows()} - sections()) == []


def test_every_line_is_of_a_module_that_exists():
    assert [name for name, _ in rows() if not (SOURCE / name).is_file()] == []


def test_no_module_has_two_lines():
    names = [name for name, _ in rows()]
    assert sorted(names) == sorted(set(names))
