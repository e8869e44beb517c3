"""Memory: remember and recall, per scope, over any store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from wakeful.assembly.context import HydratedMemory
from wakeful.consolidation.report import ConsolidationReport
from wakeful.consolidation.settings import TendingSettings
from wakeful.engine.drive import drive, utc_now
from wakeful.engine.memory_flows import Clock, MemoryFlows, open_flows
from wakeful.memory import layers as layer_rules
from wakeful.memory import reminders
from wakeful.memory.export import Export
from wakeful.memory.forgetting import Forgotten
from wakeful.memory.receipts import Erased, Imported, Reembedded, Remembered
from wakeful.memory.reminders import Due, Schedule
from wakeful.memory.settings import WritingSettings
from wakeful.needs import Flow
from wakeful.ops import Change
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, MemoryScope
from wakeful.retrieval.hits import Explanation, Recall
from wakeful.retrieval.recall import SHOWN_LAYERS
from wakeful.retrieval.settings import RecallSettings
from wakeful.stores.protocol import Store

T = TypeVar("T")


class Memory:
    """Long-term memory in five layers, per scope.

    ::

        memory = Memory.open("sqlite:///memory.db")
        scope = MemoryScope.of(("org", "acme"), ("user", "ana"))
        memory.remember(scope, "I live in Oslo", speaker="Ana")
        memory.recall(scope, "Where does Ana live?").hits[0].node.content

    May be shared by threads. Close it with ``close`` or ``with``.
    """

    def __init__(self, flows: MemoryFlows, *, clock: Clock = utc_now) -> None:
        self.flows = flows
        self._clock = clock

    @classmethod
    def open(
        cls,
        url: str | Store = "memory://",
        *,
        embedder: Any = None,
        model: Any = None,
        adopt: bool = False,
        recall: RecallSettings | None = None,
        writing: WritingSettings | None = None,
        tokens: Any = None,
        clock: Clock = utc_now,
    ) -> Self:
        """Open a memory.

        ``url``: ``memory://``, ``sqlite:///file.db`` (four slashes: an absolute path), ``postgresql://...``, or a store.
        ``embedder``: None is the light one that comes with the extra ``memory`` (none when that is not installed);
        ``False`` none; ``"static"``, ``"minilm"``, ``"multilingual"``; an embedder; any function. ``model``: a chat
        model that extracts facts; None: patterns do. ``adopt``: take over a store whose vectors another model made, to
        ``reembed`` it. ``tokens``: how tokens are counted, a function or a ``Meter``.

        Raises: ``EmbeddingMismatch`` when the store's vectors are of another model and ``adopt`` is not given,
        ``ConfigError``, ``MissingExtra``, ``SchemaError``, ``StoreBusy``.
        """
        flows = open_flows(
            url,
            embedder=embedder,
            model=model,
            adopt=adopt,
            recall_settings=recall,
            writing=writing,
            tokens=tokens,
        )
        return cls(flows, clock=clock)

    @property
    def store(self) -> Store:
        """The store."""
        return self.flows.store

    def _do(self, flow: Flow[T]) -> T:
        return drive(flow, self.flows.answer, clock=self._clock)

    def remember(
        self,
        scope: MemoryScope,
        what: Any,
        *,
        layer: MemoryLayer | str | None = None,
        label: str = "",
        at: datetime | None = None,
        session: str | None = None,
        speaker: str | None = None,
        ref: str | None = None,
        importance: float | None = None,
        properties: dict[str, Any] | None = None,
        trust: Literal["low", "normal", "high"] = "normal",
        pinned: bool = False,
        extract: bool = True,
        dialect: str | None = None,
        expires_at: datetime | None = None,
    ) -> Remembered:
        """Remember something, in one transaction, all or nothing.

        ``what``: a text (a fact, unless ``layer`` says otherwise), a ``MemoryNode``, a ``Turn``, a provider's own
        message, or a list of one of these. Turns and messages are kept verbatim as episodes; facts are taken from them
        by the model, or by patterns without one (``extract=False``: none are). Facts are compared with what is known
        and added, revised, skipped, or supersede what they contradict; the receipt says which and why. Secrets are
        removed first. What tools returned and what has ``trust="low"`` never becomes a rule, skill or reminder without
        ``approve``. ``at``: when it was said (a ``Turn`` has its own); ``ref``: your id of it.

        Raises: ``MemoryContractError`` for a node of another scope or a naive time, ``ConfigError`` for what can't be
        remembered, ``StoreBusy``. A model that fails raises nothing: see ``Remembered.parked``.
        """
        return self._do(
            self.flows.remember(
                scope,
                what,
                {
                    "layer": MemoryLayer(layer) if layer is not None else None,
                    "label": label,
                    "at": at,
                    "session": session,
                    "speaker": speaker,
                    "ref": ref,
                    "importance": importance,
                    "properties": properties or {},
                    "trust": trust,
                    "pinned": pinned,
                    "extract": extract,
                    "dialect": dialect,
                    "expires_at": expires_at,
                },
            )
        )

    def recall(
        self,
        scope: MemoryScope,
        query: str,
        k: int = 10,
        *,
        layers: Sequence[MemoryLayer | str] | None = None,
        as_of: datetime | None = None,
        budget: int | None = None,
    ) -> Recall:
        """Recall what matters for a query: at most ``k`` hits, best first, each with score and reasons.

        ``layers`` None: all but reminders. ``as_of``: what was true in the world then. ``budget``: tokens of
        ``Recall.text``; what does not fit is in ``left_out``. Writes nothing.
        """
        return self._do(self.flows.recall(scope, query, k=k, layers=layers, as_of=as_of, budget=budget))

    def explain(
        self,
        scope: MemoryScope,
        query: str,
        id: str,
        *,
        k: int = 10,
        layers: Sequence[MemoryLayer | str] | None = None,
        as_of: datetime | None = None,
    ) -> Explanation:
        """Say why a memory was, or was not, recalled for a query."""
        return self._do(self.flows.explain(scope, query, id, k=k, layers=layers, as_of=as_of))

    def hydrate(
        self,
        query: str,
        scope: MemoryScope,
        *,
        intent_verdict: Any = None,
        k: int = 10,
        budget: int = 1500,
        layers: Sequence[MemoryLayer | str] | None = None,
    ) -> HydratedMemory:
        """Recall for a prompt: fenced, escaped lines within ``budget`` tokens, counted as they stand.

        An ``intent_verdict`` with ``skip_layers`` leaves those layers out.
        """
        return self._do(
            self.flows.hydrate(query, scope, k=k, budget=budget, layers=wanted_layers(layers, intent_verdict))
        )

    def link(
        self,
        scope: MemoryScope,
        source: str,
        target: str,
        relation: str = "RELATED_TO",
        *,
        weight: float = 1.0,
        evidence: Sequence[str] = (),
        properties: dict[str, Any] | None = None,
    ) -> MemoryEdge:
        """Relate two memories by their ids. Raises ``NotFound`` unless the scope sees both."""
        return self._do(
            self.flows.link(scope, source, target, relation, weight=weight, evidence=evidence, properties=properties)
        )

    def forget(self, scope: MemoryScope, id: str) -> Forgotten:
        """Delete a memory for good, with its edges, history, vector, and what was taken or derived from it alone.

        A memory that the scope does not own is reported as not found, and nothing is changed.
        """
        return self._do(self.flows.forget(scope, id))

    def history(self, scope: MemoryScope, id: str) -> tuple[Change, ...]:
        """Every version of a memory and of those it replaced or was replaced by, oldest first. Raises ``NotFound``."""
        return self._do(self.flows.history(scope, id))

    def approve(self, scope: MemoryScope, id: str, *, by: str = "user") -> MemoryNode:
        """Make a draft active. Raises ``NotFound`` for one that the scope does not own."""
        return self._do(self.flows.approve(scope, id, by=by))

    def remind(
        self,
        scope: MemoryScope,
        text: str,
        *,
        at: datetime | None = None,
        every: str | timedelta | Schedule | None = None,
        event: str | None = None,
        when: str | None = None,
        zone: str | None = None,
        expires_at: datetime | None = None,
        importance: float = 5.0,
        trust: Literal["low", "normal", "high"] = "normal",
    ) -> MemoryNode:
        """Set a reminder: ``at`` a time, ``every`` so often (``"daily"``, ``"2 weeks"``, a ``timedelta``; first at ``at``),
        on an ``event``, or ``when`` a query holds these words. ``zone`` keeps a series' local time of day.
        """
        return self._do(
            reminders.remind(
                scope,
                text,
                at=at,
                every=every,
                event=event,
                when=when,
                zone=zone,
                expires_at=expires_at,
                importance=importance,
                trust=trust,
                settings=self.flows.writing,
            )
        ).node

    def due(
        self,
        scope: MemoryScope,
        *,
        event: str | None = None,
        query: str | None = None,
        limit: int = 50,
        claim: bool = True,
    ) -> tuple[Due, ...]:
        """Claim what is due now in this scope, or waits for ``event`` or for such a ``query``; each is given once.

        Settle each with ``ack`` or ``snooze``; an unsettled one is given again when its lease is over. ``claim`` False
        only looks: nothing changes, and what another caller has claimed is given too.
        """
        return self._do(
            reminders.due(scope, event=event, query=query, limit=limit, claim=claim, settings=self.flows.writing)
        )

    def ack(self, scope: MemoryScope, due: Due | str, *, occurrence: str | None = None) -> bool:
        """Settle an occurrence; a series goes on with its next time. False: it was settled already."""
        return self._do(self.flows.ack(scope, due, occurrence))

    def snooze(self, scope: MemoryScope, due: Due | str, until: datetime, *, occurrence: str | None = None) -> bool:
        """Put an occurrence off until a time. False: it was settled already."""
        return self._do(self.flows.snooze(scope, due, until, occurrence))

    def skills(self, scope: MemoryScope) -> tuple[MemoryNode, ...]:
        """The skills in force here, the nearest of each label, most important first."""
        return self._do(self.flows.skills(scope))

    def note(self, scope: MemoryScope, text: str, *, session: str | None = None, label: str = "") -> MemoryNode:
        """Put down a working entry of a session: bounded in number, and gone after its time to live."""
        return self._do(layer_rules.note(scope, text, self.flows.writing, session=session, label=label))

    def working(self, scope: MemoryScope, *, session: str | None = None, limit: int = 32) -> tuple[MemoryNode, ...]:
        """The last working entries, oldest first."""
        return self._do(self.flows.working(scope, session=session, limit=limit))

    def export(self, scope: MemoryScope, *, vectors: bool = True) -> Export:
        """Give every row, edge and version of the scope and all below it, as a list of records whose text shows them."""
        return self._do(self.flows.export(scope, vectors=vectors))

    def import_(
        self, scope: MemoryScope, data: Export | str | Sequence[dict[str, Any]], *, source: MemoryScope | None = None
    ) -> Imported:
        """Write an export into the scope; twice is as good as once.

        ``source``: the scope that was exported, when its rows are to stand under ``scope`` instead, with new ids.
        """
        return self._do(self.flows.import_(scope, data, source=source))

    def erase(self, scope: MemoryScope, *, dry_run: bool = False) -> Erased:
        """Erase the scope and all below it from every table and index, verify it by a scan, and give the receipt.

        ``dry_run`` counts what would go, and changes nothing.
        """
        return self._do(self.flows.erase(scope, dry_run=dry_run))

    def stats(self, scope: MemoryScope) -> dict[str, Any]:
        """Count what the scope owns and sees."""
        return self._do(self.flows.stats(scope))

    def reembed(self, scope: MemoryScope | None = None, *, limit: int | None = None) -> Reembedded:
        """Give every row a vector of this embedder; ``scope`` None: the whole store.

        It may be interrupted and run again; meanwhile everything is found by words.
        """
        return self._do(self.flows.reembed(scope, limit=limit))

    def consolidate(
        self,
        scope: MemoryScope,
        cadence: str = "quick_nap",
        *,
        now: datetime | None = None,
        dry_run: bool = False,
        settings: TendingSettings | None = None,
    ) -> ConsolidationReport:
        """Tend the scope's memory: ``quick_nap``, ``nightly`` or ``deep_sleep``. ``dry_run`` changes nothing."""
        return self._do(self.flows.consolidate(scope, cadence=cadence, at=now, dry_run=dry_run, settings=settings))

    def flush(self) -> int:
        """Record the use of what was recalled, which is otherwise done with the next write. Gives the rows touched."""
        return self._do(self.flows.flush())

    def close(self) -> None:
        """Record what was used, and close the store."""
        self.flush()
        self.flows.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def wanted_layers(layers: Sequence[MemoryLayer | str] | None, verdict: Any) -> Sequence[MemoryLayer | str] | None:
    """Leave out the layers that an intent verdict skips; None when none are named and none skipped."""
    skipped = {str(name) for name in getattr(verdict, "skip_layers", ()) or ()}
    if not skipped:
        return layers
    chosen = layers if layers is not None else SHOWN_LAYERS
    return tuple(layer for layer in chosen if str(layer) not in skipped)
