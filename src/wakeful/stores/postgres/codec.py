"""Records to rows and back, and the vector type that the driver does not know.

Rows to be written travel as one JSON document a statement: one parameter, whatever the number of rows.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Any

from psycopg import AsyncConnection, Connection
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from wakeful.ops import Change
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, MemoryScope, Source
from wakeful.sketches import Sketch, bag_of, said_key
from wakeful.stores import rules

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_EPOCH_MICROSECONDS = 946_684_800_000_000
_TIMES = (
    *("asserted_at", "updated_at", "accessed_at", "valid_from", "valid_until", "recorded_at", "superseded_at"),
    "expires_at",
)


class HalfVector:
    """A vector to be sent: little-endian float32 bytes, kept by the database at half the precision."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw


class _HalfVectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: HalfVector) -> bytes:
        """Write pgvector's own form: dimensions, a zero, then big-endian half floats."""
        count = len(obj.raw) // 4
        return struct.pack(">HH", count, 0) + _to_half(obj.raw, count)


class _HalfVectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        """Give little-endian float32 bytes."""
        raw = bytes(data)
        return _from_half(raw[4:], struct.unpack_from(">H", raw)[0])


class _JsonbLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> Any:
        """Read a JSON value; most are empty objects."""
        raw = bytes(data)
        return {} if raw == b"\x01{}" else json.loads(raw[1:].decode())


class _UtcLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> datetime:
        """Give the instant in UTC, whatever zone the session has."""
        (microseconds,) = struct.unpack(">q", data)
        return _EPOCH + timedelta(microseconds=microseconds)


def numbers(values: Sequence[float]) -> str:
    """Give finite numbers as the database writes an array: in a tenth of the time of a list that the driver takes apart."""
    return f"{{{','.join(map(repr, values))}}}"


def _to_half(raw: bytes, count: int) -> bytes:
    try:
        import numpy
    except ModuleNotFoundError:
        return struct.pack(f">{count}e", *struct.unpack(f"<{count}f", raw))
    return numpy.frombuffer(raw, dtype="<f4").astype(">f2").tobytes()


def _from_half(raw: bytes, count: int) -> bytes:
    try:
        import numpy
    except ModuleNotFoundError:
        return struct.pack(f"<{count}f", *struct.unpack(f">{count}e", raw))
    return numpy.frombuffer(raw, dtype=">f2").astype("<f4").tobytes()


def adapt(connection: Connection[Any] | AsyncConnection[Any], info: TypeInfo | None) -> None:
    """Teach a connection our types."""
    connection.adapters.register_loader("timestamptz", _UtcLoader)
    connection.adapters.register_loader("jsonb", _JsonbLoader)
    if info is not None:
        info.register(connection)
        dumper = type("HalfVectorDumper", (_HalfVectorDumper,), {"oid": info.oid})
        connection.adapters.register_dumper(HalfVector, dumper)
        connection.adapters.register_loader(info.oid, _HalfVectorLoader)


@lru_cache(maxsize=4096)
def scope_of(path: str) -> MemoryScope:
    """Read the path of a scope."""
    return MemoryScope.parse(path)


def node_of(row: Sequence[Any], *, embedding: bytes | None = None) -> MemoryNode:
    """Make a node of the columns of the fragment ``columns``."""
    source = row[8]
    if "entries" in source:
        source["entries"] = tuple(source["entries"])
    return MemoryNode(
        id=row[0],
        scope=scope_of(row[1]),
        layer=MemoryLayer(row[2]),
        label=row[3],
        content=row[4],
        properties=row[5],
        importance=row[6],
        status=row[7],
        source=Source(**source),
        asserted_at=row[9],
        updated_at=row[10],
        accessed_at=row[11],
        valid_from=row[12],
        valid_until=row[13],
        recorded_at=row[14],
        superseded_at=row[15],
        superseded_by=row[16],
        expires_at=row[17],
        access_count=row[18],
        activation_count=row[19],
        pinned=row[20],
        embedding_model=row[21],
        embedding=embedding,
    )


COLUMNS = 22
"""Columns of the fragment ``columns``."""
OUTLINE = 15
"""Columns of the fragment ``outline``."""
_LAYERS = {str(layer): layer for layer in MemoryLayer}
_sketch = partial(tuple.__new__, Sketch)


def whole_node_of(row: Sequence[Any]) -> MemoryNode:
    """Make a node of ``columns`` and its vector behind them."""
    return node_of(row, embedding=row[COLUMNS])


def sketch_of_row(row: Sequence[Any], terms: Sequence[str]) -> Sketch:
    """Make a sketch of the columns of the fragment ``outline``; ``terms`` are counted."""
    id_, path, layer, session, speaker, asserted, importance, uses, label, held, asks, tells_time, said, entry, text = (
        row[:OUTLINE]
    )
    kind = _LAYERS[layer]
    if held is None:  # Written by an earlier version.
        bag = bag_of(label, text)
        held, asks, tells_time = " ".join(bag.terms.elements()), bag.asks, bag.tells_time
        said = said_key(kind, speaker, label, text)
    words = held.split()
    return _sketch(
        (
            *(id_, scope_of(path), kind, session, speaker, asserted, importance, uses, len(words) or 1),
            tuple(map(words.count, terms)),
            *(asks, tells_time, label if kind is MemoryLayer.PROCEDURAL else "", said, entry, None),
        )
    )


def outline_row(node: MemoryNode) -> dict[str, Any]:
    """Give what is kept of a node's text for its sketches, as a JSON object."""
    bag = bag_of(node.label, node.content)
    return {
        "terms": " ".join(bag.terms.elements()),
        "asks": bag.asks,
        "tells_time": bag.tells_time,
        "said": said_key(node.layer, node.source.speaker, node.label, node.content),
    }


def edge_of(row: Sequence[Any]) -> MemoryEdge:
    """Make an edge of the columns of the fragment ``edge_columns``."""
    return MemoryEdge(
        id=row[0],
        scope=scope_of(row[1]),
        source_id=row[2],
        target_id=row[3],
        relation=row[4],
        weight=row[5],
        provenance=row[6],
        evidence=tuple(row[7]),
        properties=row[8],
        asserted_at=row[9],
        updated_at=row[10],
        valid_from=row[11],
        valid_until=row[12],
        recorded_at=row[13],
        superseded_at=row[14],
        expires_at=row[15],
    )


_SOURCE = tuple((item.name, getattr(Source(), item.name)) for item in fields(Source))


def _source_row(source: Source) -> dict[str, Any]:
    """Give what is not the default."""
    found: dict[str, Any] = {}
    for name, default in _SOURCE:
        value = getattr(source, name)
        if value != default:
            found[name] = value
    return found


def _times_row(record: MemoryNode | MemoryEdge) -> dict[str, Any]:
    found = {}
    for name in _TIMES:
        moment = getattr(record, name, None)
        found[name] = None if moment is None else moment.isoformat()
    return found


def node_row(node: MemoryNode) -> dict[str, Any]:
    """Give a node as a JSON object, without id, owner and vector."""
    reminder = rules.reminder_of(node)
    return {
        "layer": str(node.layer),
        "label": node.label,
        "content": node.content,
        "properties": dict(node.properties),
        "importance": node.importance,
        "status": node.status,
        "session": node.source.session,
        "source": _source_row(node.source),
        **_times_row(node),
        "superseded_by": node.superseded_by,
        "access_count": node.access_count,
        "activation_count": node.activation_count,
        "pinned": node.pinned,
        "embedding_model": node.embedding_model,
        "due_at": reminder.due_at.isoformat() if reminder is not None and reminder.due_at is not None else None,
        "event": reminder.event if reminder is not None else None,
    }


def edge_row(edge: MemoryEdge) -> dict[str, Any]:
    """Give an edge as a JSON object, without its owner."""
    return {
        "id": edge.id,
        "source_id": edge.source_id,
        "target_id": edge.target_id,
        "relation": edge.relation,
        "weight": edge.weight,
        "provenance": edge.provenance,
        "evidence": list(edge.evidence),
        "properties": dict(edge.properties),
        **_times_row(edge),
    }


def change_row(change: Change) -> dict[str, Any]:
    """Give a version of a node as a JSON object."""
    return {
        "node": {**node_row(change.node), "id": change.node.id},
        "action": change.action,
        "reason": change.reason,
        "at": change.at.isoformat(),
    }


def change_of(row: Sequence[Any], scope: MemoryScope) -> Change:
    """Make a version of a node of its row: its JSON object, action, reason and time."""
    held = dict(row[0])
    for name in ("session", "due_at", "event"):
        held.pop(name, None)
    source = held.pop("source")
    for name in _TIMES:
        held[name] = None if held[name] is None else datetime.fromisoformat(held[name])
    node = MemoryNode(
        **{
            **held,
            "scope": scope,
            "layer": MemoryLayer(held["layer"]),
            "source": Source(**{**source, "entries": tuple(source.get("entries", ()))}),
        }
    )
    return Change(node=node, action=row[1], reason=row[2], at=row[3])


def document(rows: Sequence[dict[str, Any]]) -> str:
    """Give rows as one JSON document."""
    return json.dumps(rows, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
