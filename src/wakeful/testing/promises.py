"""What every compaction promises, checked on one: used by unit, property, adapter and benchmark tests alike.

::

    result = compact(messages, window=8_000)
    assert_promises(messages, result, again=lambda given: compact(given, window=8_000))

| promise | |
|---|---|
| P1 | every kept result has its call before it, every kept call its results |
| P2 | never empty, never starts with a result, the format's own rules of role and order |
| P3 | kept messages keep order, role and content, but for what a compaction may edit |
| P4 | messages before = kept + dropped, disjoint |
| P5 | valid and fits: the same list object back |
| P6 | error: the same object back |
| P7 | ``compacted`` exactly when changed |
| P8 | no thinking survives where its prefix changed |
| P9 | compacting the result again gives the very same list |
| P10 | lighter than before, and it fits or says ``over_budget`` |
| P12 | the same input gives the same output |
| P13 | ``restore`` gives the original back, exactly |
| P14 | the input is never changed |

P11 (other branches) and P15 (messages appended meanwhile) are promises of ``AgentMemory`` and ``Window``, and have tests
of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wakeful.compaction.archive import is_summary, summary_ids
from wakeful.compaction.moves import Clear, Digest, Repair, Shorten
from wakeful.compaction.repair import OPENING
from wakeful.compaction.result import CompactionResult
from wakeful.dialects import get, guess
from wakeful.dialects.protocol import Dialect, Kind, Text, Thinking, ToolResult, ToolUse

Again = Callable[[list[Any]], CompactionResult]
"""Compact a list with the same arguments."""


class Promises:
    """One compaction, and what was before it."""

    def __init__(self, messages: Sequence[Any], result: CompactionResult, dialect: Dialect | str | None = None) -> None:
        self.before = list(messages)
        self.result = result
        self.after = result.messages
        self.dialect = (
            get(dialect) if dialect is not None else guess(self.before) if self.before else get("openai_chat")
        )
        self.kinds_before = self._kinds(self.before)
        self.kinds = self._kinds(self.after)

    def _kinds(self, messages: Sequence[Any]) -> list[int]:
        return [self.dialect.weigh(message, _no_tokens).kind for message in messages]

    def check(self) -> None:
        """Check every promise that one result can show."""
        self.valid()
        self.shape()
        self.kept()
        self.accounted()
        self.identity()
        self.thinking()
        self.lighter()
        self.restorable()

    def valid(self) -> None:
        """P1, P2: the rules of the format, pairing first."""
        if self.result.meta.error:
            return
        problems = self.dialect.validate(self.after)
        assert not problems, f"P1/P2: {problems[:3]} after {self.result.plan.moves[:4]}"

    def shape(self) -> None:
        """P2: never empty, never a result first."""
        if self.before and not self.result.meta.error:
            assert self.after, "P2: nothing is left"
            assert self.kinds[0] != Kind.RESULTS, "P2: it starts with a result"

    def kept(self) -> None:
        """P3: order, role and what people wrote."""
        result = self.result
        if not result.meta.compacted:
            return
        repaired = any(isinstance(move, Repair) for move in result.plan.moves)
        order = [origin for origin in result.origins if origin >= 0]
        if not repaired:
            assert order == sorted(order), "P3: the order changed"
        assert len(order) == len(set(order)), "P3: a message stands twice"
        for at, origin in enumerate(result.origins):
            if origin < 0 or at in result.merged:
                continue
            old, new = self.before[origin], self.after[at]
            if new is not old:
                self._same_but_edited(old, new, origin)
        for user in self._pinned_users():
            assert self._stands_verbatim(user), f"P3: the user's message {user} is not there verbatim"

    def _same_but_edited(self, old: Any, new: Any, origin: int) -> None:
        touched = any(
            isinstance(move, (Clear, Shorten, Repair)) and move.index == origin for move in self.result.plan.moves
        )
        was, now = self.dialect.read(old), self.dialect.read(new)
        assert was.role == now.role or touched, f"P3: the role of message {origin} changed"
        texts = [b.text for b in was.blocks if isinstance(b, Text)]
        left = [b.text for b in now.blocks if isinstance(b, Text) and not is_summary(b.text)]
        if not touched:
            assert left == [t for t in texts if not is_summary(t)], f"P3: the text of message {origin} changed"
        names = [(b.id, b.name) for b in was.blocks if isinstance(b, ToolUse)]
        assert names == [(b.id, b.name) for b in now.blocks if isinstance(b, ToolUse)] or touched, "P3: a call changed"
        errors = [(b.call_id, b.error) for b in was.blocks if isinstance(b, ToolResult)]
        kept = [(b.call_id, b.error) for b in now.blocks if isinstance(b, ToolResult)]
        assert errors == kept or touched, f"P3: the results of message {origin} changed their calls or flags"

    def _pinned_users(self) -> list[int]:
        users = [i for i, kind in enumerate(self.kinds_before) if kind == Kind.USER and not self._ours(self.before[i])]
        return sorted({users[0], users[-1]}) if users else []

    def _ours(self, message: Any) -> bool:
        texts = [b.text for b in self.dialect.read(message).blocks if isinstance(b, Text)]
        return bool(texts) and all(is_summary(text) or text == OPENING for text in texts)

    def _stands_verbatim(self, user: int) -> bool:
        message = self.before[user]
        if any(each is message for each in self.after):
            return True
        wanted = [b for b in self.dialect.read(message).blocks if not self._editable(b)]
        for at, each in enumerate(self.after):
            if user in self.result.merged.get(at, (self.result.origins[at],)):
                blocks = list(self.dialect.read(each).blocks)
                return all(block in blocks for block in wanted)
        return False

    @staticmethod
    def _editable(block: Any) -> bool:
        return isinstance(block, (Thinking, ToolResult, ToolUse)) or (
            isinstance(block, Text) and is_summary(block.text)
        )

    def accounted(self) -> None:
        """P4: kept and dropped are all there was, and nothing is both."""
        result = self.result
        kept: set[int] = set()
        for at, origin in enumerate(result.origins):
            kept.update(result.merged.get(at, (origin,) if origin >= 0 else ()))
        gone = [dropped.position for dropped in result.dropped]
        assert gone == sorted(gone), "P4: dropped is not oldest first"
        assert not kept & set(gone), "P4: a message is kept and dropped"
        assert kept | set(gone) == set(range(len(self.before))), "P4: a message is neither kept nor dropped"
        assert len({dropped.id for dropped in result.dropped}) == len(gone), "P4: an id stands twice in dropped"
        for dropped in result.dropped:
            assert dropped.message is self.before[dropped.position], "P4: dropped is not the original"
        assert bool(result.meta.dropped) == bool(gone), "P4: meta.dropped and dropped differ"

    def identity(self) -> None:
        """P5, P6, P7: the same object when nothing was done, and ``compacted`` says so."""
        result = self.result
        if not result.meta.compacted:
            assert result.messages is result.before, "P5/P6: an unchanged list must be the caller's own"
            assert result.dropped == (), "P4: something is dropped from an unchanged list"
        else:
            same = len(self.after) == len(self.before) and all(
                a is b for a, b in zip(self.after, self.before, strict=True)
            )
            assert not same, "P7: compacted, but nothing changed"
            assert result.meta.error is None, "P6: an error, and yet it is compacted"

    def thinking(self) -> None:
        """P8: reasoning is gone where the dialect binds it to a history that changed."""
        bound = self.dialect.facts.thinking
        if not self.result.meta.compacted or bound == "none":
            return
        latest = max((i for i, kind in enumerate(self.kinds) if kind == Kind.USER), default=0)
        stop = latest if bound == "current_turn" else len(self.after)
        for at in range(stop):
            blocks = self.dialect.read(self.after[at]).blocks
            assert not any(isinstance(block, Thinking) for block in blocks), f"P8: thinking survives in message {at}"

    def lighter(self) -> None:
        """P10: lighter, and in budget or marked."""
        meta, plan = self.result.meta, self.result.plan
        assert meta.tokens_before is not None
        assert meta.tokens_after is not None
        if meta.compacted and meta.reason != "repaired":
            less = meta.tokens_after < meta.tokens_before or plan.bytes_after < plan.bytes_before
            assert less, f"P10: {meta.tokens_before} tokens became {meta.tokens_after}"
        if meta.error is None:
            fits = plan.budget.fits(meta.tokens_after, plan.bytes_after)
            assert fits or meta.over_budget, "P10: it does not fit and does not say so"
            assert not (fits and meta.over_budget), "P10: it fits and says that it does not"

    def restorable(self) -> None:
        """P13: every id that this compaction put into the history, and that of each message dropped, gives back the
        original, byte for byte."""
        from wakeful.engine.verbs import restore

        for dropped in self.result.dropped:
            (message,) = restore(self.result, dropped.id).messages
            assert self.dialect.dumps(message) == self.dialect.dumps(self.before[dropped.position]), "P13"
        for move in self.result.plan.moves:
            if not isinstance(move, (Clear, Digest, Shorten)) or not move.archive_id:
                continue
            for id in move.archive_id.split(", "):
                span = restore(self.result, id)
                origins = next(taken.origins for taken in self.result.taken if taken.id == id)
                for message, origin in zip(span.messages, origins, strict=True):
                    if origin >= 0 and origin not in self._edited_before():
                        assert self.dialect.dumps(message) == self.dialect.dumps(self.before[origin]), "P13"
        for message in self.after:
            for block in self.dialect.read(message).blocks:
                if isinstance(block, Text) and is_summary(block.text) and message not in self.before:
                    digested = {id for m in self.result.plan.moves if isinstance(m, Digest) for id in ids_of_move(m)}
                    named = set(summary_ids(block.text))
                    assert named & digested or not digested, "P13: the summary names nothing that was archived"

    def _edited_before(self) -> set[int]:
        return {move.index for move in self.result.plan.moves if isinstance(move, Repair)}


def ids_of_move(move: Digest) -> list[str]:
    """Give the archive ids of a digest's spans; none without an archive."""
    return move.archive_id.split(", ") if move.archive_id else []


def assert_promises(
    messages: Sequence[Any],
    result: CompactionResult,
    *,
    again: Again | None = None,
    dialect: Dialect | str | None = None,
) -> None:
    """Check the promises of one compaction; with ``again`` also P9, P12 and P14.

    ``messages``: what was compacted, as it was before. ``again``: compacts a list with the same arguments. Raises
    ``AssertionError`` that names the promise.
    """
    promises = Promises(messages, result, dialect)
    promises.check()
    if again is None:
        return
    kind = promises.dialect
    shown = [kind.dumps(message) for message in messages]
    second = again(result.messages)
    assert second.messages is result.messages, (
        f"P9: a second compaction changed its own result: {second.plan.moves[:3]} ({second.meta})"
    )
    third = again(list(messages))
    assert [kind.dumps(m) for m in third.messages] == [kind.dumps(m) for m in result.messages], (
        "P12: not the same twice"
    )
    assert [kind.dumps(message) for message in messages] == shown, "P14: the input was changed"


def _no_tokens(text: str, kind: str) -> int:  # noqa: ARG001
    return 0
