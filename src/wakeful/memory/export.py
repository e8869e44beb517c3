"""Memory as records: lossless, readable, the same for the same content."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from wakeful.errors import InputError
from wakeful.ops import Change
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, MemoryScope, Source

FORMAT = 1

Record = dict[str, Any]


class Export(list[Record]):
    """The records of a scope and of all below it: a list of plain JSON objects, each with its ``kind``.

    Its text is JSON Lines, a record a line, with sorted keys; ``Export.read`` gives it back.
    """

    def __str__(self) -> str:
        return "\n".join(json.dumps(record, ensure_ascii=False, sort_keys=True) for record in self)

    def __contains__(self, item: object) -> bool:
        return item in str(self) if isinstance(item, str) else super().__contains__(item)

    def nodes(self) -> Iterator[MemoryNode]:
        """The nodes."""
        return (load_node(record) for record in self if record.get("kind") == "node")

    def edges(self) -> Iterator[MemoryEdge]:
        """The edges."""
        return (load_edge(record) for record in self if record.get("kind") == "edge")

    def changes(self) -> Iterator[Change]:
        """The history."""
        return (load_change(record) for record in self if record.get("kind") == "change")

    @classmethod
    def of(
        cls,
        nodes: Iterable[MemoryNode],
        edges: Iterable[MemoryEdge],
        changes: Iterable[Change],
        *,
        vectors: bool = True,
    ) -> Export:
        """Make records of rows."""
        made = cls([{"kind": "format", "format": FORMAT}])
        made += [dump_node(node, vectors=vectors) for node in nodes]
        made += [dump_edge(edge) for edge in edges]
        made += [dump_change(change) for change in changes]
        return made

    @classmethod
    def read(cls, data: str | Iterable[Mapping[str, Any]]) -> Export:
        """Read JSON Lines, or records. Raises ``InputError`` for anything else."""
        if not isinstance(data, str):
            return cls(dict(record) for record in data)
        made = cls()
        for number, line in enumerate(data.split("\n"), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                raise InputError(f"line {number} of the export is no JSON: {error}") from None
            if not isinstance(record, dict):
                raise InputError(f"line {number} of the export is no JSON object")
            made.append(record)
        return made


def dump_node(node: MemoryNode, *, vectors: bool = True) -> Record:
    """Give a node as JSON data."""
    record = _dump(node, kind="node")
    record["layer"] = str(node.layer)
    record["source"] = _dump(node.source, kind=None)
    record["embedding"] = base64.b64encode(node.embedding).decode() if vectors and node.embedding is not None else None
    return record


def dump_edge(edge: MemoryEdge) -> Record:
    """Give an edge as JSON data."""
    return _dump(edge, kind="edge")


def dump_change(change: Change) -> Record:
    """Give a history entry as JSON data."""
    return {
        "kind": "change",
        "node": dump_node(change.node, vectors=False),
        "action": change.action,
        "reason": change.reason,
        "at": change.at.isoformat(),
    }


def _dump(item: Any, *, kind: str | None) -> Record:
    record: Record = {} if kind is None else {"kind": kind}
    for each in fields(item):
        value = getattr(item, each.name)
        if isinstance(value, datetime):
            value = value.isoformat()
        elif isinstance(value, MemoryScope):
            value = [list(level) for level in value.levels]
        elif isinstance(value, tuple):
            value = list(value)
        elif isinstance(value, Mapping):
            value = dict(value)
        if not isinstance(value, (bytes, Source)):
            record[each.name] = value
    return record


def load_node(record: Mapping[str, Any]) -> MemoryNode:
    """Read a node. Raises ``InputError`` for what is none."""
    try:
        values = _load(record, MemoryNode)
        source = dict(record.get("source") or {})
        if "entries" in source:
            source["entries"] = tuple(source["entries"])
        values["source"] = Source(**source)
        values["layer"] = MemoryLayer(record["layer"])
        vector = record.get("embedding")
        values["embedding"] = base64.b64decode(vector) if vector else None
        return MemoryNode(**values)
    except (TypeError, KeyError, ValueError) as error:
        raise InputError(f"a record of the export is no node: {error}") from error


def load_edge(record: Mapping[str, Any]) -> MemoryEdge:
    """Read an edge. Raises ``InputError`` for what is none."""
    try:
        values = _load(record, MemoryEdge)
        values["evidence"] = tuple(values.get("evidence", ()))
        return MemoryEdge(**values)
    except (TypeError, KeyError, ValueError) as error:
        raise InputError(f"a record of the export is no edge: {error}") from error


def load_change(record: Mapping[str, Any]) -> Change:
    """Read a history entry. Raises ``InputError`` for what is none."""
    try:
        return Change(
            node=load_node(record["node"]),
            action=record["action"],
            reason=str(record.get("reason", "")),
            at=datetime.fromisoformat(record["at"]),
        )
    except (TypeError, KeyError, ValueError) as error:
        raise InputError(f"a record of the export is no history entry: {error}") from error


def _load(record: Mapping[str, Any], kind: type) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for each in fields(kind):
        if each.name not in record:
            continue
        value = record[each.name]
        if each.name == "scope":
            value = MemoryScope(tuple((str(level[0]), str(level[1])) for level in value))
        elif (each.name.endswith("_at") or each.name in ("valid_from", "valid_until")) and value is not None:
            value = datetime.fromisoformat(value)
        values[each.name] = value
    return values
