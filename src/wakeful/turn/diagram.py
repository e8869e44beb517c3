"""Draw the machine from its table: the reference page is generated, never written."""

from __future__ import annotations

from wakeful.turn.machine import START, TABLE
from wakeful.turn.states import TERMINAL, Phase

INTRO = """# The turn's machine

Generated from `wakeful.turn.machine.TABLE` by `python -m wakeful.turn.diagram`; a test keeps it true.

The machine is pure: `step(state, event) -> (state, effects)`. The last effect of a step blocks, and its answer is the
next event. An event that has no row in a state changes nothing.
"""


def mermaid() -> str:
    """Give the machine as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {START.value}"]
    edges: dict[tuple[str, str], list[str]] = {}
    for (phase, event), row in TABLE.items():
        for target in row.to:
            if target is phase and event.__name__ in ("Steer", "Resume"):
                continue
            edges.setdefault((phase.value, target.value), []).append(event.__name__)
    lines += [f"    {source} --> {target}: {', '.join(names)}" for (source, target), names in edges.items()]
    lines += [f"    {phase.value} --> [*]" for phase in Phase if phase in TERMINAL]
    return "\n".join(lines)


def table() -> str:
    """Give the machine as a Markdown table."""
    lines = ["| state | event | does | next states |", "|---|---|---|---|"]
    order = {phase: index for index, phase in enumerate(Phase)}
    for (phase, event), row in sorted(TABLE.items(), key=lambda item: order[item[0][0]]):
        targets = ", ".join(f"`{target.value}`" for target in row.to)
        lines.append(f"| `{phase.value}` | `{event.__name__}` | {row.does} | {targets} |")
    return "\n".join(lines)


def page() -> str:
    """Give the whole reference page."""
    return f"{INTRO}\n```mermaid\n{mermaid()}\n```\n\n{table()}\n"


if __name__ == "__main__":
    print(page(), end="")
