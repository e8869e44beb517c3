"""A history under work: what is edited, what is gone, what it weighs now. Nothing of the caller's is changed.

Rules of the file:

- Places (``i``) are indexes of the repaired history. The caller's own indexes are ``history.origins``.
- An edit is kept only when it makes the message lighter.
- Every original that an edit or a removal takes away is noted, so that it can be archived and given back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from typing import Any

from wakeful.compaction.archive import archive_id, is_summary, placeholder, placeholder_id
from wakeful.compaction.extract import telling
from wakeful.compaction.measure import History
from wakeful.compaction.moves import Clear, Digest, Drop, Move, Shorten, StripThinking
from wakeful.compaction.policy import MIN_CLEAR, Policy
from wakeful.compaction.repair import OPENING
from wakeful.compaction.rounds import Round, rounds_of, users
from wakeful.compaction.shorten import LEAST, shorten, shorten_value
from wakeful.dialects.native import CALL_OVERHEAD
from wakeful.dialects.protocol import (
    Columns,
    Edit,
    Flag,
    ForgetId,
    Kind,
    Media,
    Remove,
    SetArguments,
    SetMedia,
    SetResult,
    SetText,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Weight,
)

LONG_ARGUMENT = 400
"""Characters over which a string among a call's arguments is cleared; ids, paths and names are shorter and stay."""

TELLING_CHARS = 240
"""Characters of a cleared result's values that its placeholder names, at most; of a short one a quarter of it."""

_CALL_TOKENS = 160
"""Tokens of a message with calls under which its arguments are not worth reading."""

_start = itemgetter(0)

_HEAD_USERS = 8
"""User messages at the head that are looked at for notes of our own; they stand among the first two."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Neighbouring messages that were taken out of the history, or one whose content was."""

    id: str
    origins: tuple[int, ...]
    messages: tuple[Any, ...]
    what: str
    tokens: int


@dataclass(frozen=True, slots=True)
class OldSummary:
    """A summary of an earlier compaction, in the history."""

    place: int
    block: int | None
    """Its block in a message that holds more; None: the whole message."""
    text: str


class Draft:
    """One compaction under way."""

    def __init__(self, policy: Policy, history: History, given: int) -> None:
        self.policy = policy
        self.dialect = policy.dialect
        self.count = policy.meter.count
        self.history = history
        self.given = given
        """Messages that the caller gave."""
        self.messages: list[Any] = history.messages
        self._weights: list[Weight] | None = None
        """Weights now, once one has changed."""
        self.gone: set[int] = set()
        self.removed: list[tuple[int, int]] = []
        """Spans of places that ``remove`` took out."""
        self.edited: dict[int, Any] = {}
        """Originals of edited messages, by place."""
        self.tokens = history.tokens
        self.size = history.size
        self.moves: list[Move] = []
        self.notes: list[str] = []
        self.taken: dict[str, Taken] = {}
        """What left the history, by archive id, in order."""
        self.summary: tuple[Any, Weight] | None = None
        """A summary message to be placed at the head."""
        self.digested = False
        self.thinking_off = False
        self.breaker = policy.breaker
        self.summaries, self.ours = self._find_own()
        whole = {old.place for old in self.summaries if old.block is None}
        self.rounds: list[Round] = rounds_of(history, self.dialect.facts, marked=self._marked(), own=self.ours | whole)
        self.first_user, self.latest_user = self._users()
        factor = policy.meter.unscaled
        budget = policy.budget
        self.room, self.goal, self.start = factor(budget.room), factor(budget.goal), factor(budget.start)
        self.byte_room, self.byte_goal, self.byte_start = budget.byte_room, budget.byte_goal, budget.byte_start

    @property
    def weights(self) -> list[Weight]:
        """Weights of all places, gone or not, as they are now."""
        return self.history.weights if self._weights is None else self._weights

    def columns(self) -> Columns | None:
        """The same by field, while no message was edited; None afterwards."""
        return self.history.columns() if self._weights is None else None

    # -- what it is ---------------------------------------------------------------------------------------------

    def within(self, limits: tuple[int, int]) -> bool:
        """It has at most so many tokens and bytes."""
        return self.tokens <= limits[0] and self.size <= limits[1]

    def fits(self) -> bool:
        """It can be sent."""
        return self.tokens <= self.room and self.size <= self.byte_room

    def reached(self) -> bool:
        """It came down to the target."""
        return self.tokens <= self.goal and self.size <= self.byte_goal

    def rests(self) -> bool:
        """It is so small that no compaction would start."""
        return self.tokens <= self.start and self.size <= self.byte_start

    @property
    def at_room(self) -> tuple[int, int]:
        """Most tokens and bytes with which it can be sent."""
        return self.room, self.byte_room

    @property
    def at_goal(self) -> tuple[int, int]:
        """Tokens and bytes of the target."""
        return self.goal, self.byte_goal

    @property
    def at_start(self) -> tuple[int, int]:
        """Most tokens and bytes with which no compaction would start."""
        return self.start, self.byte_start

    def old(self, keep: int) -> list[Round]:
        """Rounds that may go, oldest first, but for the newest ``keep`` of all rounds."""
        return self._may_go(self.rounds[: max(0, len(self.rounds) - keep)])

    def recent(self, keep: int) -> list[Round]:
        """Rounds that may go among the newest ``keep``, oldest first."""
        return self._may_go(self.rounds[max(0, len(self.rounds) - keep) :])

    def _may_go(self, rounds: list[Round]) -> list[Round]:
        gone = self.gone
        return [r for r in rounds if not r[2] and r[0] not in gone] if gone else [r for r in rounds if not r[2]]

    def neighbours(self, rounds: Sequence[Round]) -> bool:
        """Say whether there is nothing between these rounds (some of this draft's, in order)."""
        if not rounds:
            return True
        last = bisect_left(self.rounds, rounds[0][0], key=_start) + len(rounds) - 1
        return last < len(self.rounds) and self.rounds[last][0] == rounds[-1][0]

    def weight_of(self, r: Round) -> int:
        """Tokens of a round now."""
        if self._weights is None:
            tokens = self.history.running_tokens()
            return tokens[r[1]] - tokens[r[0]]
        return sum([w[1] for w in self._weights[r[0] : r[1]]])

    def weight_of_all(self, rounds: Sequence[Round]) -> int:
        """Tokens of some of the rounds now."""
        if not rounds:
            return 0
        tokens = self.running()[0]
        if self.neighbours(rounds):
            return tokens[rounds[-1][1]] - tokens[rounds[0][0]]
        return sum([tokens[r[1]] - tokens[r[0]] for r in rounds])

    def original(self, i: int) -> Any:
        """The message at a place as the caller gave it."""
        return self.edited.get(i, self.messages[i])

    def _marked(self) -> set[int]:
        marked = self.policy.marked
        if not marked:
            return set()
        places = {i for i, origin in enumerate(self.history.origins) if origin in marked}
        places |= {i for i, origins in self.history.merged.items() if marked.intersection(origins)}
        return places

    def _users(self) -> tuple[int, int]:
        own = self.ours | {old.place for old in self.summaries if old.block is None}
        return users(self.history.kinds(), own)

    def _find_own(self) -> tuple[list[OldSummary], set[int]]:
        """Find summaries and opening notes of earlier compactions: they stand at the head, before any answer."""
        found: list[OldSummary] = []
        ours: set[int] = set()
        looked = 0
        for i, kind in enumerate(self.history.kinds()):
            if kind == Kind.USER:
                blocks = self.dialect.read(self.messages[i]).blocks
                texts = [(at, b.text) for at, b in enumerate(blocks) if isinstance(b, Text)]
                for at, text in texts:
                    if is_summary(text):
                        found.append(OldSummary(i, None if len(blocks) == 1 else at, text))
                if len(blocks) == 1 and texts and texts[0][1] == OPENING:
                    ours.add(i)
                looked += 1
                if looked >= _HEAD_USERS:
                    break
            elif kind not in (Kind.SYSTEM, Kind.OTHER):
                break
        return found, ours

    # -- edits --------------------------------------------------------------------------------------------------

    def edit(self, i: int, edits: Sequence[Edit]) -> bool:
        """Make edits when they make the message lighter (in tokens or bytes); say whether they were made."""
        message = self.dialect.rewrite(self.messages[i], edits)
        if message is None:
            return False
        weight, before = self.dialect.weigh(message, self.count), self.weights[i]
        if weight.tokens > before.tokens or (weight.tokens == before.tokens and weight.wire_bytes >= before.wire_bytes):
            return False
        self._replace(i, message, weight)
        return True

    def _replace(self, i: int, message: Any, weight: Weight) -> None:
        if self._weights is None:
            self.messages, self._weights = list(self.messages), list(self.weights)
        self.edited.setdefault(i, self.messages[i])
        before = self._weights[i]
        self.tokens += weight.tokens - before.tokens
        self.size += weight.wire_bytes - before.wire_bytes
        self.messages[i], self._weights[i] = message, weight

    def remove(self, rounds: Sequence[Round]) -> list[int]:
        """Take rounds out; gives the places, oldest first."""
        spans = [(rounds[0][0], rounds[-1][1])] if rounds and self.neighbours(rounds) else _joined(rounds)
        places: list[int] = []
        tokens, sizes = self.running()
        for start, stop in spans:
            places += range(start, stop)
            self.tokens -= tokens[stop] - tokens[start]
            self.size -= sizes[stop] - sizes[start]
        self.gone.update(places)
        self.removed += spans
        return places

    def running(self) -> tuple[list[int], list[int]]:
        """Give tokens and bytes before each place, as messages weigh now, and of all at the end."""
        if self._weights is None:
            return self.history.running_tokens(), self.history.running_sizes()
        return [0, *accumulate([w[1] for w in self._weights])], [0, *accumulate([w[4] for w in self._weights])]

    def clear(self, r: Round, *, media: bool = False) -> bool:
        """Clear the results and long arguments of a round; with ``media`` also images in its messages."""
        done = False
        least = MIN_CLEAR + self.dialect.facts.message_overhead + CALL_OVERHEAD
        weights = self.weights
        for i in range(r[0], r[1]):
            kind, tokens, _, results, _, flags = weights[i]
            if not (media and flags & Flag.MEDIA):
                if tokens <= least or (kind == Kind.CALLS and tokens < _CALL_TOKENS):
                    continue
                if not media and not (kind in (Kind.CALLS, Kind.RESULTS) or results):
                    continue
            done = self._clear_message(i, r, media) or done
        return done

    def _name_of(self, call_id: str, r: Round) -> str:
        """Give the name of the tool that a call of this round is for; "" when it is not there."""
        for i in range(r[0], r[1]):
            if call_id in self.weights[i].calls:
                for block in self.dialect.read(self.messages[i]).blocks:
                    if isinstance(block, ToolUse) and block.id == call_id:
                        return block.name
        return ""

    def _clear_message(self, i: int, r: Round, media: bool) -> bool:
        original = self.original(i)
        edits: list[Edit] = []
        id = ""
        what = ""
        for at, block in enumerate(self.dialect.read(self.messages[i]).blocks):
            edit, described = self._clear_block(at, block, r, media, i)
            if edit is None:
                continue
            if not id:
                id, what = archive_id(self.dialect.name, (self.dialect.dumps(original),)), described
            edits.append(_with_id(edit, id))
        if not edits:
            return False
        before = self.weights[i].tokens
        if not self.edit(i, edits):
            return False
        self.note_taken(id, i, original, what, before)
        self._note_clear(i, id, before, what, "old tool results are cleared first")
        return True

    def _note_clear(self, i: int, id: str, before: int, what: str, reason: str) -> None:
        self.moves.append(
            Clear(
                index=self.history.origins[i],
                archive_id=id,
                tokens_before=before,
                tokens_after=self.weights[i].tokens,
                what=what,
                reason=reason,
            )
        )

    def _clear_block(self, at: int, block: Any, r: Round, media: bool, i: int) -> tuple[Edit | None, str]:
        if isinstance(block, ToolResult) and not block.server:
            if placeholder_id(block.text) is not None:
                return None, ""
            tokens = self.count(block.text, "text")
            if tokens <= MIN_CLEAR and not (block.media_bytes and media):
                return None, ""
            name = block.name or self._name_of(block.call_id, r)
            what = f"{'error' if block.error else 'result'} of {name}" if name else "result of a tool"
            weigh = tokens if not block.media_bytes else max(tokens, self.weights[i].tokens)
            return SetResult(at, placeholder("\0", what, weigh, telling(block.text, min(TELLING_CHARS, tokens)))), what
        if isinstance(block, ToolUse) and not block.server:
            what = f"arguments of {block.name}"
            arguments = _cleared_arguments(block.arguments, what, self.count)
            return (SetArguments(at, arguments), what) if arguments is not None else (None, "")
        if media and isinstance(block, Media) and block.bytes:
            what = f"{block.kind} {block.media_type}".strip()
            return SetMedia(
                at, placeholder("\0", f"{what}, {block.bytes:,} bytes", self.dialect.facts.media_tokens)
            ), what
        return None, ""

    def shorten_block(self, i: int, at: int, block: Any, tokens: int) -> bool:
        """Shorten one content of a message to so many tokens."""
        original = self.original(i)
        id = archive_id(self.dialect.name, (self.dialect.dumps(original),))
        edit: Edit
        if isinstance(block, ToolResult):
            text = shorten(block.text, tokens, id, self.count)
            if text is None:
                return False
            edit = SetResult(at, text)
        else:
            value = block.arguments if isinstance(block.arguments, dict) else {"arguments": block.arguments}
            short = shorten_value(value, tokens, id, self.count)
            if short is None:
                return False
            edit = SetArguments(at, short)
        before = self.weights[i].tokens
        if not self.edit(i, [edit]):
            return False
        self.note_taken(id, i, original, "content of the open round", before)
        self.moves.append(
            Shorten(
                index=self.history.origins[i],
                archive_id=id,
                tokens_before=before,
                tokens_after=self.weights[i].tokens,
            )
        )
        return True

    def open_blocks(self) -> list[tuple[int, int, int, Any]]:
        """Contents of the open round that may be shortened: ``(tokens, place, block index, block)``, largest first."""
        found: list[tuple[int, int, int, Any]] = []
        for r in self.rounds:
            if not r.open:
                continue
            for i in range(r.start, r.stop):
                if self.weights[i].kind not in (Kind.CALLS, Kind.RESULTS, Kind.USER):
                    continue
                for at, block in enumerate(self.dialect.read(self.messages[i]).blocks):
                    if isinstance(block, ToolResult) and not block.server:
                        size = self.count(block.text, "json" if block.text[:1] in ("{", "[") else "text")
                    elif isinstance(block, ToolUse) and not block.server:
                        size = self.count(str(block.arguments), "json")
                    else:
                        continue
                    if size > LEAST:
                        found.append((size, i, at, block))
        found.sort(key=lambda item: (-item[0], item[1], item[2]))
        return found

    def note_taken(self, id: str, i: int, original: Any, what: str, tokens: int) -> None:
        """Note an original whose content left the history."""
        if id not in self.taken:
            self.taken[id] = Taken(id, (self.history.origins[i],), (original,), what, tokens)

    # -- thinking -----------------------------------------------------------------------------------------------

    def strip_thinking(self) -> None:
        """Remove the reasoning that is bound to a history which has changed, by the dialect's table."""
        bound = self.dialect.facts.thinking
        if bound == "none":
            return
        flags = self.history.columns().flags
        stop = self.latest_user if bound == "current_turn" else len(flags)
        for i in [i for i, bits in enumerate(flags[: max(0, stop)]) if bits & Flag.THINKING]:
            if i in self.gone or not self.weights[i].flags & Flag.THINKING:
                continue
            blocks = self.dialect.read(self.messages[i]).blocks
            edits: list[Edit] = [Remove(at) for at, block in enumerate(blocks) if isinstance(block, Thinking)]
            if edits:
                self._strip(i, edits)
        if bound == "items":
            self._forget_ids()

    def _strip(self, i: int, edits: list[Edit]) -> None:
        before = self.weights[i]
        message = self.dialect.rewrite(self.messages[i], edits)
        after = 0
        if message is None:
            self.tokens -= before.tokens
            self.size -= before.wire_bytes
            self.gone.add(i)
        else:
            weight = self.dialect.weigh(message, self.count)
            after = weight.tokens
            self._replace(i, message, weight)
        open_loop = i > self.latest_user and bool(self.rounds) and self.rounds[-1].open
        self.thinking_off = self.thinking_off or open_loop
        self.moves.append(StripThinking(index=self.history.origins[i], tokens_before=before.tokens, tokens_after=after))

    def _forget_ids(self) -> None:
        """Responses: items that point to reasoning which is gone lose their ids (R4)."""
        for i, weight in enumerate(self.weights):
            if i in self.gone or weight.kind not in (Kind.ASSISTANT, Kind.CALLS):
                continue
            message = self.dialect.rewrite(self.messages[i], [ForgetId()])
            if message is not None and message is not self.messages[i]:
                self._replace(i, message, self.dialect.weigh(message, self.count))

    def set_summary(self, text: str) -> None:
        """Put a summary at the head, in the place of those before it."""
        for old in self.summaries:
            if old.block is None and old.place not in self.gone:
                weight = self.weights[old.place]
                self.gone.add(old.place)
                self.tokens -= weight.tokens
                self.size -= weight.wire_bytes
        inside = [old for old in self.summaries if old.block is not None]
        if inside:
            first = inside[0]
            edits: list[Edit] = [SetText(first.block or 0, text)]
            edits += [Remove(old.block or 0) for old in inside[1:] if old.place == first.place]
            message = self.dialect.rewrite(self.messages[first.place], edits)
            self._replace(first.place, message, self.dialect.weigh(message, self.count))
        else:
            note = self.dialect.note(text)
            weight = self.dialect.weigh(note, self.count)
            self.summary = (note, weight)
            self.tokens += weight.tokens
            self.size += weight.wire_bytes
        self.digested = True

    def take_summaries_back(self, reason: str) -> None:
        """Remove the summary that was made, and those that stand inside a message with something else."""
        if self.summary is not None:
            weight = self.summary[1]
            self.tokens -= weight.tokens
            self.size -= weight.wire_bytes
            self.summary = None
        for place in dict.fromkeys(old.place for old in self.summaries if old.block is not None):
            blocks = self.dialect.read(self.messages[place]).blocks
            edits: list[Edit] = [
                Remove(at) for at, block in enumerate(blocks) if isinstance(block, Text) and is_summary(block.text)
            ]
            message = self.dialect.rewrite(self.messages[place], edits) if edits else None
            if message is None:
                continue
            original, before = self.original(place), self.weights[place].tokens
            self._replace(place, message, self.dialect.weigh(message, self.count))
            if not self.digested:
                id = archive_id(self.dialect.name, (self.dialect.dumps(original),))
                self.note_taken(id, place, original, "an earlier summary", before)
                self._note_clear(place, id, before, "an earlier summary", reason)
        self.digested = False
        self.moves = [
            Drop(indexes=m.indexes, archive_id=m.archive_id, tokens_before=m.tokens_before, reason=reason)
            if isinstance(m, Digest)
            else m
            for m in self.moves
        ]


def _joined(rounds: Iterable[Round]) -> list[tuple[int, int]]:
    """Join neighbouring rounds to spans."""
    spans: list[tuple[int, int]] = []
    start = stop = -1
    for a, b, *_ in rounds:
        if a != stop:
            if stop > start:
                spans.append((start, stop))
            start = a
        stop = b
    if stop > start:
        spans.append((start, stop))
    return spans


def _with_id(edit: Edit, id: str) -> Edit:
    """Put the archive id where a placeholder waits for it."""
    if isinstance(edit, SetResult):
        return SetResult(edit.block, edit.text.replace("\0", id))
    if isinstance(edit, SetMedia):
        return SetMedia(edit.block, edit.text.replace("\0", id))
    if isinstance(edit, SetArguments):
        filled = _fill(edit.arguments, id)
        assert isinstance(filled, dict)
        return SetArguments(edit.block, filled)
    return edit


def _fill(value: Any, id: str) -> Any:
    if isinstance(value, str):
        return value.replace("\0", id) if value.startswith("[cleared: ") else value
    if isinstance(value, dict):
        return {key: _fill(item, id) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, id) for item in value]
    return value


def _cleared_arguments(arguments: Any, what: str, count: Any) -> dict[str, Any] | None:
    """Give arguments with their long strings cleared; None when there are none."""
    if isinstance(arguments, str):
        if len(arguments) <= LONG_ARGUMENT or "[cleared: " in arguments[:64]:
            return None
        return {"cleared": placeholder("\0", what, count(arguments, "json"))}
    if not isinstance(arguments, dict):
        return None
    found = False

    def walk(value: Any) -> Any:
        nonlocal found
        if isinstance(value, str):
            if len(value) > LONG_ARGUMENT and placeholder_id(value) is None:
                found = True
                return placeholder("\0", what, count(value, "text"))
            return value
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item) for item in value]
        return value

    cleared = walk(arguments)
    return cleared if found else None
