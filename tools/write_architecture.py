"""Write ARCHITECTURE.md: the floors, how data flows, and a line for each module from its docstring.

``--check`` only says whether it is up to date.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "wakeful"
TARGET = ROOT / "ARCHITECTURE.md"
FLOORS = (
    ("Doors: thin leaves that parse, call and render", ("cli", "adapters", "testing")),
    ("Hall: the verbs, the drivers, the shells", ("engine",)),
    ("Cellar: the only code that reaches a database, a model or an embedder", ("stores", "models")),
    (
        "Rooms: they decide, and do no I/O",
        ("compaction", "retrieval", "assembly", "memory", "consolidation", "turn"),
    ),
    ("Furniture: what every floor may use", ("dialects", "")),
)
HEAD = """# Architecture

Wakeful is the context layer for LLM agents: four verbs (`compact`, `assemble`, `remember`/`recall`, `consolidate`) and an
agent that runs them.

```text
doors      cli   adapters   testing                    parse, call, render
hall       engine                                      verbs, drivers, Agent, Memory, Window
cellar     stores  |  models                           databases, models, embedders
rooms      compaction | retrieval | assembly | memory | consolidation | turn
furniture  dialects · conversation · needs · ops · records · ids · errors
```

**Imports point down only; rooms do not import each other; rooms and furniture do no I/O.** `lint-imports` holds it, and a new
package needs a floor before CI passes.

Three ideas carry everything:

1. **Native messages, never converted.** A `Dialect` reads and edits a provider's own message in place. What is not touched
   comes back as the very same object.
2. **Rooms think, the cellar acts.** What decides is a pure function or a *flow*: a generator that yields needs and is sent
   the answers. It is written once, driven sync or async by `engine/drive.py`, and tested by hand.
3. **Decisions are data.** A compaction is a plan of moves, a store call a tuple of operations, a recall a list of hits with
   reasons.

```text
messages ─► read (dialect) ─► measure ─► rounds ─► plan ─► [digest asks a model] ─► apply ─► verify ─► fewer messages
query ─► scope ─► triage ─► recall (words ∪ meaning ─► fuse ─► activation ─► rank) ─► assemble (strata, budget) ─► prompt
answer ─► extract ─► scrub ─► reconcile (add | revise | supersede | skip) ─► nodes and edges
clock ─► window of recent nodes ─► phases ─► operations ─► one transaction a batch ─► report
```

A turn of an agent is these in order; `turn/machine.py` is the only place that knows the order.

The lists below are written by `python tools/write_architecture.py` from the modules' docstrings.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, rooms in FLOORS:
        parts.append(f"\n## {title}\n")
        for room in rooms:
            parts += _room(room)
    return "".join(parts)


def _room(room: str) -> list[str]:
    folder = SOURCE / room if room else SOURCE
    files = sorted(folder.rglob("*.py")) if room else sorted(folder.glob("*.py"))
    lines = []
    if room:
        lines.append(f"\n### {room}\n\n{_first(folder / '__init__.py')}\n")
    lines.append("\n| module | what it owns |\n|---|---|\n")
    for path in files:
        if path.name != "__init__.py" or (path.parent != folder or not room):
            lines.append(f"| `{path.relative_to(SOURCE).as_posix()}` | {_first(path)} |\n")
    return lines


def _first(path: Path) -> str:
    """The first paragraph of a module's docstring, on one line."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(doc.split("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")


def main() -> int:
    """Write the page, or check it."""
    text = page()
    if "--check" in sys.argv:
        return 0 if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text else 1
    TARGET.write_text(text, encoding="utf-8")
    print(f"wrote {TARGET.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
