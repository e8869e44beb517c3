"""Compare a new fact with what is known, and decide: add, revise, supersede or skip, always with the reason.

Rules of the file:

- Numbers, dates, negation and names must be equal before two facts are taken for one, whatever their words.
- A fact is compared with rows as they were first worded, and a paraphrase never changes a row's words: merging is a
  star around the first wording, never a chain that drifts.
- Only another value of the same exclusive attribute of the same subject (or the denial of the same taste) retires a
  fact, and only one that the writing scope owns. The later in the world wins, whatever the order of arrival; the other
  keeps its interval.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from wakeful.memory.claims import Claim, fold
from wakeful.memory.receipts import Action
from wakeful.memory.settings import WritingSettings
from wakeful.memory.wording import overlap, wording
from wakeful.records import MemoryNode

MANY = 16
"""Sources and paraphrases that one row keeps by name; further ones are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be done with a candidate."""

    action: Action
    node: MemoryNode
    """To be written: the candidate, or the row that it belongs to, changed."""
    reason: str
    retired: tuple[MemoryNode, ...] = ()
    """Rows that it supersedes, as they are to be written."""
    begun: tuple[MemoryNode, ...] = ()
    """Later rows whose beginning is now known, since something else held before them."""
    write: bool = True
    """False: nothing changes."""


def claim_from(node: MemoryNode) -> Claim | None:
    """Read a row's claim from its properties; None when it has none."""
    subject, attribute, value = (node.properties.get(name) for name in ("subject", "attribute", "value"))
    if not isinstance(subject, str) or not isinstance(attribute, str):
        return None
    return Claim(
        subject=fold(subject),
        attribute=fold(attribute),
        value=str(value if value is not None else node.content),
        exclusive=node.properties.get("exclusive") is True,
        kind=str(node.properties.get("kind", "fact")),
        negated=node.properties.get("negated") is True,
    )


def properties_of(claim: Claim | None) -> dict[str, Any]:
    """The properties that carry a claim."""
    if claim is None:
        return {}
    properties: dict[str, Any] = {
        "subject": claim.subject,
        "attribute": claim.attribute,
        "value": claim.value,
        "kind": claim.kind,
    }
    if claim.exclusive:
        properties["exclusive"] = True
    if claim.negated:
        properties["negated"] = True
    return properties


def decide(candidate: MemoryNode, known: Iterable[MemoryNode], at: datetime, settings: WritingSettings) -> Decision:
    """Decide on a candidate, given the rows that may be the same or contradict it.

    ``known`` rows of other owners are compared, never changed. ``at`` is when we learn of it.
    """
    rows = list({row.id: row for row in known if row.id != candidate.id}.values())
    mine = claim_from(candidate)
    twin = _twin(candidate, mine, rows, settings)
    if twin is not None:
        return _again(candidate, *twin)
    rivals = [
        row
        for row in rows
        if mine is not None
        and row.scope == candidate.scope
        and row.superseded_at is None
        and (other := claim_from(row)) is not None
        and mine.rivals(other)
        and began(row) != began(candidate)
    ]
    if not rivals:
        return Decision(action="add", node=candidate, reason="nothing known says the same or contradicts it")
    return _contradiction(candidate, rivals, at)


def began(node: MemoryNode) -> datetime:
    """When a fact began to hold, as far as it is known."""
    return node.valid_from or node.asserted_at


def _twin(
    candidate: MemoryNode, mine: Claim | None, rows: Sequence[MemoryNode], settings: WritingSettings
) -> tuple[MemoryNode, str] | None:
    """The row that says the same, and how we know; the nearest by words."""
    new = wording(candidate.content)
    found: list[tuple[float, MemoryNode, str]] = []
    for row in rows:
        if row.superseded_at is not None or row.layer is not candidate.layer or not _overlaps_in_time(row, candidate):
            continue
        old, theirs = wording(row.content), claim_from(row)
        if mine is not None and theirs is not None and mine.subject != theirs.subject:
            continue
        if not new.same_particulars(old):
            continue
        if new.plain == old.plain:
            found.append((2.0, row, "the same words are known"))
        elif mine is not None and theirs is not None and mine.agrees(theirs):
            found.append((1.5, row, f"{mine.attribute} of {mine.subject} is known to be the same"))
        elif (mine is None) == (theirs is None) and not (mine and theirs and mine.attribute != theirs.attribute):
            share = overlap(new, old)
            if share >= settings.same and not (mine and theirs and fold(mine.value) != fold(theirs.value)):
                found.append(
                    (share, row, f"{share:.0%} of its words are known, with equal numbers, names and negation")
                )
    if not found:
        return None
    _, row, reason = max(found, key=lambda item: (item[0], item[1].scope == candidate.scope, item[1].id))
    return row, reason


def _overlaps_in_time(row: MemoryNode, candidate: MemoryNode) -> bool:
    """Whether both may hold at once: two stays at one place in different years are two facts."""
    ends = row.valid_until
    other = candidate.valid_until
    return (ends is None or ends > began(candidate)) and (other is None or other > began(row))


def _again(candidate: MemoryNode, row: MemoryNode, reason: str) -> Decision:
    """The fact is known: count it, keep where it was said again, and any other wording."""
    if row.scope != candidate.scope:
        return Decision(action="skip", node=row, reason=f"{reason}, in {row.scope.path}", write=False)
    properties = dict(row.properties)
    properties["times_said"] = int(properties.get("times_said", 1)) + 1
    sources = [each for each in (candidate.source.ref, *candidate.source.entries) if each]
    held = list(properties.get("said_in", ()))
    fresh = [each for each in sources if each not in held and each not in row.source.entries]
    if held or fresh:
        properties["said_in"] = [*held, *fresh][:MANY]
    if wording(candidate.content).plain != wording(row.content).plain:
        other = list(properties.get("also_said", ()))
        if candidate.content not in other and len(other) < MANY:
            properties["also_said"] = [*other, candidate.content]
    changed = replace(
        row,
        properties=properties,
        updated_at=max(row.updated_at, candidate.updated_at),
        importance=max(row.importance, candidate.importance),
    )
    return Decision(action="skip", node=changed, reason=f"{reason}; counted again")


def _contradiction(candidate: MemoryNode, rivals: Sequence[MemoryNode], at: datetime) -> Decision:
    later = [row for row in rivals if began(row) > began(candidate)]
    older = [row for row in rivals if began(row) < began(candidate) and row.valid_until is None]
    claim = claim_from(candidate)
    assert claim is not None
    name = f"{claim.attribute} of {claim.subject}"
    ended = candidate.valid_until is not None and candidate.valid_until <= at
    if ended or later:
        # It was so once: a late arrival never retires what is newer in the world.
        first = min((began(row) for row in later), default=None)
        until = candidate.valid_until
        if until is None or (first is not None and first < until):
            until = first
        superseding = min(later, key=lambda row: (began(row), row.id), default=None)
        past = replace(
            candidate,
            valid_from=None if ended else candidate.valid_from or candidate.asserted_at,
            valid_until=until,
            superseded_at=at if superseding is not None else None,
            superseded_by=superseding.id if superseding is not None else None,
        )
        before = tuple(_retired(row, past, at) for row in older if not ended)
        begun = tuple(replace(row, valid_from=row.asserted_at) for row in later if row.valid_from is None)
        reason = f"an earlier {name}; the later one stays"
        return Decision(action="add", node=past, reason=reason, retired=before, begun=begun)
    current = replace(candidate, valid_from=candidate.valid_from or candidate.asserted_at)
    retired = tuple(_retired(row, current, at) for row in older)
    values = ", ".join(str(row.properties.get("value", row.content)) for row in older)
    if not retired:
        return Decision(action="add", node=current, reason=f"{name} ended before; nothing current contradicts it")
    return Decision(action="supersede", node=current, reason=f"{name} was {values}", retired=retired)


def _retired(row: MemoryNode, by: MemoryNode, at: datetime) -> MemoryNode:
    return replace(
        row,
        valid_from=row.valid_from or row.asserted_at,
        valid_until=began(by),
        superseded_at=at,
        superseded_by=by.id,
    )


class Batch:
    """The rows as a batch has changed them so far, found by what may make them one with a candidate, or contradict it."""

    def __init__(self) -> None:
        self._rows: dict[str, MemoryNode] = {}
        self._by_key: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)

    def take(self, decision: Decision) -> None:
        """Add what a decision is going to write."""
        for node in (*decision.retired, *decision.begun, decision.node):
            self._rows[node.id] = node
            for key in _keys(node):
                self._by_key[key][node.id] = None

    def around(self, candidate: MemoryNode, known: Iterable[MemoryNode]) -> list[MemoryNode]:
        """The stored rows that were found for a candidate, as they will stand, and those of the batch that are near it."""
        if not self._rows:
            return list(known)
        near = {node_id: self._rows[node_id] for key in _keys(candidate) for node_id in self._by_key.get(key, ())}
        return list({row.id: self._rows.get(row.id, row) for row in (*known, *near.values())}.values())


def _keys(node: MemoryNode) -> list[tuple[str, ...]]:
    words = wording(node.content)
    keys: list[tuple[str, ...]] = [("plain", words.plain)]
    claim = claim_from(node)
    if claim is not None:
        keys.append(("claim", claim.subject, claim.attribute))
    # Statements that share most of their words share one of their longest.
    keys += [("term", term) for term in sorted(words.terms, key=lambda term: (-len(term), term))[:4]]
    return keys
