"""The verbs of memory as flows, and who answers their needs: what ``Memory`` and ``AsyncMemory`` have in common.

Use is recorded in batches: a recall only notes what it gave, and the next write (or ``flush``) records it.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from wakeful.assembly.context import HydratedMemory
from wakeful.assembly.hydrate import hydrate_hits
from wakeful.compaction.meter import Meter
from wakeful.consolidation.report import ConsolidationReport
from wakeful.consolidation.settings import TendingSettings
from wakeful.engine.consolidate import consolidate_flow, prices_of
from wakeful.errors import ConfigError, MemoryContractError
from wakeful.memory import forgetting, keeping, layers, reminders, transfer
from wakeful.memory.embedding import Space
from wakeful.memory.export import Export
from wakeful.memory.receipts import Erased, Imported, Reembedded, Remembered
from wakeful.memory.remember import Options, remember
from wakeful.memory.settings import WritingSettings
from wakeful.models.embed import Embedder
from wakeful.needs import Ask, Embed, Flow, Need, Run, now, run
from wakeful.ops import Stats, Touch
from wakeful.records import MemoryLayer, MemoryScope
from wakeful.retrieval import recall as retrieval
from wakeful.retrieval.hits import Explanation, Recall
from wakeful.retrieval.settings import RecallSettings
from wakeful.stores.opening import open_store
from wakeful.stores.protocol import Store

PENDING = 4096
"""Uses that wait to be recorded, at most; the oldest are dropped beyond it."""


class MemoryFlows:
    """A store, an embedder and a model, and the verbs over them as flows."""

    def __init__(
        self,
        store: Store,
        *,
        embedder: Embedder | None,
        model: Any,
        recall_settings: RecallSettings,
        writing: WritingSettings,
        meter: Meter,
    ) -> None:
        self.store = store
        self.embedder = embedder
        self.model = model
        self.recall_settings = recall_settings
        self.writing = writing
        self.meter = meter
        self._used: dict[tuple[MemoryScope, str], datetime] = {}
        self._lock = threading.Lock()

    @property
    def space(self) -> Space:
        """The embedding in use."""
        return Space(self.embedder.model_id if self.embedder is not None else None)

    def tokens(self, text: str) -> int:
        """Count a text's tokens."""
        return self.meter.scaled(self.meter.count(text, "text"))

    # --- answers ----------------------------------------------------------------------------------------------------

    def answer(self, need: Need) -> Any:
        """Answer a need with the store, the embedder or the model."""
        match need:
            case Run(ops, _):
                return self.store.execute(ops)
            case Embed(texts, kind):
                return tuple(self._embedder().embed(texts, kind))
            case Ask(request, _):
                return self.model.chat(request)
            case _:
                raise ConfigError(f"a memory needs {type(need).__name__}, which nobody here can answer")

    async def aanswer(self, need: Need) -> Any:
        """Answer a need, awaited."""
        match need:
            case Run(ops, _):
                return await self.store.aexecute(ops)
            case Embed(texts, kind):
                return tuple(await self._embedder().aembed(texts, kind))
            case Ask(request, _):
                return await self.model.achat(request)
            case _:
                raise ConfigError(f"a memory needs {type(need).__name__}, which nobody here can answer")

    def _embedder(self) -> Embedder:
        if self.embedder is None:
            raise ConfigError("this memory has no embedder; open it with embedder=...")
        return self.embedder

    # --- verbs ------------------------------------------------------------------------------------------------------

    def remember(self, scope: MemoryScope, what: Any, options: dict[str, Any]) -> Flow[Remembered]:
        """Remember; see ``Memory.remember``."""
        chosen = Options(**options, model=self.model is not None)
        receipt = yield from remember(scope, what, chosen, self.space, self.writing)
        yield from self.flush()
        return receipt

    def recall(
        self,
        scope: MemoryScope,
        query: str,
        *,
        k: int,
        layers: Sequence[MemoryLayer | str] | None,
        as_of: datetime | None,
        budget: int | None,
    ) -> Flow[Recall]:
        """Recall; see ``Memory.recall``."""
        ask = self._ask(scope, query, k, layers, as_of, budget)
        found = yield from retrieval.recall(ask, self.tokens)
        if found.hits:
            self._note_use(found, (yield from now()))
        return found

    def explain(
        self,
        scope: MemoryScope,
        query: str,
        id: str,
        *,
        k: int,
        layers: Sequence[MemoryLayer | str] | None,
        as_of: datetime | None,
    ) -> Flow[Explanation]:
        """Explain; see ``Memory.explain``."""
        return (yield from retrieval.explain(self._ask(scope, query, k, layers, as_of, None), id))

    def _ask(
        self,
        scope: MemoryScope,
        query: str,
        k: int,
        layers: Sequence[MemoryLayer | str] | None,
        as_of: datetime | None,
        budget: int | None,
    ) -> retrieval.Ask:
        return retrieval.Ask(
            scope=scope,
            query=query,
            k=k,
            layers=_layers(layers),
            as_of=as_of,
            budget=budget,
            model=self.space.model,
            settings=self.recall_settings,
        )

    def hydrate(
        self, query: str, scope: MemoryScope, *, k: int, budget: int, layers: Sequence[MemoryLayer | str] | None
    ) -> Flow[HydratedMemory]:
        """Recall for a prompt: fenced lines within a budget."""
        found = yield from self.recall(scope, query, k=k, layers=layers, as_of=None, budget=None)
        log = found.activation_log
        return hydrate_hits(
            found.hits,
            budget=budget,
            tokens=self.tokens,
            activation_log={
                "seeds": [list(seed) for seed in log.seeds],
                "activation": [list(each) for each in log.activation],
                "brought_in": list(log.brought_in),
                "steps": [[s.source, s.target, s.relation, s.hop, round(s.amount, 4), s.fan] for s in log.steps],
            },
        )

    def export(self, scope: MemoryScope, *, vectors: bool) -> Flow[Export]:
        """Export; see ``Memory.export``."""
        yield from self.flush()
        return (yield from transfer.export(scope, self.writing, vectors=vectors))

    def import_(self, scope: MemoryScope, data: Any, *, source: MemoryScope | None) -> Flow[Imported]:
        """Import; see ``Memory.import_``."""
        return (yield from transfer.import_(scope, data, self.writing, source=source))

    def erase(self, scope: MemoryScope, *, dry_run: bool = False) -> Flow[Erased]:
        """Erase; see ``Memory.erase``."""
        if not dry_run:
            with self._lock:
                self._used = {key: at for key, at in self._used.items() if not scope.contains(key[0])}
        return (yield from transfer.erase(scope, dry_run=dry_run))

    def stats(self, scope: MemoryScope) -> Flow[dict[str, Any]]:
        """Count; see ``Memory.stats``."""
        yield from self.flush()
        (counts,) = yield from run(Stats(scope))
        return dict(counts)

    def reembed(self, scope: MemoryScope | None, *, limit: int | None) -> Flow[Reembedded]:
        """Re-embed; see ``Memory.reembed``."""
        embedder = self._embedder()
        dimensions = embedder.dimensions
        return (yield from transfer.reembed(scope, embedder.model_id, dimensions, self.writing, limit=limit))

    def consolidate(
        self,
        scope: MemoryScope,
        *,
        cadence: str,
        at: datetime | None,
        dry_run: bool,
        settings: TendingSettings | None,
    ) -> Flow[ConsolidationReport]:
        """Consolidate; see ``Memory.consolidate``."""
        yield from self.flush()
        prices = prices_of(self.model)
        model = self.model is not None
        return (
            yield from consolidate_flow(
                scope, cadence, at=at, dry_run=dry_run, settings=settings, model=model, prices=prices
            )
        )

    # --- use --------------------------------------------------------------------------------------------------------

    def _note_use(self, found: Recall, at: datetime) -> None:
        with self._lock:
            for hit in found.hits:
                if hit.node.scope == found.scope:
                    self._used[found.scope, hit.node.id] = at
            while len(self._used) > PENDING:
                del self._used[next(iter(self._used))]

    def flush(self) -> Flow[int]:
        """Record the use noted so far, in one transaction. Gives how many rows were touched."""
        with self._lock:
            used, self._used = self._used, {}
        if not used:
            return 0
        by_scope: defaultdict[MemoryScope, list[str]] = defaultdict(list)
        for scope, node_id in used:
            by_scope[scope].append(node_id)
        latest = max(used.values())
        touched = yield from run(*(Touch(scope, tuple(ids), latest) for scope, ids in by_scope.items()))
        return sum(touched)

    # --- single memories --------------------------------------------------------------------------------------------

    link = staticmethod(keeping.link)
    forget = staticmethod(forgetting.forget)
    history = staticmethod(keeping.history)
    approve = staticmethod(keeping.approve)
    ack = staticmethod(reminders.ack)
    snooze = staticmethod(reminders.snooze)
    skills = staticmethod(layers.skills)
    skills_about = staticmethod(layers.skills_about)
    working = staticmethod(layers.working)


def _layers(layers: Sequence[MemoryLayer | str] | None) -> tuple[MemoryLayer, ...] | None:
    if layers is None:
        return None
    names = (layers,) if isinstance(layers, str) else tuple(layers)
    try:
        return tuple(MemoryLayer(name) for name in names) or None
    except ValueError:
        raise MemoryContractError(f"unknown layer in {names!r}; known: {', '.join(MemoryLayer)}") from None


def open_flows(
    url: str | Store,
    *,
    embedder: Any = None,
    model: Any = None,
    adopt: bool = False,
    recall_settings: RecallSettings | None = None,
    writing: WritingSettings | None = None,
    tokens: Any = None,
) -> MemoryFlows:
    """Open the store, the embedder and the model that a user names; see ``Memory.open``."""
    from wakeful.compaction.meter import as_meter
    from wakeful.models.choose import coerce_model
    from wakeful.models.embed import coerce_embedder

    chosen = coerce_embedder(embedder)
    if isinstance(url, str):
        model_id = chosen.model_id if chosen is not None else None
        dimensions = chosen.dimensions if chosen is not None else None
        store = open_store(url, model_id=model_id, dimensions=dimensions, adopt=adopt)
    else:
        store = url
    return MemoryFlows(
        store,
        embedder=chosen,
        model=coerce_model(model) if model is not None else None,
        recall_settings=recall_settings or RecallSettings(),
        writing=writing or WritingSettings(),
        meter=as_meter(tokens),
    )


Clock = Callable[[], datetime]
Period = str | timedelta
Trust = Literal["low", "normal", "high"]
