"""The window of recently updated semantic nodes as an awaitable, for a user's own phases, and the graph that it reads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wakeful.consolidation.window import cutoff
from wakeful.engine.drive import utc_now
from wakeful.errors import MemoryContractError
from wakeful.ops import QueryNodes, QuerySubtree, Visibility
from wakeful.records import MemoryLayer, MemoryNode, MemoryScope, NativeStorageScope, node_scope, tenant_scope
from wakeful.stores.protocol import Store


@dataclass(frozen=True, slots=True)
class MemoryGraph:
    """A store as a graph of nodes, with the scope given to each call."""

    store: Store
    clock: Callable[[], datetime] = utc_now

    stores_native_scopes = True
    supports_updated_since = True

    async def query_nodes(
        self,
        scope: MemoryScope | NativeStorageScope,
        *,
        layer: MemoryLayer | None = None,
        updated_since: datetime | None = None,
        limit: int | None = None,
    ) -> list[MemoryNode]:
        """Active nodes that the scope sees: its own and its ancestors', newest first."""
        query = QueryNodes(
            scope=tenant_scope(scope),
            visibility=Visibility(at=self.clock(), layers=None if layer is None else (layer,)),
            updated_since=updated_since,
            limit=limit,
        )
        (found,) = await self.store.aexecute((query,))
        return list(found)

    async def query_subtree(
        self, scope: MemoryScope | NativeStorageScope, filter: Mapping[str, Any], *, limit: int | None = None
    ) -> list[MemoryNode]:
        """Active nodes owned by the scope or by any below it. ``filter``: ``layer`` and ``updated_since``."""
        unknown = sorted(set(filter) - {"layer", "updated_since"})
        if unknown:
            raise MemoryContractError(f"query_subtree has no filter {', '.join(unknown)}; known: layer, updated_since")
        layer = filter.get("layer")
        query = QuerySubtree(
            scope=tenant_scope(scope),
            visibility=Visibility(at=self.clock(), layers=None if layer is None else (MemoryLayer(layer),)),
            updated_since=filter.get("updated_since"),
            limit=limit,
        )
        (found,) = await self.store.aexecute((query,))
        return list(found)


class RecentSemanticNodes:
    """The semantic nodes of a cycle's scope that were updated within the lookback, read once a cycle.

    ``graph`` has ``query_nodes(scope, layer=...)``, and for the exact owner ``query_subtree(scope, {"layer": ...},
    limit=None)``; one that says ``supports_updated_since`` is asked for the range alone, and its answer is checked again.
    ``exact_session_owner``: rows of the session itself only; a scope of ``identity_version`` 1 must then end in a level of
    ``session_kind``, and its graph must say ``stores_native_scopes``.
    """

    def __init__(
        self,
        graph: Any,
        *,
        lookback_hours: float = 24.0,
        exact_session_owner: bool = False,
        session_kind: str | None = None,
    ) -> None:
        self._graph = graph
        self._lookback_hours = lookback_hours
        self._exact = exact_session_owner
        self._session_kind = session_kind
        self._key: tuple[str, datetime] | None = None
        self._nodes: list[Any] = []

    async def for_cycle(self, context: Any) -> list[Any]:
        """Give the window of ``context`` (``scope``, ``started_at``).

        Raises ``MemoryContractError`` when the exact owner is wanted and scope or graph can't tell it.
        """
        key = (context.scope.path, context.started_at)
        if self._key == key:
            return self._nodes
        oldest = cutoff(context.started_at, self._lookback_hours)
        rows = await (self._owned(context.scope, oldest) if self._exact else self._readable(context.scope, oldest))
        recent = [node for node in rows if node.updated_at and node.updated_at >= oldest]
        # Together, and only now: a read that failed must not leave a key beside a window that it does not have.
        self._key, self._nodes = key, recent
        return recent

    async def _readable(self, scope: MemoryScope, oldest: datetime) -> list[Any]:
        extra = {"updated_since": oldest} if self._ranges() else {}
        return list(await _awaited(self._graph.query_nodes(tenant_scope(scope), layer=MemoryLayer.SEMANTIC, **extra)))

    async def _owned(self, scope: MemoryScope, oldest: datetime) -> list[Any]:
        storage = self._storage_scope(scope)
        wanted: dict[str, Any] = {"layer": MemoryLayer.SEMANTIC.value}
        if self._ranges():
            wanted["updated_since"] = oldest
        try:
            rows = list(await _awaited(self._graph.query_subtree(storage, wanted, limit=None)))
        except (AttributeError, NotImplementedError, TypeError) as error:
            raise MemoryContractError(
                "the exact owner's window needs a graph with query_subtree(scope, filter, limit=None)"
            ) from error
        if scope.identity_version:
            rows = [node for node in rows if node_scope(node) == scope]
        for node in rows:
            if node_scope(node) != scope or node.layer is not MemoryLayer.SEMANTIC:
                raise MemoryContractError(
                    f"query_subtree gave a row outside the exact owner {scope.path}: {node.id} ({node.layer})"
                )
        return rows

    def _storage_scope(self, scope: Any) -> MemoryScope | NativeStorageScope:
        if not isinstance(scope, MemoryScope):
            raise MemoryContractError(f"the exact owner is a MemoryScope that ends in a session level, not {scope!r}")
        if not scope.identity_version:
            if not scope.session:
                raise MemoryContractError(f"the exact owner must end in a session level; {scope.path} does not")
            return tenant_scope(scope)
        if not self._session_kind or scope.levels[-1][0] != self._session_kind:
            raise MemoryContractError(
                f"{scope.path} does not end in a level of kind {self._session_kind!r} (session_kind)"
            )
        if not getattr(self._graph, "stores_native_scopes", False):
            raise MemoryContractError(
                "the exact owner of a native scope needs a graph with stores_native_scopes = True"
            )
        return NativeStorageScope.from_scope(scope)

    def _ranges(self) -> bool:
        return bool(getattr(self._graph, "supports_updated_since", False))


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
