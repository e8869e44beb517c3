"""Make a broken history valid before anything is planned, and say what was done.

What is repaired: results without a call, calls without a result, results that stand elsewhere than right after their
call, second results of one call, reasoning items without the item that they belong to, neighbours of one role where
the format alternates, a history that does not open with a user where it must. A history that is whole is not touched;
the check is one pass over the weights.

Rules of the file:

- A result is paired with the nearest call before it that has its id and waits. Ids may come again in later rounds.
- A call of the last round may wait: its results are still to come. Any other gets a provisional answer, which pins its
  round; the real result replaces it when it comes.
- Nothing that a person wrote is ever removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wakeful.compaction.measure import History
from wakeful.compaction.moves import Repair
from wakeful.dialects.protocol import Count, Dialect, Flag, Kind, Remove, ToolResult, Weight

MISSING = '{"status": "pending", "note": "no result of this call was recorded"}'
"""The provisional answer of a call whose result is missing."""

OPENING = "[The record of this conversation starts here.]"
"""First message of a history that must open with a user's message and has none."""

_ROLES = (0, 1, 2, 2, 1, 0)
"""Who speaks, by ``Kind``: 1 the user's side, 2 the model's, 0 nobody (never merged)."""

_SYSTEM = bytes([Kind.SYSTEM])

_ROLE_TABLE = bytes(_ROLES).ljust(256, b"\0")


def is_whole(dialect: Dialect, history: History, *, before: Weight | None = None) -> bool:
    """Say whether nothing needs repair. ``before``: the message before these, when they are the end of a history."""
    facts = dialect.facts
    items, together = facts.thinking == "items", facts.results_in_user
    if items and lone_reasoning(history.weights):
        return False
    columns = history.columns()
    waiting: tuple[str, ...] = ()
    answering = short = False
    for kind, calls, results, message in zip(
        columns.kinds, columns.calls, columns.results, history.messages, strict=True
    ):
        if results:
            if short:
                return False
            if waiting == results:
                waiting = ()
            elif waiting and waiting[:1] == results:
                waiting = waiting[1:]
                short = together
            else:
                left = list(waiting)
                for call_id in results:
                    if call_id not in left:
                        return False
                    left.remove(call_id)
                waiting = tuple(left)
                short = together and bool(left)
            answering = True
            if kind == 1 and not _results_first(dialect, message):
                return False
        elif waiting and not (items and not answering and (kind == 2 or kind == 3)):
            return False
        if calls:
            if waiting:
                if calls[0] in waiting:
                    return False
                calls = (*waiting, *calls)
            waiting = calls
            answering = False
    if before is None and facts.starts_with_user and not _opens_with_user(columns.kinds):
        return False
    return not facts.alternates or not _has_twins(
        columns.kinds if before is None else bytes([before[0]]) + columns.kinds
    )


def lone_reasoning(weights: Sequence[Weight]) -> list[int]:
    """Places of reasoning items that no item of the model follows (R3)."""
    last = len(weights) - 1
    return [
        i for i, w in enumerate(weights) if w[5] & 1 and w[0] == 2 and (i == last or weights[i + 1][0] not in (2, 3))
    ]


def _results_first(dialect: Dialect, message: Any) -> bool:
    seen_other = False
    for block in dialect.read(message).blocks:
        if isinstance(block, ToolResult):
            if seen_other:
                return False
        else:
            seen_other = True
    return True


def _opens_with_user(kinds: bytes) -> bool:
    rest = kinds.lstrip(_SYSTEM)
    return not rest or rest[0] in (Kind.USER, Kind.OTHER)


def _has_twins(kinds: bytes) -> bool:
    roles = kinds.translate(_ROLE_TABLE)
    return b"\1\1" in roles or b"\2\2" in roles


@dataclass(slots=True)
class _Batch:
    """The calls of one model step, and the messages (or parts of messages) that answer them."""

    last: int
    """Index of its last message with calls."""
    calls: list[str]
    waiting: list[str]
    parts: list[_Part] = field(default_factory=list)


@dataclass(slots=True)
class _Part:
    """Results of one message that belong to one batch."""

    index: int
    places: list[int]
    """Which of the message's results, by order."""
    ids: list[str]
    provisional: bool


def repair(dialect: Dialect, history: History, count: Count) -> tuple[History, tuple[Repair, ...]]:
    """Give a valid history and what was done to it; the same history when it is whole."""
    if is_whole(dialect, history):
        return history, ()
    work = _Work(dialect, history, count)
    work.pair()
    work.lay_out()
    out = work.finish()
    return join(dialect, out, count, work.repairs), tuple(work.repairs)


def join(dialect: Dialect, history: History, count: Count, repairs: list[Repair]) -> History:
    """Merge neighbours of one role, and let a user speak first, where the format demands it."""
    facts = dialect.facts
    if facts.starts_with_user and not _opens_with_user(history.kinds()):
        at = next((i for i, w in enumerate(history.weights) if w.kind != Kind.SYSTEM), 0)
        note = dialect.note(OPENING)
        history = History(
            [*history.messages[:at], note, *history.messages[at:]],
            [*history.weights[:at], dialect.weigh(note, count), *history.weights[at:]],
            [*history.origins[:at], -1, *history.origins[at:]],
            {(i if i < at else i + 1): origins for i, origins in history.merged.items()},
        )
        repairs.append(Repair("opened", -1, "the history did not open with a user's message"))
    if not facts.alternates or not _has_twins(history.kinds()):
        return history
    return _merge_twins(dialect, history, count, repairs)


def _merge_twins(dialect: Dialect, history: History, count: Count, repairs: list[Repair]) -> History:
    out = History([], [], [], {})
    origins: list[int] = []
    group: list[int] = []

    def flush() -> None:
        if len(group) == 1:
            i = group[0]
            out.messages.append(history.messages[i])
            out.weights.append(history.weights[i])
            if i in history.merged:
                out.merged[len(origins)] = history.merged[i]
            origins.append(history.origins[i])
        elif group:
            message = dialect.merge([history.messages[i] for i in group])
            parts = [o for i in group for o in history.merged.get(i, (history.origins[i],)) if o >= 0]
            out.messages.append(message)
            out.weights.append(dialect.weigh(message, count))
            if parts:
                out.merged[len(origins)] = tuple(parts)
            origins.append(parts[0] if parts else -1)
            repairs.append(Repair("merged", parts[0] if parts else -1, f"{len(group)} neighbours of one role"))
        group.clear()

    before = 0
    for i, weight in enumerate(history.weights):
        role = _ROLES[weight.kind]
        if not (role and role == before):
            flush()
        group.append(i)
        before = role
    flush()
    out.origins = origins
    return out


class _Work:
    """One repair under way."""

    def __init__(self, dialect: Dialect, history: History, count: Count) -> None:
        self.dialect = dialect
        self.history = history
        self.count = count
        self.repairs: list[Repair] = []
        self.batches: list[_Batch] = []
        self.by_call: dict[str, list[_Batch]] = {}
        """Batches that make a call of an id, oldest first."""
        self.batch_of: dict[int, _Batch] = {}
        """Batch of a part, by the part's identity."""
        self.opened_by: dict[int, _Batch] = {}
        self.parts: dict[int, list[_Part]] = {}
        self.out: list[tuple[Any, int]] = []
        self.placed: dict[int, tuple[int, ...]] = {}
        self.twice: set[int] = set()
        """Items with a call that another item makes too."""

    def pair(self) -> None:
        """Find the batch of every result."""
        weights = self.history.weights
        items = self.dialect.facts.thinking == "items"
        growing: _Batch | None = None
        for i, weight in enumerate(weights):
            if weight.results:
                growing = None
                self._pair_results(i, weight)
            if weight.calls and items and self._is_twice(i, weight.calls[0]):
                continue
            if weight.calls:
                if growing is not None and items:
                    growing.calls += weight.calls
                    growing.waiting += weight.calls
                    growing.last = i
                else:
                    growing = _Batch(i, list(weight.calls), list(weight.calls))
                    self.batches.append(growing)
                for call_id in weight.calls:
                    self.by_call.setdefault(call_id, []).append(growing)
            elif weight.kind not in (Kind.ASSISTANT,):
                growing = None
        for batch in self.batches:
            self.opened_by[batch.last] = batch

    def _is_twice(self, i: int, call_id: str) -> bool:
        """Settle a call item whose id another one has (ids of items are unique): an unanswered one gives way."""
        for batch in self.by_call.get(call_id, ()):
            if call_id not in batch.calls:
                continue
            if call_id not in batch.waiting:
                self.twice.add(i)
                self.repairs.append(Repair("duplicate_call", i, f"call {call_id} is made twice"))
                return True
            earlier = next(
                at
                for at in range(batch.last, -1, -1)
                if call_id in self.history.weights[at].calls and at not in self.twice
            )
            self.twice.add(earlier)
            self.repairs.append(Repair("duplicate_call", earlier, f"call {call_id} is made twice"))
            batch.calls.remove(call_id)
            batch.waiting.remove(call_id)
            return False
        return False

    def _pair_results(self, i: int, weight: Weight) -> None:
        for place, call_id in enumerate(weight.results):
            batch = next((b for b in reversed(self.by_call.get(call_id, ())) if call_id in b.waiting), None)
            if batch is not None:
                batch.waiting.remove(call_id)
            else:
                batch = self._late(call_id)
                if batch is None:
                    known = any(call_id in b.calls for b in self.by_call.get(call_id, ()))
                    kind = "duplicate_result" if known else "orphan_result"
                    self.repairs.append(Repair(kind, i, f"result of {call_id or '(no id)'}"))
                    self._part(i, None)
                    continue
                self.repairs.append(Repair("late_result", i, f"result of {call_id} replaces its provisional one"))
            part = self._part(i, batch)
            part.places.append(place)
            part.ids.append(call_id)

    def _late(self, call_id: str) -> _Batch | None:
        """Find a batch that has a provisional answer to this call, and take that answer away."""
        for batch in reversed(self.by_call.get(call_id, ())):
            for part in batch.parts:
                if part.provisional and call_id in part.ids:
                    at = part.ids.index(call_id)
                    del part.ids[at], part.places[at]
                    return batch
        return None

    def _part(self, i: int, batch: _Batch | None) -> _Part:
        parts = self.parts.setdefault(i, [])
        if batch is None:
            return _Part(i, [], [], False)
        for part in batch.parts:
            if part.index == i:
                return part
        part = _Part(i, [], [], bool(self.history.weights[i].flags & Flag.PROVISIONAL))
        parts.append(part)
        batch.parts.append(part)
        self.batch_of[id(part)] = batch
        return part

    def lay_out(self) -> None:
        """Put every message in its place, results right after their calls."""
        messages, weights = self.history.messages, self.history.weights
        end = len(weights) - 1
        while end >= 0 and weights[end].kind == Kind.RESULTS:
            end -= 1
        for i, weight in enumerate(weights):
            if i in self.twice:
                pass
            elif not weight.results:
                self.out.append((messages[i], i))
            elif weight.kind == Kind.USER:
                rest = self._only(i, keep_results=())
                whole = self._stays(i)
                if whole is None and rest is not None:
                    self.out.append((rest, i))
                elif whole is not None:
                    self.out.append((whole, i))
            batch = self.opened_by.get(i)
            if batch is not None and batch.calls:
                self._lay_results(batch, is_last=i >= end)

    def _lay_results(self, batch: _Batch, *, is_last: bool) -> None:
        answers: list[tuple[Any, int]] = []
        for part in batch.parts:
            if self._stays(part.index) is not None or not part.places:
                continue
            weight = self.history.weights[part.index]
            if weight.kind == Kind.RESULTS and len(part.places) == len(weight.results):
                answers.append((self.history.messages[part.index], part.index))
            else:
                piece = self._only(part.index, keep_results=part.places)
                if piece is not None:
                    answers.append((piece, part.index if weight.kind == Kind.RESULTS else -1))
            if part.index != batch.last + 1 + batch.parts.index(part):
                self.repairs.append(Repair("moved_result", part.index, f"to its call ({', '.join(part.ids)})"))
        follows_whole = any(self._stays(part.index) is not None for part in batch.parts)
        if batch.waiting and not (is_last and not follows_whole):
            for call_id in batch.waiting:
                answers.append((self.dialect.answer(call_id, MISSING, error=False), -1))
                self.repairs.append(Repair("missing_result", batch.last, f"call {call_id} has no result"))
        if self.dialect.facts.results_in_user and len(answers) > 1:
            origins = tuple(origin for _, origin in answers if origin >= 0)
            merged = self.dialect.merge([message for message, _ in answers])
            if origins:
                self.repairs.append(Repair("merged", origins[0], f"{len(answers)} messages with results of one batch"))
            self.placed[len(self.out)] = origins
            answers = [(merged, origins[0] if origins else -1)]
        self.out += answers

    def _stays(self, i: int) -> Any | None:
        """Give a user's message with results as it may stay in place: all its results answer the batch before it."""
        weight = self.history.weights[i]
        if weight.kind != Kind.USER:
            return None
        parts = self.parts.get(i, [])
        if len(parts) != 1 or len(parts[0].places) != len(weight.results):
            return None
        batch = self.batch_of[id(parts[0])]
        alone = batch.last == i - 1 and len(batch.parts) == 1 and not batch.waiting
        return self.history.messages[i] if alone and _results_first(self.dialect, self.history.messages[i]) else None

    def _only(self, i: int, *, keep_results: Sequence[int]) -> Any | None:
        """Give a message with some of its results and nothing else, or with none of them and everything else."""
        blocks = self.dialect.read(self.history.messages[i]).blocks
        edits, place = [], -1
        for at, block in enumerate(blocks):
            is_result = isinstance(block, ToolResult) and not block.server
            place += is_result
            kept = place in keep_results if is_result else not keep_results
            if not kept:
                edits.append(Remove(at))
        return self.dialect.rewrite(self.history.messages[i], edits)

    def finish(self) -> History:
        """Weigh what was laid out; reasoning that lost the item it belongs to goes."""
        known = {
            id(message): weight for message, weight in zip(self.history.messages, self.history.weights, strict=True)
        }
        messages = [message for message, _ in self.out]
        weights = [known.get(id(m)) or self.dialect.weigh(m, self.count) for m in messages]
        while self.dialect.facts.thinking == "items" and (lone := set(lone_reasoning(weights))):
            for at in sorted(lone):
                index = self.out[at][1]
                self.repairs.append(Repair("lone_reasoning", index, "no item of the model follows this reasoning item"))
            self.placed = {at - sum(1 for one in lone if one < at): parts for at, parts in self.placed.items()}
            self.out = [pair for at, pair in enumerate(self.out) if at not in lone]
            messages = [message for message, _ in self.out]
            weights = [weight for at, weight in enumerate(weights) if at not in lone]
        origins: list[int] = []
        merged: dict[int, tuple[int, ...]] = {}
        seen: set[int] = set()
        for at, (_, index) in enumerate(self.out):
            origin = self.history.origins[index] if index >= 0 else -1
            if origin in seen:
                origin = -1
            seen.add(origin)
            origins.append(origin)
            if index in self.history.merged:
                merged[at] = self.history.merged[index]
            parts = self.placed.get(at)
            if parts and len(parts) > 1:
                found = (self.history.origins[part] for part in parts)
                group = tuple(each for each in found if each == origin or each not in seen)
                seen.update(group)
                if len(group) > 1:
                    merged[at] = group
        return History(messages, weights, origins, merged)
