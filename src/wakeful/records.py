"""The records of memory: scopes, nodes, edges, turns. Frozen values with their units in the field docs.

Rules of the file:

- Times are timezone-aware and kept in UTC; a naive one is refused with ``MemoryContractError``.
- A scope is a path of ``(kind, id)`` levels, compared level by level and code point by code point. No joined string is
  ever compared for identity.
- ``key`` forms (``MemoryScope.path``) are injective since ``/`` and ``:`` are refused in kinds and ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from wakeful.errors import MemoryContractError
from wakeful.ids import content_id, time_id

Status: TypeAlias = Literal["active", "draft", "retracted"]
STATUSES: tuple[Status, ...] = ("active", "draft", "retracted")


class MemoryLayer(StrEnum):
    """What kind of memory a node is."""

    SEMANTIC = "semantic"
    """Facts, entities, preferences."""
    EPISODIC = "episodic"
    """What happened, in order."""
    PROCEDURAL = "procedural"
    """Skills: when, steps, tool, preconditions."""
    PROSPECTIVE = "prospective"
    """Reminders and triggers."""
    WORKING = "working"
    """Scratch of the session, bounded, with a time to live."""


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """Who owns a memory: a path of levels, root first.

    Reading at a scope sees rows of the scope and of its ancestors; writing touches only the scope's own rows.
    """

    levels: tuple[tuple[str, str], ...]
    """``(kind, id)`` pairs, root first; at least one; kinds unique."""
    namespace: str | None = field(default=None, compare=False)
    """A label given at construction; not part of the identity."""
    identity_version: int = field(default=1, compare=False)
    """1 for ``of`` and ``parse``; 0 for a scope made from a tenant id and a session alone."""
    path: str = field(init=False, repr=False, compare=False)
    """The scope as text, ``org:acme/user:ana``; two scopes have one path exactly when they are equal."""

    def __post_init__(self) -> None:
        if not self.levels:
            raise MemoryContractError(
                "a scope needs at least one (kind, id) level; an empty scope is never 'everything'"
            )
        seen: set[str] = set()
        for level in self.levels:
            if not isinstance(level, tuple) or len(level) != 2:
                raise MemoryContractError(f"a scope level is a (kind, id) pair, not {level!r}")
            for part, name in zip(level, ("kind", "id"), strict=True):
                _check_part(part, name)
            if level[0] in seen:
                raise MemoryContractError(
                    f"the kind {level[0]!r} stands twice in the scope; kinds are unique in a path"
                )
            seen.add(level[0])
        object.__setattr__(self, "path", "/".join([f"{kind}:{name}" for kind, name in self.levels]))

    @classmethod
    def of(cls, *levels: tuple[str, str], namespace: str | None = None) -> MemoryScope:
        """Make a scope from ``(kind, id)`` pairs, root first."""
        return cls(tuple(tuple(level) for level in levels), namespace)  # type: ignore[misc]  # checked in __post_init__

    @classmethod
    def parse(cls, text: str, *, namespace: str | None = None) -> MemoryScope:
        """Read ``org:acme/user:ana``. Raises ``MemoryContractError`` for anything else."""
        levels = []
        for part in text.split("/") if text else []:
            kind, colon, name = part.partition(":")
            if not colon:
                raise MemoryContractError(f"scope {text!r}: {part!r} is not kind:id; write org:acme/user:ana")
            levels.append((kind, name))
        return cls(tuple(levels), namespace)

    @classmethod
    def for_tenant(cls, tenant_id: str, session: str | None = None, *, namespace: str | None = None) -> MemoryScope:
        """Make a scope from a tenant id and, when given, a session id (``identity_version`` 0)."""
        levels: tuple[tuple[str, str], ...] = (("tenant", tenant_id),)
        if session is not None:
            levels += (("session", session),)
        return cls(levels, namespace, 0)

    @property
    def session(self) -> str | None:
        """Id of the last level when its kind is ``session``, else None."""
        kind, name = self.levels[-1]
        return name if kind == "session" else None

    @property
    def tenant_id(self) -> str:
        """Id of the root level."""
        return self.levels[0][1]

    @property
    def sub_tenant_id(self) -> str | None:
        """Id of the second level, None when there is none."""
        return self.levels[1][1] if len(self.levels) > 1 else None

    def child(self, kind: str, id: str) -> MemoryScope:
        """The scope one level below."""
        return replace(self, levels=(*self.levels, (kind, id)))

    def narrow(self, *levels: tuple[str, str]) -> MemoryScope:
        """The scope some levels below."""
        return replace(self, levels=(*self.levels, *levels))

    def ancestors(self) -> tuple[MemoryScope, ...]:
        """Every scope above this one, root first; without itself."""
        return tuple(replace(self, levels=self.levels[:depth]) for depth in range(1, len(self.levels)))

    def visible(self) -> tuple[MemoryScope, ...]:
        """The scopes whose rows a reader here sees: the ancestors and itself, root first."""
        return (*self.ancestors(), self)

    def sees(self, owner: MemoryScope) -> bool:
        """Whether a reader at this scope sees rows owned by ``owner``."""
        return self.levels[: len(owner.levels)] == owner.levels

    def contains(self, other: MemoryScope) -> bool:
        """Whether ``other`` is this scope or lies below it."""
        return other.sees(self)

    def __str__(self) -> str:
        return self.path


def _check_part(part: object, name: str) -> None:
    if not isinstance(part, str):
        raise MemoryContractError(f"a scope's {name} is a string, not {type(part).__name__}")
    if not part:
        raise MemoryContractError(f"a scope's {name} is empty; give every level a non-empty {name}")
    if "/" in part or ":" in part:
        raise MemoryContractError(f"a scope's {name} may not hold '/' or ':': {part!r}")
    check_text(part, f"a scope's {name}")


def check_text(text: str, what: str) -> str:
    """Refuse text that no store can keep: a NUL character or a lone surrogate."""
    if "\x00" in text:
        raise MemoryContractError(f"{what} holds a NUL character, which no store can keep; remove it")
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise MemoryContractError(f"{what} holds a lone surrogate, which is not valid Unicode; remove it") from None
    return text


def utc(moment: datetime | None, what: str) -> datetime | None:
    """Give the moment in UTC; refuse a naive one."""
    if moment is None:
        return None
    if not isinstance(moment, datetime):
        raise MemoryContractError(f"{what} is a datetime, not {type(moment).__name__}")
    if moment.utcoffset() is None:
        raise MemoryContractError(
            f"{what} is naive ({moment.isoformat()}); give it a time zone, e.g. datetime.now(UTC)"
        )
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a record came from."""

    session: str | None = None
    turn: str | None = None
    ref: str | None = None
    """The caller's own id of the turn."""
    entries: tuple[str, ...] = ()
    """Ids of nodes or conversation entries that it was made from."""
    by: str = "user"
    """What wrote it: user, assistant, tool, extractor, consolidation, import."""
    trust: Literal["low", "normal", "high"] = "normal"
    """Low for text that came from outside (tool results, web pages): it never becomes a rule without approval."""
    speaker: str | None = None

    def __post_init__(self) -> None:
        for text, what in (
            (self.session, "a source's session"),
            (self.turn, "a source's turn"),
            (self.ref, "a source's ref"),
            (self.speaker, "a source's speaker"),
        ):
            if text is not None:
                check_text(text, what)
        for entry in self.entries:
            check_text(entry, "an entry of a source")


_TIMES = (
    "asserted_at",
    "updated_at",
    "accessed_at",
    "valid_from",
    "valid_until",
    "recorded_at",
    "superseded_at",
    "expires_at",
)
_EDGE_TIMES = tuple(name for name in _TIMES if name != "accessed_at")
_node_times, _edge_times = attrgetter(*_TIMES), attrgetter(*_EDGE_TIMES)
_edge_ends = attrgetter("valid_from", "valid_until", "recorded_at", "superseded_at", "expires_at")
_NO_ENDS = (None,) * 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNode:
    """One thing that is remembered."""

    id: str
    scope: MemoryScope
    layer: MemoryLayer
    label: str = ""
    """Short name or kind of the thing, for people and for exact lookup."""
    content: str = ""
    """The text that is searched and shown, verbatim."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    """JSON values."""
    importance: float = 5.0
    """1 (trivial) to 10 (vital)."""
    status: Status = "active"
    source: Source = field(default_factory=Source)
    asserted_at: datetime
    """When it was said or happened."""
    updated_at: datetime
    """Last assertion or edit; reading and tending do not move it."""
    accessed_at: datetime | None = None
    """Last use in an answer, recorded in batches."""
    valid_from: datetime | None = None
    """True in the world from then; None: unknown, treated as always."""
    valid_until: datetime | None = None
    """True in the world until then (exclusive); None: still true."""
    recorded_at: datetime | None = None
    """When the store first knew it; set by the store when None."""
    superseded_at: datetime | None = None
    """When a newer fact replaced it; None: current."""
    superseded_by: str | None = None
    """Id of the node that replaced it. Superseding also closes ``valid_until`` at the time the newer fact began."""
    expires_at: datetime | None = None
    access_count: int = 0
    activation_count: int = 0
    pinned: bool = False
    """True: decay and pruning leave it alone."""
    embedding: bytes | None = field(default=None, repr=False)
    """Vector as little-endian float32, unit length; None: not embedded."""
    embedding_model: str | None = None

    def __post_init__(self) -> None:
        for name, moment in zip(_TIMES, _node_times(self), strict=True):
            if moment is not None and getattr(moment, "tzinfo", None) is not UTC:
                object.__setattr__(self, name, utc(moment, f"MemoryNode.{name}"))
        if not isinstance(self.scope, MemoryScope):
            raise MemoryContractError(f"a node's scope is a MemoryScope, not {self.scope!r}")
        if not isinstance(self.layer, MemoryLayer):
            try:
                object.__setattr__(self, "layer", MemoryLayer(self.layer))
            except ValueError:
                known = ", ".join(MemoryLayer)
                raise MemoryContractError(f"unknown layer {self.layer!r}; known: {known}") from None
        if not self.id:
            raise MemoryContractError("a node needs a non-empty id; MemoryNode.new makes one")
        if not 1 <= self.importance <= 10:
            raise MemoryContractError(f"importance is 1 to 10, not {self.importance!r}")
        if self.status not in STATUSES:
            raise MemoryContractError(f"unknown status {self.status!r}; known: {', '.join(STATUSES)}")
        for text, what in (
            (self.id, "a node's id"),
            (self.label, "a node's label"),
            (self.content, "a node's content"),
        ):
            check_text(text, what)

    @classmethod
    def new(
        cls,
        *,
        scope: MemoryScope,
        layer: MemoryLayer | str,
        label: str = "",
        content: str = "",
        at: datetime,
        id: str | None = None,
        **values: Any,
    ) -> MemoryNode:
        """Make a node; ``at`` sets ``asserted_at`` and ``updated_at``, and no store restamps them.

        ``values`` are any other fields of ``MemoryNode``. Raises ``MemoryContractError`` for an unknown one.
        """
        moment = utc(at, "MemoryNode.new(at=)")
        assert moment is not None
        unknown = sorted(values.keys() - _NODE_FIELDS)
        if unknown:
            raise MemoryContractError(
                f"MemoryNode has no field {', '.join(unknown)}; known: {', '.join(sorted(_NODE_FIELDS))}"
            )
        values.setdefault("asserted_at", moment)
        values.setdefault("updated_at", moment)
        node_id = id if id is not None else time_id(int(moment.timestamp() * 1000))
        return cls(
            id=node_id,
            scope=scope,
            layer=layer,  # type: ignore[arg-type]  # made a MemoryLayer, or refused, in __post_init__
            label=label,
            content=content,
            **values,
        )

    @property
    def ref(self) -> str | None:
        """The caller's own id of the turn that it came from."""
        return self.source.ref

    def holds_at(self, moment: datetime, *, as_of: datetime | None = None) -> bool:
        """Whether the fact holds: true in the world now, or at ``as_of`` when that is given.

        Now (``as_of`` None): not superseded, and ``moment`` lies in ``[valid_from, valid_until)``. Then: ``as_of`` lies
        in that interval, whether or not the fact was superseded since. A superseded fact without ``valid_until`` ends
        when it was superseded. Open ends are open: a fact without ``valid_from`` held always.
        """
        at, end = moment, self.valid_until
        if as_of is not None:
            at = as_of
            if end is None:
                end = self.superseded_at
        elif self.superseded_at is not None:
            return False
        return (self.valid_from is None or self.valid_from <= at) and (end is None or at < end)

    def visible_at(self, moment: datetime, *, as_of: datetime | None = None) -> bool:
        """Whether a recall at ``moment`` may show it: active, not expired, and holding (see ``holds_at``).

        Expiry is judged by ``moment`` always: what was to be forgotten by now does not come back through ``as_of``.
        """
        if self.status != "active" or (self.expires_at is not None and self.expires_at <= moment):
            return False
        return self.holds_at(moment, as_of=as_of)


_NODE_FIELDS = frozenset(item.name for item in fields(MemoryNode))
_node_values = attrgetter(*MemoryNode.__slots__)
_node_setters = tuple(getattr(MemoryNode, name).__set__ for name in MemoryNode.__slots__)


def with_vector(node: MemoryNode, vector: bytes, model: str) -> MemoryNode:
    """The same node with a vector of a model: float32, unit length. What was checked is not checked again."""
    made = object.__new__(MemoryNode)
    for put, value in zip(_node_setters, _node_values(node), strict=True):
        put(made, value)
    object.__setattr__(made, "embedding", vector)
    object.__setattr__(made, "embedding_model", model)
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEdge:
    """A directed relation between two nodes that one scope owns or sees."""

    id: str
    scope: MemoryScope
    """The owner of the edge."""
    source_id: str
    target_id: str
    relation: str = "RELATED_TO"
    weight: float = 1.0
    """0 to 1: how strongly activation flows along it."""
    provenance: str = "user"
    evidence: tuple[str, ...] = ()
    """Ids of nodes that show the relation."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    asserted_at: datetime
    updated_at: datetime
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    recorded_at: datetime | None = None
    superseded_at: datetime | None = None
    expires_at: datetime | None = None

    def in_force_at(self, moment: datetime) -> bool:
        """Whether the relation holds at ``moment``: not superseded, not expired, inside its validity."""
        return (
            self.superseded_at is None
            and (self.expires_at is None or moment < self.expires_at)
            and (self.valid_from is None or self.valid_from <= moment)
            and (self.valid_until is None or moment < self.valid_until)
        )

    def __post_init__(self) -> None:
        # Edges are made by the ten thousand: usual ones have two times, and the same one for both.
        usual = self.updated_at is self.asserted_at and _edge_ends(self) == _NO_ENDS
        if not usual or getattr(self.asserted_at, "tzinfo", None) is not UTC:
            for name, moment in zip(_EDGE_TIMES, _edge_times(self), strict=True):
                if moment is not None and getattr(moment, "tzinfo", None) is not UTC:
                    object.__setattr__(self, name, utc(moment, f"MemoryEdge.{name}"))
        if not 0 <= self.weight <= 1:
            raise MemoryContractError(f"an edge's weight is 0 to 1, not {self.weight!r}")
        if not self.relation or not self.source_id or not self.target_id or not self.id:
            raise MemoryContractError("an edge needs an id, a source, a target and a relation")
        check_text(self.relation, "an edge's relation")

    @classmethod
    def new(
        cls,
        *,
        scope: MemoryScope,
        source_id: str,
        target_id: str,
        relation: str = "RELATED_TO",
        at: datetime,
        id: str | None = None,
        **values: Any,
    ) -> MemoryEdge:
        """Make an edge; one edge exists per (scope, source, relation, target), so the id follows from them."""
        moment = utc(at, "MemoryEdge.new(at=)")
        assert moment is not None
        edge_id = id if id is not None else content_id(scope.path, source_id, relation, target_id, prefix="x-")
        return cls(
            id=edge_id,
            scope=scope,
            source_id=source_id,
            target_id=target_id,
            relation=relation,
            asserted_at=moment,
            updated_at=moment,
            **values,
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation, to be remembered verbatim."""

    text: str
    speaker: str | None = field(default=None, kw_only=True)
    at: datetime | None = field(default=None, kw_only=True)
    """When it was said; None: now."""
    session: str | None = field(default=None, kw_only=True)
    """Provenance: which conversation. Never a scope level."""
    ref: str | None = field(default=None, kw_only=True)
    """The caller's own id of the turn; a hit gives it back."""


@dataclass(frozen=True, slots=True)
class NativeStorageScope:
    """A scope as a graph that stores scopes natively takes it: the whole path, nothing re-packed."""

    scope: MemoryScope

    @classmethod
    def from_scope(cls, scope: MemoryScope) -> NativeStorageScope:
        """Wrap a scope. Raises ``MemoryContractError`` for anything else."""
        if not isinstance(scope, MemoryScope):
            raise MemoryContractError(f"a native storage scope is made from a MemoryScope, not {scope!r}")
        return cls(scope)

    @property
    def path(self) -> str:
        """The scope's path."""
        return self.scope.path

    @property
    def levels(self) -> tuple[tuple[str, str], ...]:
        """The scope's levels."""
        return self.scope.levels


def tenant_scope(scope: MemoryScope | NativeStorageScope) -> MemoryScope:
    """Give the scope under which a graph keeps this scope's rows: the scope itself, all levels kept."""
    if isinstance(scope, NativeStorageScope):
        return scope.scope
    if not isinstance(scope, MemoryScope):
        raise MemoryContractError(f"a scope is needed, not {scope!r}")
    return scope


def node_scope(node: Any) -> MemoryScope:
    """Give the scope that owns a node."""
    return tenant_scope(node.scope)


def iter_scopes(scope: MemoryScope) -> Iterator[str]:
    """Paths of the scopes whose rows a reader at ``scope`` sees, root first."""
    for each in scope.visible():
        yield each.path
