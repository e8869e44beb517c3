"""What a compaction gives back: messages, facts about what happened, the plan, and everything it took out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, overload

from wakeful.compaction.digest_parts import Breaker
from wakeful.compaction.draft import Taken
from wakeful.compaction.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A message that was removed, as it came."""

    id: str
    """The id it had: that of its entry, or a hash of its content with its ordinal among equals."""
    message: Any
    """Its original content."""
    position: int
    """Index in the list that was compacted."""


class DroppedMessages(Sequence[Dropped]):
    """Messages removed, oldest first. Ids are made when they are first asked for."""

    __slots__ = ("_ids", "_made", "_messages", "_places")

    def __init__(self, places: Sequence[int], messages: Sequence[Any], ids: Callable[[], Sequence[str]]) -> None:
        self._places = places
        self._messages = messages
        self._ids = ids
        self._made: tuple[Dropped, ...] | None = None

    def _all(self) -> tuple[Dropped, ...]:
        if self._made is None:
            ids, messages = self._ids(), self._messages
            self._made = tuple(Dropped(id=ids[i], message=messages[i], position=i) for i in self._places)
        return self._made

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Dropped: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Dropped, ...]: ...
    def __getitem__(self, index: int | slice) -> Dropped | tuple[Dropped, ...]:
        return self._all()[index]

    def __iter__(self) -> Iterator[Dropped]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (DroppedMessages, tuple)) and self._all() == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # it holds messages, which have no hash

    def __repr__(self) -> str:
        return f"<{len(self)} dropped messages>"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionMeta(Mapping[str, Any]):
    """Facts about a compaction, as attributes and as a mapping; a key that is absent reads as None."""

    compacted: bool
    """True exactly when what is returned differs from what was given."""
    tokens_before: int | None = None
    """Estimate of the whole history."""
    tokens_after: int | None = None
    tokens_removed: int | None = None
    """Estimate of this turn's messages that were removed; the task budget's remaining subtracts it."""
    strategy: str | None = None
    """The strategy that really ran."""
    dropped: Sequence[Any] | None = None
    """Entries that were removed, oldest first, with the ids they had and their original content."""
    error: str | None = None
    """Why it failed; everything is as it was."""
    reason: str | None = None
    """A code for why nothing, or only a repair, was done: ``fits``, ``nothing_to_drop``, ``repaired``,
    ``no_window``, ``breaker_open``, ``not_worth_it``, ``off``."""
    over_budget: bool | None = None
    """True when it still does not fit."""
    floor_tokens: int | None = None
    """With ``over_budget``: tokens of what can't shrink."""
    thinking_off: bool | None = None
    """True when the running tool loop lost its reasoning: the next request runs without thinking until it closes."""
    notes: tuple[str, ...] | None = None
    """What a person should know: rungs that were skipped, digests that were refused."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Keys of a compactor of your own."""

    def __getitem__(self, key: str) -> Any:
        if key in self.extra:
            return self.extra[key]
        if key not in _KEYS:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        yield from (key for key in _KEYS if getattr(self, key) is not None)
        yield from self.extra

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        return key in self.extra or (key in _KEYS and getattr(self, str(key)) is not None)

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> CompactionMeta:
        """Take a mapping as meta; keys of its own go to ``extra``."""
        if isinstance(value, CompactionMeta):
            return value
        known = {key: value[key] for key in value if key in _KEYS}
        known["compacted"] = bool(known.get("compacted", False))
        return cls(**known, extra={key: value[key] for key in value if key not in _KEYS})


_KEYS = tuple(f.name for f in fields(CompactionMeta) if f.name != "extra")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """What ``compact`` gives."""

    messages: list[Any]
    """Native messages; the caller's own list when nothing was done, and untouched messages are its own objects."""
    meta: CompactionMeta
    plan: Plan
    dropped: Sequence[Dropped] = ()
    """Messages removed, oldest first."""
    taken: tuple[Taken, ...] = ()
    """Originals behind the archive ids that this compaction put into the history."""
    origins: Sequence[int] = ()
    """For each of ``messages`` its index in the list given; -1 for a message that was made."""
    merged: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Indexes, in the list given, of the messages that one of ``messages`` was merged from."""
    before: Sequence[Any] = ()
    """The messages given."""
    breaker: Breaker = field(default_factory=Breaker)
    """State of the summariser's breaker."""

    @property
    def compacted(self) -> bool:
        """Something changed."""
        return self.meta.compacted

    def undo(self) -> list[Any]:
        """Give back what was there before."""
        return list(self.before)
