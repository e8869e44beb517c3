"""What a memory store is: operations as data behind two methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from wakeful.errors import EmbeddingMismatch
from wakeful.ops import MemoryOp


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """The model that made a store's vectors, and their size."""

    model: str
    dimensions: int


@runtime_checkable
class Store(Protocol):
    """Keep memory and answer operations on it.

    ``execute`` runs its operations in order in one transaction and gives one result each; when one raises, nothing
    was changed. Reads write nothing. A store may be shared by threads; ``StoreBusy`` may be tried again.
    """

    kind: str
    """``memory``, ``sqlite`` or ``postgresql``."""
    url: str
    supports_updated_since: bool
    """True: ``updated_since`` is a range in an index."""
    stores_native_scopes: bool
    """True: rows keep the whole path of their scope."""

    @property
    def embedding(self) -> EmbeddingSpace | None:
        """The declared model of the vectors; None while none was declared or written."""

    def execute(self, ops: Sequence[MemoryOp]) -> tuple[Any, ...]:
        """Run operations, all or nothing; one result an operation."""

    async def aexecute(self, ops: Sequence[MemoryOp]) -> tuple[Any, ...]:
        """Run operations without blocking the event loop."""

    def close(self) -> None:
        """Give back every resource. A closed store raises ``StoreError`` when used."""

    async def aclose(self) -> None:
        """Close, awaited."""


def settle_embedding(
    held: EmbeddingSpace | None, wanted: EmbeddingSpace | None, *, adopt: bool = False
) -> EmbeddingSpace | None:
    """Decide the embedding of a store that is opened with ``wanted``. Raises ``EmbeddingMismatch``."""
    if wanted is None or held is None or adopt:
        return wanted or held
    if held.model != wanted.model or (held.dimensions and wanted.dimensions and held.dimensions != wanted.dimensions):
        raise EmbeddingMismatch(
            f"the store holds vectors of {held.model!r} ({held.dimensions} dimensions), the embedder given is "
            f"{wanted.model!r} ({wanted.dimensions} dimensions); run reembed to move the store to it, or open the "
            f"store with {held.model!r}"
        )
    return EmbeddingSpace(held.model, held.dimensions or wanted.dimensions)
