"""Rules that a list of messages can't show alone: what a change did to the reasoning that is bound to it.

A history is compared with what was made of it.

| code | rule |
|---|---|
| A5 | thinking that is kept is unchanged |
| A8 | thinking is kept only when all before it is unchanged (every format whose facts say ``thinking="all"``) |
| R4 | an item that was made with reasoning keeps it, or loses its id |

L3 (ids that a LangChain message holds of Responses items) is kept by ``rewrite``, which takes them away with the
reasoning. Formats that bind less (``current_turn``: G4 is checked by the validator; ``none``) have no problems here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wakeful.dialects.native import field
from wakeful.dialects.protocol import Dialect, Problem, Thinking


def bound_problems(dialect: Dialect, before: Sequence[Any], after: Sequence[Any]) -> list[Problem]:
    """Check A5 and A8, or R4, of a history ``after`` that was made from ``before``. Linear in both.

    Messages are compared by identity first and by equality then.
    """
    if dialect.facts.thinking == "all":
        return _prefixes(dialect, before, after)
    return _items(before, after) if dialect.facts.thinking == "items" else []


def _thoughts(dialect: Dialect, message: Any) -> list[Thinking]:
    return [block for block in dialect.read(message).blocks if isinstance(block, Thinking)]


def _prefixes(dialect: Dialect, before: Sequence[Any], after: Sequence[Any]) -> list[Problem]:
    same = 0
    while same < len(before) and same < len(after) and _equal(before[same], after[same]):
        same += 1
    known = {dialect.dumps(message) for message in before if _thoughts(dialect, message)}
    problems = []
    for index in range(same, len(after)):
        if not _thoughts(dialect, after[index]):
            continue
        if dialect.dumps(after[index]) in known:
            why = "messages before this thinking were changed; remove the thinking blocks"
            problems.append(Problem("A8", index, why))
        else:
            why = "a message with thinking was changed; keep it whole, or remove its thinking blocks"
            problems.append(Problem("A5", index, why))
    return problems


def _equal(one: Any, other: Any) -> bool:
    return one is other or bool(one == other)


def _items(before: Sequence[Any], after: Sequence[Any]) -> list[Problem]:
    """Check R4: an id that stood behind reasoning stands behind the same reasoning, with nothing lost between."""
    made = _reasons(before)
    now = _reasons(after)
    problems = []
    for item_id, reasons in made.items():
        if reasons[1] and item_id in now and now[item_id][1] != reasons[1]:
            why = f"{item_id} was made with the reasoning {reasons[1]}, which is gone; remove the item's id"
            problems.append(Problem("R4", now[item_id][0], why))
    return sorted(problems, key=lambda problem: problem.index)


def _reasons(items: Sequence[Any]) -> dict[str, tuple[int, str]]:
    """Give, by an item's id, its place and the id of the reasoning that its step began with (empty: none)."""
    found: dict[str, tuple[int, str]] = {}
    reasoning = ""
    for index, item in enumerate(items):
        item_id, what = field(item, "id"), field(item, "type")
        if what == "reasoning":
            reasoning = item_id if isinstance(item_id, str) else ""
        elif isinstance(what, str) and (
            what.endswith("_output") or (what == "message" and field(item, "role") != "assistant")
        ):
            reasoning = ""
        elif isinstance(item_id, str):
            found[item_id] = (index, reasoning)
    return found
