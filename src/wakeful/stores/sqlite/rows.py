"""Records to columns and back.

A time is microseconds since 1970-01-01 UTC, a vector little-endian float16: half the size of float32, and its error in
a cosine is below 0.001.
"""

from __future__ import annotations

import json
import struct
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import repeat
from operator import call
from typing import Any, TypeVar

from wakeful.errors import MemoryContractError
from wakeful.ops import Visibility
from wakeful.records import STATUSES, MemoryEdge, MemoryLayer, MemoryNode, MemoryScope, Source
from wakeful.stores import rules
from wakeful.terms import index_terms

T = TypeVar("T")

LAYERS = tuple(MemoryLayer)
LAYER_NUMBER = {layer: number for number, layer in enumerate(LAYERS)}
STATUS_NUMBER = {status: number for number, status in enumerate(STATUSES)}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000


def micros(moment: datetime | None) -> int | None:
    """Give a time as a column."""
    if moment is None:
        return None
    past = moment - _EPOCH
    return past.days * _DAY + past.seconds * 1_000_000 + past.microseconds


@lru_cache(maxsize=8192)
def moment(column: int | None) -> datetime | None:
    """Give a column as a time."""
    return None if column is None else _EPOCH + timedelta(microseconds=column)


def _slots(record: type) -> tuple[Callable[[Any, Any], None], ...]:
    return tuple(getattr(record, item.name).__set__ for item in fields(record))


_NODE_SLOTS = _slots(MemoryNode)
_EDGE_SLOTS = _slots(MemoryEdge)
_SOURCE_SLOTS = _slots(Source)


def _build(record: type[T], slots: Sequence[Callable[[Any, Any], None]], values: Sequence[Any]) -> T:
    """Make a record of values that were checked when they were written: a third of the time of its constructor."""
    made = object.__new__(record)
    deque(map(call, slots, repeat(made), values), maxlen=0)
    return made


def half(vector: bytes) -> bytes:
    """Give a float32 vector as float16, scaled to unit length."""
    return halves((vector,))[0]


def halves(vectors: Sequence[bytes]) -> list[bytes]:
    """Give float32 vectors of one size as float16, scaled to unit length. Raises ``MemoryContractError``."""
    if not vectors:
        return []
    try:
        import numpy
    except ModuleNotFoundError:
        return [_half(vector) for vector in vectors]
    matrix = numpy.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)
    lengths = numpy.sqrt(numpy.einsum("ij,ij->i", matrix, matrix))
    if not (numpy.isfinite(lengths) & (lengths > 0)).all():
        raise MemoryContractError("a vector has no direction (zero, infinite or not a number)")
    data = (matrix / lengths[:, None]).astype("<f2").tobytes()
    size = len(data) // len(vectors)
    return [data[start : start + size] for start in range(0, len(data), size)]


def _half(vector: bytes) -> bytes:
    from wakeful.stores.vectors import unit

    size = len(vector) // 4
    return struct.pack(f"<{size}e", *struct.unpack(f"<{size}f", unit(vector, "a vector")))


def whole(data: bytes) -> bytes:
    """Give a float16 vector as float32."""
    size = len(data) // 2
    return struct.pack(f"<{size}f", *struct.unpack(f"<{size}e", data))


def terms_text(node: MemoryNode) -> str:
    """The terms under which a node is found, in one text."""
    return " ".join(index_terms(f"{node.label}\n{node.content}" if node.label else node.content))


def node_columns(node: MemoryNode, terms: str, now: int | None = None) -> tuple[Any, ...]:
    """Columns of a node that may change, in the order of ``change_node``; ``now`` stamps a node not recorded yet."""
    source = node.source
    asserted = micros(node.asserted_at)
    reminder = rules.reminder_of(node) if node.layer is MemoryLayer.PROSPECTIVE else None
    return (
        LAYER_NUMBER[node.layer],
        STATUS_NUMBER[node.status],
        node.label,
        node.content,
        rules.check_properties(node.properties),
        node.importance,
        source.session,
        source.turn,
        source.ref,
        source.speaker,
        json.dumps(source.entries) if source.entries else None,
        source.by,
        source.trust,
        asserted,
        asserted if node.updated_at is node.asserted_at else micros(node.updated_at),
        now if node.recorded_at is None else micros(node.recorded_at),
        micros(node.accessed_at),
        micros(node.valid_from),
        micros(node.valid_until),
        micros(node.superseded_at),
        node.superseded_by,
        micros(node.expires_at),
        node.access_count,
        node.activation_count,
        node.pinned,
        node.embedding_model if node.embedding is not None else None,
        terms,
        micros(reminder.due_at) if reminder is not None else None,
        reminder.event if reminder is not None else None,
    )


def read_node(columns: Sequence[Any], scopes: dict[str, MemoryScope], *, vector: bytes | None = None) -> MemoryNode:
    """Make a node of the columns of ``{columns}``; ``scopes`` remembers those read before."""
    # fmt: off
    (
        _, id_, path, layer, status, label, content, properties, importance,
        session, turn, ref, speaker, entries, by, trust,
        asserted, updated, recorded, accessed, valid_from, valid_until, superseded, superseded_by, expires,
        access_count, activation_count, pinned, embedding_model,
    ) = columns
    # fmt: on
    scope = scopes.get(path)
    if scope is None:
        scope = scopes[path] = MemoryScope.parse(path)
    said = moment(asserted)
    # fmt: off
    return _build(MemoryNode, _NODE_SLOTS, (
        id_, scope, LAYERS[layer], label, content, json.loads(properties) if properties != "{}" else {}, importance,
        STATUSES[status],
        _build(Source, _SOURCE_SLOTS, (
            session, turn, ref, tuple(json.loads(entries)) if entries else (), by, trust, speaker,
        )),
        said, said if updated == asserted else moment(updated), moment(accessed), moment(valid_from),
        moment(valid_until), moment(recorded), moment(superseded), superseded_by, moment(expires), access_count,
        activation_count, bool(pinned), None if vector is None else whole(vector), embedding_model,
    ))
    # fmt: on


def edge_columns(edge: MemoryEdge, now: int | None) -> tuple[Any, ...]:
    """Columns of an edge after its ends and owner, in the order of ``put_edge``; ``now`` stamps one not recorded yet."""
    asserted = micros(edge.asserted_at)
    updated = asserted if edge.updated_at is edge.asserted_at else micros(edge.updated_at)
    recorded = now if edge.recorded_at is None else micros(edge.recorded_at)
    ends = edge.valid_from, edge.valid_until, edge.superseded_at, edge.expires_at
    return (
        edge.id,
        edge.weight,
        edge.provenance,
        json.dumps(edge.evidence) if edge.evidence else "[]",
        rules.check_properties(edge.properties) if edge.properties else "{}",
        asserted,
        updated,
        recorded,
        *(_NEVER if ends == _NEVER else map(micros, ends)),
    )


_NEVER = (None, None, None, None)


def read_edge(columns: Sequence[Any], scopes: dict[str, MemoryScope]) -> MemoryEdge:
    """Make an edge of the columns of ``{edge_columns}``; ``scopes`` remembers those read before."""
    id_, path, source, target, relation, weight, provenance, evidence, properties, *times = columns
    asserted, updated, recorded, valid_from, valid_until, superseded, expires = map(moment, times)
    assert asserted is not None
    assert updated is not None
    scope = scopes.get(path)
    if scope is None:
        scope = scopes[path] = MemoryScope.parse(path)
    # fmt: off
    return _build(MemoryEdge, _EDGE_SLOTS, (
        id_, scope, source, target, relation, weight, provenance,
        () if evidence == "[]" else tuple(json.loads(evidence)), {} if properties == "{}" else json.loads(properties),
        asserted, asserted if updated == asserted else updated, valid_from, valid_until, recorded, superseded, expires,
    ))
    # fmt: on


_VERSION_TIMES = ("asserted_at", "updated_at", "accessed_at", "valid_from", "valid_until", "recorded_at",
                  "superseded_at", "expires_at")  # fmt: skip
_VERSION_PLAIN = ("label", "content", "importance", "status", "superseded_by", "access_count", "activation_count",
                  "pinned", "embedding_model")  # fmt: skip
_SOURCE_FIELDS = ("session", "turn", "ref", "by", "trust", "speaker")


def version_text(node: MemoryNode) -> str:
    """Give a node's version for the history, without its vector."""
    values: dict[str, Any] = {name: getattr(node, name) for name in _VERSION_PLAIN}
    values |= {name: micros(getattr(node, name)) for name in _VERSION_TIMES}
    values |= {"id": node.id, "scope": node.scope.path, "layer": node.layer.value}
    values["source"] = {name: getattr(node.source, name) for name in _SOURCE_FIELDS}
    values["source"]["entries"] = node.source.entries
    return rules.check_properties({"node": values, "properties": dict(node.properties)})


def read_version(text: str) -> MemoryNode:
    """Make a node of a version in the history."""
    held = json.loads(text)
    values = held["node"]
    source = values.pop("source")
    source["entries"] = tuple(source["entries"])
    values |= {name: moment(values[name]) for name in _VERSION_TIMES}
    values["scope"] = MemoryScope.parse(values["scope"])
    return MemoryNode(**values, source=Source(**source), properties=held["properties"])


def visibility_parameters(visibility: Visibility | None) -> dict[str, Any]:
    """Give the parameters of ``{visible}``; for None, with ``checked`` false."""
    if visibility is None:
        none = dict.fromkeys(("statuses", "layers", "expired", "at", "with_superseded", "as_of"))
        return {**none, "checked": False}
    layers = visibility.layers
    return {
        "checked": True,
        "statuses": json.dumps([STATUS_NUMBER[each] for each in visibility.statuses]),
        "layers": None if layers is None else json.dumps([LAYER_NUMBER[MemoryLayer(each)] for each in layers]),
        "expired": visibility.expired,
        "at": micros(visibility.at),
        "with_superseded": visibility.superseded,
        "as_of": micros(visibility.as_of),
    }
