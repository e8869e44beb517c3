"""Write docs/reference/api.md from the docstrings of the front door. ``--check`` only says whether it is up to date."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import wakeful

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "api.md"
HEAD = """# Reference

What `import wakeful` gives. Names are loaded when they are first used. Adapters, stores, models and test helpers have
modules of their own: `wakeful.adapters`, `wakeful.stores`, `wakeful.models`, `wakeful.testing`.

This page is written by `python tools/write_api_reference.py` from the docstrings.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for name in sorted(wakeful.__all__, key=str.lower):
        parts.append(f"\n## {name}\n\n{_entry(name, getattr(wakeful, name))}")
    return re.sub(r"\n{3,}", "\n\n", "".join(parts)).rstrip() + "\n"


def _entry(name: str, thing: Any) -> str:
    if inspect.isclass(thing):
        return _class(name, thing)
    if callable(thing):
        return f"```text\n{name}{_signature(thing)}\n```\n\n{_doc(thing)}\n"
    return f"```text\n{name} = {thing!r}\n```\n"


def _class(name: str, thing: type) -> str:
    lines = [f"{_doc(thing)}\n"]
    if dataclasses.is_dataclass(thing):
        rows = [f"- `{field.name}`: `{field.type}`{_default(field)}" for field in dataclasses.fields(thing)]
        lines.append("\nFields:\n\n" + "\n".join(rows) + "\n")
    for member, value in sorted(vars(thing).items()):
        if member.startswith("_"):
            continue
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(function) and function.__doc__:
            lines.append(f"\n### {name}.{member}\n\n```text\n{member}{_signature(function)}\n```\n\n{_doc(function)}\n")
        elif isinstance(value, property) and value.__doc__:
            lines.append(f"\n### {name}.{member}\n\n{_doc(value)}\n")
    return "".join(lines)


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f" = `{field.default!r}`"
    return " (made anew)" if field.default_factory is not dataclasses.MISSING else ""


def _signature(function: Any) -> str:
    try:
        text = str(inspect.signature(function))
    except (TypeError, ValueError):
        return "(...)"
    return re.sub(r"<[^<>]* at 0x[0-9a-f]+>", "...", text.replace("'", ""))


def _doc(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").replace("``", "`")


def main() -> int:
    """Write the page, or check it."""
    text = page()
    if "--check" in sys.argv:
        return 0 if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text else 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    print(f"wrote {TARGET.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
