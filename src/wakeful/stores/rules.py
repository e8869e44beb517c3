"""The rules that every store keeps, however it keeps its rows: who writes what, how rows merge, when they fire."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, assert_never, get_args

from wakeful.errors import EmbeddingMismatch, MemoryContractError, StaleWriter
from wakeful.ids import content_id
from wakeful.ops import MemoryOp, Order, QueryNodes, Touch
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, MemoryScope, check_text
from wakeful.stores.protocol import EmbeddingSpace

FIXED_FIELDS = frozenset(("id", "scope", "recorded_at"))
"""Fields of a node that ``UpdateNodes`` may not change."""

_NODE_FIELDS = frozenset(item.name for item in fields(MemoryNode))


@dataclass(frozen=True, slots=True)
class Reminder:
    """When a node fires: at an instant, or on an event."""

    due_at: datetime | None
    event: str | None

    @property
    def occurrence(self) -> str:
        """The key that ``AckDue`` settles."""
        return self.due_at.isoformat() if self.due_at is not None else self.event or ""


def reminder_of(node: MemoryNode) -> Reminder | None:
    """Read when a node fires; None for one that is no reminder or is done. Raises ``MemoryContractError``."""
    if node.layer is not MemoryLayer.PROSPECTIVE or node.properties.get("done") is True:
        return None
    due, event = node.properties.get("due_at"), node.properties.get("event")
    if due is not None:
        return Reminder(_instant(due), None)
    if event is None:
        return None
    if not isinstance(event, str) or not event:
        raise MemoryContractError(f"a reminder's event is a non-empty string, not {event!r}")
    return Reminder(None, event)


def _instant(value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise MemoryContractError(f"a reminder's due_at is an ISO 8601 time, not {value!r}") from None
    if moment.utcoffset() is None:
        raise MemoryContractError(f"a reminder's due_at is naive ({value}); give it an offset, e.g. {value}+00:00")
    return moment.astimezone(UTC)


def same_occurrence(reminder: Reminder, occurrence: str) -> bool:
    """Whether ``occurrence`` names the reminder's pending one; instants are compared, not their spelling."""
    if reminder.due_at is None:
        return occurrence == reminder.event
    try:
        return _instant(occurrence) == reminder.due_at
    except MemoryContractError:
        return False


def fires(node: MemoryNode, at: datetime, event: str | None) -> bool:
    """Whether an unclaimed reminder is to be given at ``at``, or on ``event``."""
    reminder = reminder_of(node)
    if reminder is None or not node.visible_at(at):
        return False
    if event is not None:
        return reminder.event == event
    return reminder.due_at is not None and reminder.due_at <= at


def settled(node: MemoryNode, until: datetime | None) -> MemoryNode:
    """Give the reminder after its occurrence: done, or due again at ``until``."""
    properties = dict(node.properties)
    if until is None:
        properties["done"] = True
    else:
        properties["due_at"] = until.astimezone(UTC).isoformat()
    return replace(node, properties=properties)


def prepare(node: MemoryNode, scope: MemoryScope, now: datetime) -> MemoryNode:
    """Check a node that is to be written, and stamp what the store stamps. Raises ``MemoryContractError``."""
    node = check_node(node, scope)
    return node if node.recorded_at is not None else replace(node, recorded_at=now)


def check_node(node: MemoryNode, scope: MemoryScope) -> MemoryNode:
    """Check a node that is to be written, and put a reminder's time in UTC. Raises ``MemoryContractError``."""
    if node.scope.levels != scope.levels:
        raise MemoryContractError(
            f"node {node.id!r} is owned by {node.scope.path}, not by {scope.path}; a scope writes only its own rows"
        )
    if node.layer is MemoryLayer.PROSPECTIVE:
        reminder = reminder_of(node)
        if reminder is not None and reminder.due_at is not None:
            node = replace(node, properties={**node.properties, "due_at": reminder.due_at.isoformat()})
    return node


def check_owner(edge: MemoryEdge, scope: MemoryScope) -> None:
    """Refuse an edge that another scope owns. Raises ``MemoryContractError``."""
    if edge.scope is not scope and edge.scope.levels != scope.levels:
        raise MemoryContractError(
            f"edge {edge.id!r} is owned by {edge.scope.path}, not by {scope.path}; a scope writes only its own rows"
        )


def prepare_edge(edge: MemoryEdge, scope: MemoryScope, now: datetime) -> MemoryEdge:
    """Check an edge that is to be written, and stamp it. Raises ``MemoryContractError``."""
    check_owner(edge, scope)
    return edge if edge.recorded_at is not None else replace(edge, recorded_at=now)


def merge(old: MemoryNode, new: MemoryNode) -> MemoryNode:
    """Merge a node that is written again: the new values, and what a second writing must not lose."""
    values: dict[str, Any] = {
        "asserted_at": min(old.asserted_at, new.asserted_at),
        "updated_at": max(old.updated_at, new.updated_at),
        "accessed_at": _latest(old.accessed_at, new.accessed_at),
        "recorded_at": old.recorded_at,
        "access_count": max(old.access_count, new.access_count),
        "activation_count": max(old.activation_count, new.activation_count),
    }
    if new.embedding is None and (old.label, old.content) == (new.label, new.content):
        values |= {"embedding": old.embedding, "embedding_model": old.embedding_model}
    elif new.embedding is None:
        values["embedding_model"] = None
    return replace(new, **values)


def merge_edge(old: MemoryEdge, new: MemoryEdge) -> MemoryEdge:
    """Merge an edge that is written again: the new values, its evidence joined, its first times kept."""
    return replace(
        new,
        id=old.id,
        evidence=tuple(dict.fromkeys((*old.evidence, *new.evidence))),
        asserted_at=min(old.asserted_at, new.asserted_at),
        updated_at=max(old.updated_at, new.updated_at),
        recorded_at=old.recorded_at,
    )


def _latest(one: datetime | None, other: datetime | None) -> datetime | None:
    if one is None or other is None:
        return one or other
    return max(one, other)


def change(node: MemoryNode, values: Mapping[str, Any]) -> MemoryNode:
    """Change single fields of a node. Raises ``MemoryContractError`` for a field that is unknown or fixed."""
    for name in values:
        if name in FIXED_FIELDS or name not in _NODE_FIELDS:
            known = ", ".join(sorted(_NODE_FIELDS - FIXED_FIELDS))
            raise MemoryContractError(f"a node's {name!r} can't be changed; these can: {known}")
    values = dict(values)
    text_moved = any(name in values and values[name] != getattr(node, name) for name in ("label", "content"))
    if text_moved and values.get("embedding") is None:
        values |= {"embedding": None, "embedding_model": None}
    changed = replace(node, **values)
    return prepare(changed, node.scope, changed.recorded_at or changed.updated_at)


def touched(node: MemoryNode, use: Touch) -> MemoryNode:
    """Give the node after one more use: a count goes up, the last use moves, nothing else."""
    at = _latest(node.accessed_at, use.at)
    if use.kind == "access":
        return replace(node, accessed_at=at, access_count=node.access_count + 1)
    return replace(node, accessed_at=at, activation_count=node.activation_count + 1)


def last_use(node: MemoryNode) -> datetime:
    """The later of the last assertion or edit and the last use."""
    return node.updated_at if node.accessed_at is None else max(node.updated_at, node.accessed_at)


def in_ranges(node: MemoryNode, each: QueryNodes) -> bool:
    """Whether a node's times lie in the ranges of a query."""
    return (
        (each.idle_since is None or last_use(node) >= each.idle_since)
        and (each.idle_before is None or last_use(node) < each.idle_before)
        and (each.accessed_since is None or (node.accessed_at is not None and node.accessed_at >= each.accessed_since))
        and (each.expires_before is None or (node.expires_at is not None and node.expires_at <= each.expires_before))
        and (
            each.superseded_before is None
            or (node.superseded_at is not None and node.superseded_at < each.superseded_before)
        )
    )


def order_key(node: MemoryNode, order: Order) -> Any:
    """What ``QueryNodes`` orders by; equal ones stand in id order, in the same direction."""
    if order == "updated":
        return node.updated_at
    if order == "asserted":
        return node.asserted_at
    if order == "recorded":
        return node.recorded_at
    if order == "importance":
        return node.importance
    if order == "id":
        return node.id
    assert_never(order)


def check_after(query: QueryNodes) -> None:
    """Refuse to continue behind an id in another order. Raises ``MemoryContractError``."""
    if query.order != "id":
        raise MemoryContractError(f'after= goes with order="id", not with order={query.order!r}')


def state_text(value: Any) -> str:
    """Give a state value as JSON text. Raises ``MemoryContractError`` for what JSON can't hold."""
    return check_properties({"value": value})[len('{"value":') : -1]


def check_properties(values: Mapping[str, Any]) -> str:
    """Give a mapping as JSON text. Raises ``MemoryContractError`` for what JSON can't hold."""
    if not values:
        return "{}"
    try:
        text = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode("utf-8")
    except (TypeError, ValueError) as error:
        raise MemoryContractError(f"properties hold JSON values only: {error}") from None
    if "\\u0000" in text and _ESCAPED_NUL.search(text):
        raise MemoryContractError("properties hold a NUL character, which no store can keep; remove it")
    return text


_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""An escape of NUL in JSON text, and not a backslash that is followed by ``u0000``."""


def check_names(each: MemoryOp) -> None:
    """Refuse an operation that names what no store can keep, alike whether it reads or writes.

    Raises ``MemoryContractError`` for a NUL character or a lone surrogate in an id, a key or a name. A query's terms may
    hold anything: they are looked up, and found or not.
    """
    for name in _NAMES[type(each)]:
        value = getattr(each, name)
        for text in (value,) if isinstance(value, str) else value or ():
            if isinstance(text, str):
                check_text(text, f"{type(each).__name__}.{name}")


_NAMES = {
    kind: tuple(item.name for item in fields(kind) if item.name != "terms" and "str" in str(item.type))
    for kind in get_args(MemoryOp)
}
"""The fields of each operation that hold text."""


def has_properties(held: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether each wanted top-level property is held with an equal value; ``True`` is not ``1``."""
    missing = object()
    for key, value in wanted.items():
        found = held.get(key, missing)
        if found is missing or found != value or isinstance(found, bool) is not isinstance(value, bool):
            return False
    return True


def check_vectors(held: EmbeddingSpace | None, nodes: Iterable[MemoryNode]) -> EmbeddingSpace | None:
    """Check the vectors of nodes against the store's embedding, and give it, declared by the first vector.

    Raises ``EmbeddingMismatch`` for a vector of another model or size.
    """
    for node in nodes:
        if node.embedding is None:
            continue
        size = len(node.embedding) // 4
        if node.embedding_model is None or not size or len(node.embedding) % 4:
            raise MemoryContractError(f"node {node.id!r}: a vector is float32 bytes with the id of its model")
        if held is None or (held.model == node.embedding_model and not held.dimensions):
            held = EmbeddingSpace(node.embedding_model, size)
        elif held.model != node.embedding_model or held.dimensions != size:
            raise EmbeddingMismatch(
                f"the store holds vectors of {held.model!r} ({held.dimensions} dimensions); node {node.id!r} brings "
                f"one of {node.embedding_model!r} ({size} dimensions); run reembed to move the store to another model"
            )
    return held


def tombstone_key(scope: MemoryScope) -> str:
    """The key under which an erasure is remembered: a hash, so that the name itself is gone."""
    return content_id("tombstone", scope.path)


def check_tombstone(erased_at: datetime | None, written_at: datetime | None, scope: MemoryScope) -> None:
    """Refuse a write that was prepared before its scope was erased. Raises ``StaleWriter``."""
    if erased_at is not None and written_at is not None and written_at <= erased_at:
        raise StaleWriter(
            f"{scope.path} was erased at {erased_at.isoformat()}, after this write was prepared "
            f"({written_at.isoformat()}); nothing was written"
        )
