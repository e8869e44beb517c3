"""A window on a conversation that goes on: ``fit`` before each model call costs what is new.

Rules of the file:

- A message seen before is taken as unchanged while it and its content are the same objects. The check is one pass in C.
- The last round is measured anew on every call: markers are set on it and results are appended to it.
- What was compacted stays compacted, whether the caller gives the full list each time or the last result and more.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any, Unpack

from wakeful.budgets import TaskBudget
from wakeful.compaction.compactor import run_hooks
from wakeful.compaction.digest_parts import Breaker
from wakeful.compaction.flow import compact_flow, unchanged
from wakeful.compaction.identity import Ids
from wakeful.compaction.measure import History, weigh_all
from wakeful.compaction.meter import Meter, as_meter
from wakeful.compaction.options import WINDOW_OPTIONS, WindowOptions, check
from wakeful.compaction.policy import KEEP_RECENT, CostPolicy, Policy
from wakeful.compaction.repair import is_whole
from wakeful.compaction.result import CompactionMeta, CompactionResult, Dropped
from wakeful.compaction.rounds import last_start
from wakeful.dialects.protocol import Dialect, Weight
from wakeful.engine.answer import aanswers, answers, as_summarizer
from wakeful.engine.drive import adrive, drive
from wakeful.engine.policies import budget_of, cost_of, dialect_of
from wakeful.errors import ConfigError, InputError
from wakeful.needs import Flow, Usage

log = logging.getLogger("wakeful.window")

_get = dict.get

AT_ONCE = 512
"""Messages that are compared at once: what was just looked at is still in the processor's cache when its contents are."""

MANY = 32
"""Messages above which weighing them together is faster."""

_NOTHING = History([], [], ())

SURE = 0.8
"""Score of ``Dialect.recognises`` from which a guess is final."""


class Window:
    """Keep a conversation inside the model's window, call after call.

    Options: ``WindowOptions``, as of ``compact``; ``after_compact``: functions called with the meta when something was
    dropped; ``task_budget``: a ``TaskBudget`` that ``observe`` and compactions draw on. One window serves one
    conversation. ``fit`` may be called from several threads; one works at a time.
    """

    def __init__(
        self,
        *,
        after_compact: Iterable[Callable[[CompactionMeta], Any]] = (),
        task_budget: TaskBudget | None = None,
        **options: Unpack[WindowOptions],
    ) -> None:
        check(options, "Window", WINDOW_OPTIONS)
        self._options: Mapping[str, Any] = dict(options)
        self._budget = budget_of(options, "Window")
        self._cost = cost_of(options)
        self._summarizer = as_summarizer(options.get("summarizer"))
        self._hooks = tuple(after_compact)
        for hook in self._hooks:
            if not callable(hook):
                raise ConfigError(f"Window: after_compact holds {hook!r}, which is no function")
        self._meter = as_meter(options.get("meter"), model=options.get("model"))
        self._breaker = Breaker()
        self._dialect: Dialect | None = None
        self._sure = False
        """There is no doubt about the dialect."""
        self._probed = 0
        self._lock = threading.Lock()
        self._alock: Any = None
        self.budget = task_budget
        """Task budget left, when one was given."""
        self.compactions = 0
        """Compactions so far."""
        self._calls = 0
        self._estimate: int = 0
        """Tokens, as counted, of the request that the last ``fit`` made; 0 when that was learnt from."""
        self._estimate_before: int = 0
        """What it would have been without the compaction that the last ``fit`` made; 0 for none."""
        self.forget()

    # -- public -------------------------------------------------------------------------------------------------

    def fit(self, messages: list[Any], *, prompt_tokens: int = 0, mid_round: bool = False) -> CompactionResult:
        """Give the messages as the next model call should have them.

        ``messages``: the full list, or this window's last result and more. The same list comes back when nothing was
        ever compacted and it fits. Raises ``ConfigError`` or ``InputError`` as ``compact`` does.
        """
        self._check_call(messages, prompt_tokens, mid_round)
        with self._lock:
            quick = self._quick(messages, prompt_tokens, mid_round)
            if quick is not None:
                return quick
            answer = answers(self._summarizer, self._options.get("archive"))
            return drive(self._full(messages, prompt_tokens, mid_round), answer)

    async def afit(self, messages: list[Any], *, prompt_tokens: int = 0, mid_round: bool = False) -> CompactionResult:
        """Do the same, awaiting the summariser and the archive. Messages appended meanwhile are kept."""
        import asyncio

        self._check_call(messages, prompt_tokens, mid_round)
        if self._alock is None:
            self._alock = asyncio.Lock()
        async with self._alock:
            quick = self._quick(messages, prompt_tokens, mid_round)
            if quick is not None:
                return quick
            answer = aanswers(self._summarizer, self._options.get("archive"))
            return await adrive(self._full(messages, prompt_tokens, mid_round), answer)

    def observe(self, usage: Any) -> None:
        """Learn from what the provider counted for the request that the last ``fit`` made.

        ``usage``: a ``Usage``, a provider's own usage (object or mapping), or the number of input tokens. A report that
        belongs to the request before a compaction, a second one for the same request, or one without numbers teaches
        nothing.
        """
        found = read_usage(usage)
        if self.budget is not None:
            self.budget = self.budget.spent(found)
        estimate, before = self._estimate, self._estimate_before
        self._estimate = 0
        if found is None or not estimate:
            return
        real = found.input_tokens
        stale = bool(before) and abs(real - self._meter.scaled(before)) < abs(real - self._meter.scaled(estimate))
        self._meter = self._meter.observe(estimate, real, stale=stale)

    def forget(self) -> None:
        """Forget what was measured and compacted: the next list is taken as it stands."""
        self._sent: list[Any] = []
        """What the last call gave back."""
        self._weights: list[Weight] = []
        self._stable: list[Any] = []
        """Messages of ``_sent`` before its last round, with their contents."""
        self._contents: list[Any] = []
        self._source: list[Any] | None = None
        """The caller's messages that ``_stable`` stands for, when they differ."""
        self._source_contents: list[Any] = []
        self._tail_edits: dict[int, tuple[Any, Any]] = {}
        self._tail = _NOTHING
        """What the call under way found behind ``_stable``."""
        self._tokens = 0
        self._size = 0
        self._ids: Ids | None = None
        self._originals: dict[int, tuple[Any, tuple[tuple[str, Any], ...]]] = {}
        self._everywhere = True
        """Every message seen was a dictionary with a content."""
        self._before: list[Any] | None = None
        self._after_length = 0
        self._offset = 0
        """Messages of the caller's list that are known."""
        self._own = True
        """The caller's list is what goes out, message by message."""
        self._estimate = 0
        self._estimate_before = 0

    def undo(self) -> list[Any]:
        """Take the last compaction back: what it took out stands again, what came since stays behind it.

        Raises ``InputError`` when there is none to take back.
        """
        if self._before is None:
            raise InputError("this window has no compaction to take back")
        restored = [*self._before, *self._sent[self._after_length :]]
        self.forget()
        return restored

    @property
    def meter(self) -> Meter:
        """The meter with what it has learnt."""
        return self._meter

    @property
    def tokens(self) -> int:
        """Estimate of the history that the last ``fit`` gave."""
        return self._meter.scaled(self._tokens + sum([w[1] for w in self._weights[len(self._stable) :]]))

    # -- the quick path -----------------------------------------------------------------------------------------

    def _check_call(self, messages: Any, prompt_tokens: Any, mid_round: Any) -> None:
        if type(messages) is not list:
            raise InputError(f"messages must be a list of native messages, not {type(messages).__name__}")
        if type(prompt_tokens) is not int or prompt_tokens < 0:
            raise ConfigError(f"fit: prompt_tokens must be a whole number of at least 0, not {prompt_tokens!r}")
        if type(mid_round) is not bool:
            raise ConfigError(f"fit: mid_round must be True or False, not {mid_round!r}")

    def _quick(self, messages: list[Any], prompt_tokens: int, mid_round: bool) -> CompactionResult | None:
        """Answer when it fits and is whole; None when there is more to do. The state is brought up to date."""
        if not self._sure:
            self._learn_dialect(messages)
        self._calls += 1
        whole = self._take(messages)
        budget = dataclasses.replace(
            self._budget, prompt_tokens=prompt_tokens, trigger=1.0 if mid_round else self._budget.trigger
        )
        cut = len(self._stable)
        tail = self._weights[cut:]
        tokens = self._tokens + sum([w[1] for w in tail])
        size = self._size + sum([w[4] for w in tail])
        if not whole or self._cost is not None or budget.window is None:
            return None
        if tokens > self._meter.unscaled(budget.start) or size > budget.byte_start:
            return None
        self._settle()
        self._estimate, self._estimate_before = tokens + prompt_tokens, 0
        given = messages if self._own else list(self._sent)
        return unchanged(given, self._policy(budget, mid_round), (tokens, size), reason="fits")

    def _learn_dialect(self, messages: list[Any]) -> None:
        """Find the dialect. Plain texts are of several formats, so what is new is looked at until there is no doubt."""
        probe = messages if self._dialect is None else messages[-max(16, len(messages) - self._probed) :]
        self._probed = len(messages)
        found = dialect_of(self._options, probe)
        self._sure = self._options.get("dialect") is not None or found.recognises(probe) >= SURE
        if self._dialect is None or (self._sure and found is not self._dialect):
            self.forget()
            self._dialect = found

    def _take(self, messages: list[Any]) -> bool:
        """Bring the state up to a new list; say whether its tail is whole. Nothing before the tail is looked at."""
        dialect = self._dialect
        assert dialect is not None
        cut = len(self._stable)
        own = True
        # The full list first: what a compaction left begins like the full list, but not the other way round.
        if self._source and self._matches(messages, self._source, self._source_contents):
            self._offset, own = len(self._source), False
        elif cut and self._matches(messages, self._stable, self._contents):
            self._offset = cut
        elif not cut and self._source is not None and not self._source:
            self._offset = 0
        else:
            if cut or self._source is not None:
                self.forget()
            self._offset = cut = 0
        fresh = messages[self._offset :]
        edited = self._edited(fresh)
        self._own = own and edited is fresh
        if len(edited) > MANY:
            self._tail = History(edited, weigh_all(dialect, edited, self._meter.count), ())
            tail = self._tail.weights
        else:
            weigh, count = dialect.weigh, self._meter.count
            tail = [weigh(message, count) for message in edited]
            self._tail = History(edited, tail, ())
        del self._sent[cut:], self._weights[cut:]
        self._sent += edited
        self._weights += tail
        return is_whole(dialect, self._tail, before=self._weights[cut - 1] if cut else None)

    def _edited(self, fresh: list[Any]) -> list[Any]:
        edits = self._tail_edits
        if not edits:
            return fresh
        out = []
        for message in fresh:
            known = edits.get(id(message))
            out.append(known[1] if known is not None and known[0] is message else message)
        return out if any(a is not b for a, b in zip(out, fresh, strict=True)) else fresh

    def _matches(self, messages: list[Any], known: list[Any], contents: list[Any]) -> bool:
        n = len(known)
        if len(messages) < n:
            return False
        assert self._dialect is not None
        read = itemgetter(self._dialect.facts.content_key)
        for start in range(0, n, AT_ONCE):
            stop = start + AT_ONCE if start + AT_ONCE < n else n
            part = messages[start:stop]
            if part != known[start:stop]:
                return False
            try:
                found = list(map(read, part))
            except (KeyError, TypeError):
                found = self._contents_of(part)
            if found != contents[start:stop]:
                return False
        return True

    def _contents_of(self, messages: list[Any]) -> list[Any]:
        """Give the contents of messages, by the fastest way that works for all of them."""
        assert self._dialect is not None
        key = self._dialect.facts.content_key
        if self._everywhere:
            try:
                return list(map(itemgetter(key), messages))
            except (KeyError, TypeError):
                self._everywhere = False
        try:
            return list(map(_get, messages, repeat(key)))
        except TypeError:
            pass
        try:
            return list(map(attrgetter(key), messages))
        except AttributeError:
            return [m.get(key) if isinstance(m, Mapping) else getattr(m, key, None) for m in messages]

    def _settle(self) -> None:
        """Move the border of what is stable up to the start of the last round."""
        assert self._dialect is not None
        cut = len(self._stable)
        at = cut + last_start(self._tail, self._dialect.facts)
        self._tail = _NOTHING
        if at <= cut:
            return
        moved = self._sent[cut:at]
        weights = self._weights[cut:at]
        self._stable += moved
        contents = self._contents_of(moved)
        self._contents += contents
        if self._source is not None:
            back = {id(new): old for old, new in self._tail_edits.values()}
            originals = [back.get(id(message), message) for message in moved]
            self._source += originals
            self._source_contents += self._contents_of(originals)
        self._tokens += sum([w[1] for w in weights])
        self._size += sum([w[4] for w in weights])

    # -- the whole path -----------------------------------------------------------------------------------------

    def _policy(self, budget: Any, mid_round: bool) -> Policy:
        options = self._options
        assert self._dialect is not None
        cost: CostPolicy | None = None
        if self._cost is not None:
            cost = dataclasses.replace(self._cost, calls_so_far=self._calls)
        return Policy(
            dialect=self._dialect,
            meter=self._meter,
            budget=budget,
            strategy=options.get("strategy", "ladder"),
            keep_recent=options.get("keep_recent", KEEP_RECENT),
            yields="keep_recent" not in options,
            mid_round=mid_round,
            cost=cost,
            summarizer=self._summarizer is not None,
            archive=options.get("archive") is not None,
            space=options.get("space", ""),
            instructions=options.get("instructions"),
            breaker=self._breaker,
            force=budget.window is None and budget.max_bytes is None,
        )

    def _full(self, messages: list[Any], prompt_tokens: int, mid_round: bool) -> Flow[CompactionResult]:
        given = len(messages)
        budget = dataclasses.replace(
            self._budget, prompt_tokens=prompt_tokens, trigger=1.0 if mid_round else self._budget.trigger
        )
        history = History(list(self._sent), list(self._weights), range(len(self._sent)))
        before = messages if self._own else list(self._sent)
        ids = self._entry_ids()
        entry_ids = ids.of(history.messages)
        policy = dataclasses.replace(self._policy(budget, mid_round), entry_ids=entry_ids)
        result = yield from compact_flow(before, policy, history=history)
        self._breaker = result.breaker
        estimate_before = history.tokens + prompt_tokens
        if result.meta.compacted:
            result = self._adopt(messages[:given], result, entry_ids)
            yield from run_hooks(self._hooks, result.meta)
        else:
            self._settle()
        tokens = self._tokens + sum([w[1] for w in self._weights[len(self._stable) :]])
        self._estimate = tokens + prompt_tokens
        self._estimate_before = estimate_before if result.meta.compacted else 0
        if len(messages) > given and result.messages is not messages:
            result = dataclasses.replace(result, messages=[*result.messages, *messages[given:]])
        return result

    def _entry_ids(self) -> Ids:
        assert self._dialect is not None
        if self._ids is None:
            self._ids = Ids(self._dialect)
        return self._ids

    def _adopt(self, given: list[Any], result: CompactionResult, entry_ids: Sequence[str]) -> CompactionResult:
        """Take a compaction over as what the conversation is from now on. ``given``: the caller's list."""
        assert self._dialect is not None
        old = list(self._sent)
        dropped = tuple(
            d for each in result.dropped for d in self._as_it_came(each.id, old[each.position], each.position)
        )
        originals: dict[int, tuple[Any, tuple[tuple[str, Any], ...]]] = {}
        for at, (message, origin) in enumerate(zip(result.messages, result.origins, strict=True)):
            group = result.merged.get(at, (origin,) if origin >= 0 else ())
            if group and (len(group) > 1 or message is not old[group[0]] or id(message) in self._originals):
                first = tuple((d.id, d.message) for o in group for d in self._as_it_came(entry_ids[o], old[o], o))
                originals[id(message)] = (message, first)
        self._entry_ids().follow(entry_ids, result.messages, result.origins)
        self._originals = originals
        self._before, self._after_length = old, len(result.messages)
        self._weights = History(
            result.messages, weigh_all(self._dialect, result.messages, self._meter.count), ()
        ).weights
        self._sent = list(result.messages)
        self._lay_border(given, result, len(old))
        self.compactions += 1
        if self.budget is not None:
            self.budget = self.budget.compacted(result.meta.tokens_removed)
        meta = dataclasses.replace(result.meta, dropped=dropped or None)
        return dataclasses.replace(result, dropped=dropped, meta=meta, messages=list(result.messages))

    def _as_it_came(self, entry_id: str, message: Any, position: int) -> list[Dropped]:
        known = self._originals.get(id(message))
        if known is None or known[0] is not message:
            return [Dropped(id=entry_id, message=message, position=position)]
        return [Dropped(id=id, message=first, position=position) for id, first in known[1]]

    def _lay_border(self, given: list[Any], result: CompactionResult, length: int) -> None:
        """Set what is stable after a compaction: all before the last round, when that one came through as it was."""
        assert self._dialect is not None
        at = last_start(History(self._sent, self._weights, ()), self._dialect.facts)
        shift = len(given) - length
        origins = result.origins[at:]
        plain = list(origins) == list(range(length - len(origins), length)) and not any(i >= at for i in result.merged)
        if not plain or (origins and origins[0] + shift < 0):
            at, start = len(self._sent), len(given)
        else:
            start = origins[0] + shift if origins else len(given)
        self._tail_edits = {
            id(old): (old, new) for old, new in zip(given[start:], self._sent[at:], strict=True) if old is not new
        }
        self._stable, self._contents = self._sent[:at], self._contents_of(self._sent[:at])
        self._source, self._source_contents = given[:start], self._contents_of(given[:start])
        self._tokens = sum([w[1] for w in self._weights[:at]])
        self._size = sum([w[4] for w in self._weights[:at]])


def read_usage(usage: Any) -> Usage | None:
    """Read a usage report of any provider; None when it holds no number of input tokens."""
    if usage is None or isinstance(usage, bool):
        return None
    if isinstance(usage, Usage):
        return usage
    if isinstance(usage, int):
        return Usage(input_tokens=usage)

    def number(*names: str) -> int:
        for name in names:
            value = usage.get(name) if isinstance(usage, Mapping) else getattr(usage, name, None)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return 0

    cached = number("cache_read_input_tokens", "cacheReadInputTokens", "cached_tokens")
    written = number("cache_creation_input_tokens", "cacheWriteInputTokens", "cache_write_tokens")
    total = number("input_tokens", "prompt_tokens", "inputTokens", "prompt_token_count", "promptTokenCount")
    if number(
        "cache_read_input_tokens", "cache_creation_input_tokens", "cacheReadInputTokens", "cacheWriteInputTokens"
    ):
        total += cached + written
    if total <= 0:
        return None
    output = number("output_tokens", "completion_tokens", "outputTokens", "candidates_token_count")
    return Usage(input_tokens=total, output_tokens=output, cached_tokens=cached, cache_write_tokens=written)
