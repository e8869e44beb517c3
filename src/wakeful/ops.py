"""Store operations as data: what a room may ask of a store, in one transaction, all or nothing.

Every operation carries the scope it acts for. Reads see rows of the scope and its ancestors (``QuerySubtree`` alone
descends); writes touch only rows that the scope itself owns. One predicate decides what a reader may be shown
(``Visibility``), and it is applied inside the store's own query, before any limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, MemoryScope, Status
from wakeful.sketches import Sketch


@dataclass(frozen=True, slots=True, kw_only=True)
class Visibility:
    """Which rows a read may give, beside the scope's own rule."""

    at: datetime
    """The reader's present: expiry is judged by it."""
    as_of: datetime | None = None
    """What was true in the world then; None: what is true now."""
    layers: tuple[MemoryLayer, ...] | None = None
    """None: every layer."""
    statuses: tuple[Status, ...] = ("active",)
    superseded: bool = False
    """True: superseded rows too, whatever their validity (history, export)."""
    expired: bool = False
    """True: expired rows too."""

    def admits(self, node: MemoryNode) -> bool:
        """Whether the reader may be given this row: the one predicate that every store's query mirrors."""
        if node.status not in self.statuses or (self.layers is not None and node.layer not in self.layers):
            return False
        if not self.expired and node.expires_at is not None and node.expires_at <= self.at:
            return False
        return (self.superseded and node.superseded_at is not None) or node.holds_at(self.at, as_of=self.as_of)


@dataclass(frozen=True, slots=True)
class PutNodes:
    """Insert or merge nodes. Result: number of nodes written.

    Every node's owner is ``scope``; another owner raises ``MemoryContractError``. A node whose id exists with the
    same owner is merged: everything is taken from the new one, but ``recorded_at`` and the earliest ``asserted_at``
    stay, and counts, ``accessed_at`` and ``updated_at`` never go down. A vector stays while label and content stay; a
    changed text without a vector has none. An id that another scope owns raises ``MemoryContractError``
    in words that tell nothing about its owner. ``expected`` is compare-and-set: the ``updated_at`` that the writer saw,
    by node id; a row that moved on or is gone is left alone and not counted.

    A node with ``recorded_at`` at or before the erasure of its scope (or of one above) raises ``StaleWriter``: a flow
    that prepares a write stamps ``recorded_at`` when it begins. None is stamped by the store, and is a fresh write.
    A vector of another model or size than the store's raises ``EmbeddingMismatch``.
    """

    scope: MemoryScope
    nodes: tuple[MemoryNode, ...]
    expected: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PutEdges:
    """Insert or merge edges (one per scope, source, relation, target). Result: number written.

    Both ends must be visible to the scope; an edge to a foreign row raises ``NotFound``.
    """

    scope: MemoryScope
    edges: tuple[MemoryEdge, ...]


@dataclass(frozen=True, slots=True)
class GetNodes:
    """Nodes by id, as far as the scope may see them. Result: tuple of ``MemoryNode``.

    In the order asked, misses left out.
    """

    scope: MemoryScope
    ids: tuple[str, ...]
    visibility: Visibility | None = None
    """None: every status and time."""
    embeddings: bool = False
    """True: with their vectors (``QuerySubtree`` gives those too; every other read leaves them out)."""


@dataclass(frozen=True, slots=True)
class GetEdges:
    """Edges that touch any of these nodes, visible to the scope. Result: tuple of ``MemoryEdge``."""

    scope: MemoryScope
    node_ids: tuple[str, ...]
    relation: str | None = None
    direction: Literal["out", "in", "both"] = "both"
    limit_per_node: int = 64
    """Strongest first."""
    at: datetime | None = None
    """Only edges in force then (``MemoryEdge.in_force_at``); None: every edge."""


Order: TypeAlias = Literal["updated", "asserted", "recorded", "importance", "id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryNodes:
    """Nodes that the scope sees, filtered and ordered in the store. Result: tuple of ``MemoryNode``."""

    scope: MemoryScope
    visibility: Visibility
    updated_since: datetime | None = None
    """Inclusive; a range in the store's index."""
    label: str | None = None
    session: str | None = None
    """``source.session``."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    """Top-level properties that must equal."""
    owned_only: bool = False
    """True: without the ancestors' rows."""
    idle_since: datetime | None = None
    """Last use (the later of ``updated_at`` and ``accessed_at``) at or after this; a range in the store's index."""
    idle_before: datetime | None = None
    """Last use before this; a range in the store's index."""
    accessed_since: datetime | None = None
    """``accessed_at`` at or after this; a range in the store's index."""
    expires_before: datetime | None = None
    """``expires_at`` at or before this; a range in the store's index."""
    superseded_before: datetime | None = None
    """``superseded_at`` before this; a range in the store's index. Wants ``visibility.superseded``."""
    order: Order = "updated"
    descending: bool = True
    limit: int | None = 100
    after: str | None = None
    """Continue behind this node id (``order="id"`` only)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySubtree:
    """Nodes owned by the scope or by any scope below it. Result: tuple of ``MemoryNode``, embeddings included.

    Order: scope by scope in path order, each in the order its rows were first written, so a copy written in this order
    keeps what stood next to what.
    """

    scope: MemoryScope
    visibility: Visibility | None = None
    updated_since: datetime | None = None
    """Inclusive; a range in the store's index."""
    limit: int | None = None
    after: str | None = None
    """Continue behind this node id."""
    edges: bool = False
    """True: the result is a pair (nodes, edges owned by the scope or below it)."""
    stale_for: str | None = None
    """Only nodes without a vector of this embedding model, for re-embedding."""


@dataclass(frozen=True, slots=True)
class TextHit:
    """A row found by words or by meaning."""

    node: MemoryNode
    """Without its embedding."""
    score: float
    """Higher is better. Words: the store's BM25. Vectors: cosine, -1 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchText:
    """Rows that hold any of the terms, best first. Result: tuple of ``TextHit``.

    Terms come analysed (``terms.query_terms``); the store indexes ``terms.index_terms`` of label and content.
    Visibility is applied before the limit. Equal scores stand in id order.
    """

    scope: MemoryScope
    terms: tuple[str, ...]
    visibility: Visibility
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchVector:
    """Rows nearest to a vector by cosine, best first. Result: tuple of ``TextHit``. Visibility before the limit."""

    scope: MemoryScope
    vector: bytes
    model: str
    """Id of the model that made the vector; rows of another model are never compared."""
    visibility: Visibility
    limit: int = 50


class Found(NamedTuple):
    """A row found by words, by meaning, or by both."""

    sketch: Sketch
    words: float | None
    """As ``SearchText`` scores it; None: not among the best by words."""
    cosine: float | None
    """None: not among the nearest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCandidates:
    """What ``SearchText`` and ``SearchVector`` find, in one go and as sketches. Result: tuple of ``Found``, in no order.

    ``terms`` empty or ``vector`` None: it is not searched by that. The sketches count ``terms``.
    """

    scope: MemoryScope
    terms: tuple[str, ...]
    vector: bytes | None
    model: str
    visibility: Visibility
    by_words: int
    """Limit of what is found by words."""
    by_meaning: int
    """Limit of what is found by vector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjacent:
    """The rows said just before and after each of these: same owner, ``source.session`` and layer, by ``asserted_at``.

    Rows of one instant stand in the order they were first written. A row without a session has no neighbours; rows that
    ``visibility`` hides are skipped and take no distance.

    Result: tuple of ``(anchor id, distance, Sketch)``, distance -k ... -1, 1 ... k; the sketches count ``terms``.
    """

    scope: MemoryScope
    ids: tuple[str, ...]
    visibility: Visibility
    distance: int = 1
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateNodes:
    """Change single fields of rows that the scope owns. Result: number changed.

    ``changes`` maps id to field values (``MemoryNode`` field names, but ``id``, ``scope`` and ``recorded_at``);
    ``updated_at`` moves only when it is among them. A changed label or content without a vector drops the vector. Ids
    that the scope does not own are left alone and not counted.
    """

    scope: MemoryScope
    changes: Mapping[str, Mapping[str, Any]]
    expected: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Touch:
    """Record use, in a batch: counts go up, ``accessed_at`` moves, nothing else. Result: number touched.

    Touches rows that the scope sees and owns; ancestors' rows are left alone.
    """

    scope: MemoryScope
    ids: tuple[str, ...]
    at: datetime
    kind: Literal["access", "activation"] = "access"


@dataclass(frozen=True, slots=True)
class DeleteNodes:
    """Delete rows that the scope owns, with their edges, history, index entries and vectors. Result: number deleted."""

    scope: MemoryScope
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteEdges:
    """Delete edges that the scope owns. Result: number deleted."""

    scope: MemoryScope
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class History:
    """Every version of a row that the scope sees, oldest first. Result: tuple of ``Change``."""

    scope: MemoryScope
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One version of a row and what made it."""

    node: MemoryNode
    action: Literal["add", "revise", "supersede", "retract", "approve", "skip", "merge"]
    reason: str = ""
    at: datetime


@dataclass(frozen=True, slots=True)
class Log:
    """Write versions into the history. Result: number written."""

    scope: MemoryScope
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimDue:
    """Claim occurrences that are due at ``at``: each is given to one caller, once. Result: tuple of ``MemoryNode``.

    A reminder is an active PROSPECTIVE node with ``properties["due_at"]`` (ISO 8601 with an offset; kept in UTC) or
    ``properties["event"]`` alone. Without ``event`` those due by ``at`` are claimed, earliest first; with it, those
    that wait for this event. Expired, superseded, invalid and ``done`` ones never fire. A claim is a lease until
    ``at + lease_seconds``; ``AckDue`` settles it; an unsettled one is given again after its lease. Only rows that the
    scope owns: for an ancestor's reminders claim at the ancestor.
    """

    scope: MemoryScope
    at: datetime
    event: str | None = None
    lease_seconds: float = 60.0
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class AckDue:
    """Settle a claimed occurrence: done, or due again at ``until`` (snoozed, or the next of a series). Result: bool.

    ``occurrence`` is the idempotency key: the ``due_at`` that was claimed, or the event's name. False: it was settled
    already, or is no reminder of this scope. Done sets ``properties["done"]`` to True; such a one never fires again.
    Writing a new ``due_at`` through ``PutNodes`` or ``UpdateNodes`` ends a claim.
    """

    scope: MemoryScope
    id: str
    occurrence: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Erase:
    """Erase the subtree of the scope for good, tombstoning it against late writers.

    Result: mapping of counts: ``nodes``, ``edges``, ``history``, ``reminders``, ``vectors``, ``state``, ``leases``,
    ``scopes``, and ``pending``: tuple of the clean-up steps that could not be done yet (``vacuum``, ``checkpoint``).
    Must stand last among its operations. The tombstone keeps a hash of the path, no name.
    """

    scope: MemoryScope
    at: datetime


@dataclass(frozen=True, slots=True)
class Stats:
    """Count what the scope owns and what it sees.

    Result: mapping of ``nodes``, ``edges``, ``history``, ``embedded``, ``superseded`` (all owned), ``visible`` (nodes
    seen), ``layers`` and ``statuses`` (owned, by name).
    """

    scope: MemoryScope


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquireLease:
    """Take the scope's lease when it is free, expired or ours. Result: fencing token, or None when another holds it.

    Every acquisition gets a token above all that the store ever gave, so an erased scope's old tokens stay dead.
    Taking a lease that is still ours again gives a fresh token too.
    """

    scope: MemoryScope
    owner: str
    at: datetime
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewLease:
    """Prolong a lease that is still ours. Result: bool."""

    scope: MemoryScope
    owner: str
    token: int
    at: datetime
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseLease:
    """Give a lease back. Result: bool."""

    scope: MemoryScope
    owner: str
    token: int


@dataclass(frozen=True, slots=True)
class Fence:
    """Make the transaction fail with ``StaleWriter`` unless ``token`` is the scope's current one. Result: None."""

    scope: MemoryScope
    token: int


@dataclass(frozen=True, slots=True)
class GetState:
    """A small JSON value kept for the scope (cadence counters, cycle checkpoints). Result: value or None."""

    scope: MemoryScope
    key: str


@dataclass(frozen=True, slots=True)
class PutState:
    """Keep a small JSON value for the scope; None removes it. Result: None."""

    scope: MemoryScope
    key: str
    value: Any


@dataclass(frozen=True, slots=True)
class SetEmbedding:
    """Declare the model of the store's vectors. Result: None.

    Rows of another model become stale: vector search passes them over until they are re-embedded
    (``QuerySubtree(stale_for=model)``, ``UpdateNodes``). ``model`` None forgets the declaration.
    """

    model: str | None
    dimensions: int = 0


@dataclass(frozen=True, slots=True)
class ListScopes:
    """Scopes at or below this one that own nodes, in path order. Result: tuple of scopes.

    ``scope`` None lists all, for operators' tools.
    """

    scope: MemoryScope | None = None
    limit: int | None = None
    after: str | None = None
    """Continue behind this path."""


MemoryOp: TypeAlias = (
    PutNodes
    | PutEdges
    | GetNodes
    | GetEdges
    | QueryNodes
    | QuerySubtree
    | SearchText
    | SearchVector
    | FindCandidates
    | Adjacent
    | UpdateNodes
    | Touch
    | DeleteNodes
    | DeleteEdges
    | History
    | Log
    | ClaimDue
    | AckDue
    | Erase
    | Stats
    | AcquireLease
    | RenewLease
    | ReleaseLease
    | Fence
    | GetState
    | PutState
    | SetEmbedding
    | ListScopes
)
