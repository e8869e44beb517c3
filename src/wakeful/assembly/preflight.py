"""Pre-flight: skills with a precondition become rules in the prompt, and a gate that refuses a call too early.

A skill is a PROCEDURAL node with ``properties["tool"]`` (the tool it is about) and ``properties["preconditions"]``
(tools that must have succeeded before). The gate fails closed: a precondition that can't be read refuses the call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from wakeful.assembly.fence import escape
from wakeful.records import MemoryLayer, MemoryNode


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a tool call is refused, worded for the model."""

    tool: str
    missing: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Skill:
    """The part of a skill that pre-flight reads."""

    node_id: str
    tool: str
    preconditions: tuple[str, ...] | None
    """None: present but not readable."""
    depth: int
    """Levels of the owner's scope: the nearest one to the reader wins."""


def skills_of(nodes: Iterable[MemoryNode]) -> tuple[Skill, ...]:
    """Active, trusted skills with a precondition, one a tool: the nearest scope wins over its ancestors.

    In the order of tool names, so the same skills always give the same bytes.
    """
    best: dict[str, Skill] = {}
    for node in nodes:
        tool = node.properties.get("tool")
        raw = node.properties.get("preconditions", node.properties.get("precondition"))
        if node.layer is not MemoryLayer.PROCEDURAL or node.status != "active" or node.source.trust == "low":
            continue
        if not isinstance(tool, str) or not tool or raw is None:
            continue
        skill = Skill(node.id, tool, _names(raw), len(node.scope.levels))
        known = best.get(tool)
        if known is None or (skill.depth, skill.node_id) > (known.depth, known.node_id):
            best[tool] = skill
    return tuple(best[tool] for tool in sorted(best))


def _names(raw: object) -> tuple[str, ...] | None:
    if isinstance(raw, str):
        return (raw,) if raw.strip() else None
    if isinstance(raw, list | tuple) and all(isinstance(item, str) and item.strip() for item in raw):
        return tuple(raw)
    return None


def rules_of(skills: Iterable[Skill]) -> tuple[str, ...]:
    """Two lines a skill: what to call first, and what not to call until then."""
    lines = []
    for skill in skills:
        tool = escape(skill.tool)
        if skill.preconditions is None:
            lines.append(f"Do not call {tool}: its precondition can't be read; ask for help.")
            continue
        before = ", ".join(escape(name) for name in skill.preconditions)
        lines.append(f"Call {before} before {tool}.")
        lines.append(f"Do not call {tool} until {before} has succeeded.")
    return tuple(lines)


def gate(tool: str, succeeded: Collection[str], skills: Iterable[Skill]) -> Refusal | None:
    """Refuse a call whose precondition is unmet; None lets it pass.

    ``succeeded`` names the tools that have returned without an error in this conversation.
    """
    for skill in skills:
        if skill.tool != tool:
            continue
        if skill.preconditions is None:
            return Refusal(
                tool, (), f"{tool} was not run: its precondition can't be read. Ask a person to mend the skill."
            )
        missing = tuple(name for name in skill.preconditions if name not in succeeded)
        if missing:
            names = ", ".join(missing)
            return Refusal(tool, missing, f"{tool} was not run: call {names} first, then {tool} again.")
    return None
