"""Contradictions are resolved: of two values of one attribute of one subject, the later in the world is current.

Two facts contradict each other when subject and attribute are the same, and their values differ while both are
``exclusive`` (one value at a time), or one denies the taste that the other states. Where the values differ and the facts
are not exclusive, a model may be asked whether the later one replaces the earlier; without an answer both stand.

The older keeps its interval: ``valid_until`` is the newer one's start. Order of arrival does not matter: the time in the
world does, and facts of the same time stand side by side. A fact of lower trust never retires one of higher trust.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wakeful.consolidation.judging import rulings
from wakeful.consolidation.phase import Cycle, Outcome, Phase, seen, trusted, unmoved
from wakeful.consolidation.wording import folded
from wakeful.needs import Flow, run
from wakeful.ops import Change, Log, QueryNodes, UpdateNodes
from wakeful.records import MemoryLayer, MemoryNode

SYSTEM = (
    "You keep the facts of a memory in order. Each pair states two values of one attribute of one subject, the older "
    'first. Rule for each pair: "second" when the newer fact replaces the older one, so that the older no longer holds; '
    '"both" when both may hold, or when you can\'t tell. Give "rulings"; each has "pair", "verdict" and a short '
    '"reason".'
)
"""System prompt of the judge. ``both`` is what stands without a judge, so doubt changes nothing."""
JUDGED = "judged: "
MOST_PAIRS = 60
"""Pairs that are judged in a cycle."""
EARLIER = 3
"""Earlier facts of the same attribute that a fact is judged against: the nearest in time."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a node claims, as far as a contradiction needs it."""

    key: tuple[str, str]
    """(subject, attribute), folded."""
    value: str
    exclusive: bool
    taste: bool
    negated: bool

    def contradicts(self, other: Claim) -> bool:
        """Whether the two, of one subject and attribute, can't both hold."""
        if self.key != other.key:
            return False
        if self.exclusive and other.exclusive:
            return self.value != other.value
        return self.taste and other.taste and self.value == other.value and self.negated != other.negated


def claim(node: MemoryNode) -> Claim | None:
    """Read a node's claim; None for one without a subject and an attribute."""
    properties = node.properties
    subject, attribute = properties.get("subject"), properties.get("attribute")
    if not isinstance(subject, str) or not isinstance(attribute, str) or not folded(subject) or not folded(attribute):
        return None
    return Claim(
        key=(folded(subject), folded(attribute)),
        value=folded(str(properties.get("value", node.content))),
        exclusive=properties.get("exclusive") is True,
        taste=properties.get("kind") == "preference",
        negated=properties.get("negated") is True,
    )


def since_when(node: MemoryNode) -> datetime:
    """When a fact began to be true, as far as it is known."""
    return node.valid_from or node.asserted_at


def later(older: MemoryNode, newer: MemoryNode) -> bool:
    """Whether a fact may retire another: it began later in the world, and is trusted as much."""
    return since_when(newer) > since_when(older) and trusted(newer) >= trusted(older)


def supersede(cycle: Cycle) -> Flow[Outcome]:
    """Retire the older of contradicting facts that the window touches."""
    touched = {each.key for node in cycle.layer(MemoryLayer.SEMANTIC) if (each := claim(node)) is not None}
    if not touched:
        return Outcome(rows_read=len(cycle.recent))
    groups, read = yield from _rivals(cycle, touched)
    retired: dict[str, tuple[MemoryNode, MemoryNode, str]] = {}
    for group in groups:
        for at, (older, theirs) in enumerate(group):
            heir = next(
                (node for node, mine in group[at + 1 :] if mine.contradicts(theirs) and later(older, node)), None
            )
            if heir is not None:
                retired[older.id] = older, heir, _reason(theirs, heir)
    doubtful = list(_doubtful(cycle, groups, retired)) if cycle.model else []
    ruled, notes = yield from rulings(cycle, doubtful[:MOST_PAIRS], system=SYSTEM, verdicts=("second", "both"))
    for at, ruling in sorted(ruled.items()):
        older, newer = doubtful[at]
        if ruling.verdict == "second" and older.id not in retired and newer.id not in retired:
            retired[older.id] = older, newer, f"{JUDGED}{ruling.reason}"
    if ruled:
        still = yield from unmoved(cycle, [node for pair in doubtful for node in pair])
        retired = {key: each for key, each in retired.items() if key in still or not each[2].startswith(JUDGED)}
    if len(doubtful) > MOST_PAIRS:
        notes = (*notes, f"{len(doubtful) - MOST_PAIRS} pairs not judged: a cycle judges {MOST_PAIRS}")
    return _outcome(cycle, retired, read, notes)


def _rivals(cycle: Cycle, touched: set[tuple[str, str]]) -> Flow[tuple[list[list[tuple[MemoryNode, Claim]]], int]]:
    """Current facts of the touched subjects and attributes, each group in the order of the world."""
    attributes = sorted(
        {
            str(node.properties["attribute"])
            for node in cycle.layer(MemoryLayer.SEMANTIC)
            if (each := claim(node)) is not None and each.key in touched
        }
    )
    found = yield from run(
        *(
            QueryNodes(
                scope=cycle.scope,
                visibility=cycle.visible(layers=(MemoryLayer.SEMANTIC,)),
                properties={"attribute": attribute},
                owned_only=True,
                limit=1_000,
            )
            for attribute in attributes
        )
    )
    groups: dict[tuple[str, str], dict[str, tuple[MemoryNode, Claim]]] = defaultdict(dict)
    for nodes in found:
        for node in cycle.own(nodes):
            if (each := claim(node)) is not None and each.key in touched:
                groups[each.key][node.id] = node, each
    ordered = [
        sorted(group.values(), key=lambda pair: (since_when(pair[0]), pair[0].updated_at, pair[0].id))
        for group in groups.values()
    ]
    return ordered, sum(len(nodes) for nodes in found)


def _doubtful(
    cycle: Cycle, groups: list[list[tuple[MemoryNode, Claim]]], retired: dict[str, Any]
) -> Iterator[tuple[MemoryNode, MemoryNode]]:
    """Pairs (older, newer) that the rule can't decide, of which one was not there in the last cycle."""
    for group in groups:
        alive = [(node, each) for node, each in group if node.id not in retired]
        for at, (newer, mine) in enumerate(alive):
            for older, theirs in alive[max(0, at - EARLIER) : at]:
                decided = mine.value == theirs.value or (mine.exclusive and theirs.exclusive)
                if not decided and later(older, newer) and (cycle.fresh(older) or cycle.fresh(newer)):
                    yield older, newer


def _reason(old: Claim, heir: MemoryNode) -> str:
    # Nothing of the heir's text: it may be forgotten one day, and this stands in the history of another row.
    subject, attribute = old.key
    return f"another {attribute} of {subject} holds since {since_when(heir):%Y-%m-%d} ({heir.id})"


def _outcome(
    cycle: Cycle, retired: dict[str, tuple[MemoryNode, MemoryNode, str]], read: int, notes: tuple[str, ...]
) -> Outcome:
    changes: dict[str, dict[str, Any]] = {}
    log: list[Change] = []
    said = [f"{older.content[:60]!r}: {reason}" for older, _, reason in retired.values()]
    for older, heir, reason in retired.values():
        kept = f"judged to be replaced ({heir.id})" if reason.startswith(JUDGED) else reason
        changes[older.id] = {
            "superseded_at": cycle.started_at,
            "superseded_by": heir.id,
            "valid_until": older.valid_until or since_when(heir),
        }
        log.append(Change(node=older, action="supersede", reason=kept, at=cycle.started_at))
    update = UpdateNodes(scope=cycle.scope, changes=changes, expected=seen(older for older, _, _ in retired.values()))
    return Outcome(
        batches=((update, Log(cycle.scope, tuple(log))),) if changes else (),
        changed=len(changes),
        rows_read=read,
        notes=(*said[:20], *notes),
    )


SUPERSEDE = Phase(
    name="supersede", reads=("properties",), writes=("superseded_at", "valid_until", "history"), run=supersede
)
