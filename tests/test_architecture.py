"""What importing the package costs: a held list of modules, no third party, no asyncio, no sqlite3."""

from __future__ import annotations

import subprocess
import sys

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
    import wakeful

    for name in wakeful.__all__:
        assert getattr(wakeful, name) is not None
    assert set(wakeful.__all__) <= set(dir(wakeful))
