"""What importing the package costs: a held list of modules, no third party, no asyncio, no sqlite3; and no circles."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import wakeful

HELD = {"wakeful"}
"""Modules of the package that ``import wakeful`` loads."""

PROBE = """
import sys
before = set(sys.modules)
import wakeful
loaded = set(sys.modules) - before
print("\\n".join(sorted(loaded)))
"""

COMPACT = """
import sys
from wakeful import compact
compact([{"role": "user", "content": "hello"}], window=1000)
print("\\n".join(sorted(sys.modules)))
"""


def _run(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_the_held_list_and_nothing_else_of_it() -> None:
    loaded = _run(PROBE)
    assert {name for name in loaded if name.split(".")[0] == "wakeful"} == HELD
    foreign = {name.split(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"wakeful"}
    assert not foreign, f"third-party packages are loaded: {foreign}"
    assert not {"asyncio", "sqlite3", "typing_extensions"} & loaded


def test_a_user_who_only_compacts_needs_no_third_party_package_and_no_asyncio() -> None:
    loaded = {name.split(".")[0] for name in _run(COMPACT)}
    assert not {"asyncio", "sqlite3", "numpy", "pydantic", "httpx", "langchain_core", "anthropic", "openai"} & loaded


def test_every_name_of_the_front_door_can_be_had() -> None:
    for name in wakeful.__all__:
        assert getattr(wakeful, name) is not None
    assert set(wakeful.__all__) <= set(dir(wakeful))


ROOT = Path(wakeful.__file__).parent


def _imports(path: Path, known: set[str]) -> set[str]:
    """Modules of the package that a module imports, inside functions and for types too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            whole = {f"{node.module}.{each.name}" for each in node.names}
            found |= (whole & known) or ({node.module} & known)
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names} & known
    return found


def _circles(graph: dict[str, set[str]]) -> set[str]:
    """Modules on a circle, or behind one: what is left when modules that import nothing more are taken away."""
    left = {name: set(targets) - {name} for name, targets in graph.items()}
    while done := {name for name, targets in left.items() if not targets}:
        left = {name: targets - done for name, targets in left.items() if name not in done}
    return {name for name in left if _reaches(left, name)}


def _reaches(graph: dict[str, set[str]], start: str) -> bool:
    seen: set[str] = set()
    ahead = set(graph[start])
    while ahead:
        name = ahead.pop()
        if name == start:
            return True
        if name not in seen:
            seen.add(name)
            ahead |= graph.get(name, set())
    return False


@pytest.mark.parametrize(
    "room",
    [
        "compaction",
        "dialects",
        "engine",
        "models",
        "turn",
        "assembly",
        "memory",
        "retrieval",
        "consolidation",
        "stores",
        "cli",
    ],
)
def test_no_module_imports_what_imports_it(room: str) -> None:
    paths = {
        ".".join(("wakeful", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in (ROOT / room).rglob("*.py")
    }
    assert _circles({name: _imports(path, set(paths)) for name, path in paths.items()}) == set()
