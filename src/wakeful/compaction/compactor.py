"""The Compactor contract: ``maybe_compact(acc, ctx) -> (acc, meta)``, and the two compactors that ship.

A compactor is called at the start of a turn and after every complete tool batch, before the model call that follows;
never between the results of one batch. ``acc`` is any value with ``.memory: AgentMemory``; a changed one differs only
there. ``maybe_compact`` may be a plain method, an async one or a flow. Rules of the file:

- A compactor that fails changes nothing: the reason is in ``meta.error``, and the turn goes on.
- Options are checked where the configuration is made. A near-miss implementation is refused there too.
- Only the active branch changes. A kept message keeps its entry id.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from wakeful.compaction.budget import Budget, default_reserve
from wakeful.compaction.digest_parts import Breaker
from wakeful.compaction.flow import compact_flow
from wakeful.compaction.measure import History
from wakeful.compaction.meter import as_meter
from wakeful.compaction.options import check, shares
from wakeful.compaction.policy import KEEP_RECENT, CostPolicy, Policy
from wakeful.compaction.repair import is_whole
from wakeful.compaction.result import CompactionMeta, CompactionResult
from wakeful.compaction.rounds import last_start
from wakeful.conversation import AgentMemory, Branch, Entry
from wakeful.dialects import get, guess
from wakeful.dialects.protocol import Dialect, Weight
from wakeful.errors import ConfigError
from wakeful.ids import content_id
from wakeful.needs import Flow, Need, Usage, call

log = logging.getLogger("wakeful.compaction")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactContext:
    """What the shell knows at a boundary."""

    model: str | None = None
    """Model id of this turn."""
    window: int | None = None
    """Tokens of the model's window; None only for a compactor that needs none."""
    prompt_tokens: int = 0
    """Estimate of system prompt and tool definitions of the next call."""
    mid_round: bool = False
    """False at the start of a turn; True after a tool batch: the model's round is still open."""


@runtime_checkable
class Compactor(Protocol):
    """Anything that may shrink the conversation at a boundary."""

    def maybe_compact(self, acc: Any, ctx: Any) -> Any:
        """Give ``(acc, meta)``; ``acc`` itself and ``compacted`` False to do nothing."""
        ...


class NoOp:
    """Never compact: no work, no window look-up, the identical object back."""

    def maybe_compact(self, acc: Any, ctx: Any) -> tuple[Any, CompactionMeta]:
        """Give ``acc`` back."""
        return acc, _OFF

    def needs_window(self) -> bool:
        """It sizes nothing."""
        return False

    @staticmethod
    def validate_opts(opts: Mapping[str, Any], entry: str) -> None:
        """It has no options."""
        check(opts, entry, ())

    def __repr__(self) -> str:
        return "NoOp()"


_OFF = CompactionMeta(compacted=False, reason="off")

OPTIONS = (
    "strategy",
    "context_window",
    "reserve",
    "trigger",
    "target",
    "keep_recent",
    "max_bytes",
    "meter",
    "summarizer",
    "archive",
    "space",
    "instructions",
    "dialect",
    "expected_calls",
)
"""Options of ``WindowManager``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A conversation's closed rounds, measured: they are not looked at again while they are the same entries."""

    entries: Branch = ()
    tokens: int = 0
    size: int = 0
    last: Weight | None = None
    dialect: Dialect | None = None


class WindowManager:
    """Keep the conversation inside the model's window.

    ``strategy``: ``oldest_first`` drops the oldest closed rounds down to the target; ``sliding_window`` keeps the last
    ``keep_recent`` rounds; ``summarize`` digests all before them (a failed digest is an error); ``clear`` clears old
    results; ``ladder`` does each only as far as needed. ``trigger`` (default 1.0) and ``target`` are shares of the room;
    mid-round the trigger is the whole room. ``context_window`` pins the window.
    """

    def __init__(self, strategy: str = "ladder", **options: Any) -> None:
        opts = {"strategy": strategy, **options}
        self.validate_opts(opts, "WindowManager")
        self.options: Mapping[str, Any] = opts
        self._breaker = Breaker()
        self._seen = _Seen()
        self._meter = as_meter(opts.get("meter"))
        self._estimate = 0
        """Tokens, as counted, of the request that follows the last look; 0 when that was learnt from."""

    @staticmethod
    def validate_opts(opts: Mapping[str, Any], entry: str) -> None:
        """Raise ``ConfigError`` that names ``entry`` for an unknown or wrong option."""
        renamed = {("window" if name == "context_window" else name): value for name, value in opts.items()}
        for name in opts:
            if name not in OPTIONS:
                raise ConfigError(f"{entry}: WindowManager has no option {name!r}; known: {', '.join(OPTIONS)}")
        try:
            check(renamed, entry)
        except ConfigError as error:
            raise ConfigError(str(error).replace(": window must", ": context_window must")) from None
        shares(opts, entry, 1.0)
        if isinstance(opts.get("dialect"), str):
            get(opts["dialect"])

    def needs_window(self) -> bool:
        """It sizes against the window."""
        return True

    def maybe_compact(self, acc: Any, ctx: Any) -> tuple[Any, CompactionMeta] | Flow[tuple[Any, CompactionMeta]]:
        """Compact ``acc.memory`` when it does not fit.

        Gives ``(acc, meta)`` at once when nothing must be asked; with a summariser or an archive to ask, a flow that a
        driver runs to the same end.
        """
        flow = self.flow(acc, ctx)
        try:
            need = next(flow)
        except StopIteration as stop:
            value: tuple[Any, CompactionMeta] = stop.value
            return value
        return _resumed(flow, need)

    def flow(self, acc: Any, ctx: Any) -> Flow[tuple[Any, CompactionMeta]]:
        """Do the same, always as a flow."""
        memory: AgentMemory = acc.memory
        entries = memory.active
        if not entries:
            return acc, CompactionMeta(compacted=False, reason="fits", tokens_before=0, tokens_after=0)
        try:
            quick = self._quick(ctx, entries)
            if quick is not None:
                return acc, quick
            messages = [entry.message for entry in entries]
            policy = self._policy(ctx, entries, messages)
            result = yield from compact_flow(messages, policy)
        except Exception as error:
            log.warning("compaction failed: %s", error)
            return acc, CompactionMeta(compacted=False, error=f"{type(error).__name__}: {error}")
        self._breaker = result.breaker
        self._estimate = self._meter.unscaled(result.meta.tokens_after or 0) + (_of(ctx, "prompt_tokens") or 0)
        if not result.meta.compacted:
            return acc, result.meta
        changed, meta = rebuilt(memory, result)
        return with_memory(acc, changed), meta

    def observe(self, usage: Usage) -> None:
        """Learn from what the provider counted for the request that followed the last look."""
        estimate, self._estimate = self._estimate, 0
        if estimate:
            self._meter = self._meter.observe(estimate, usage.input_tokens)

    def _quick(self, ctx: Any, entries: Branch) -> CompactionMeta | None:
        """Answer when the conversation is whole and fits, at the cost of what is new; None when there is more to do."""
        opts = self.options
        budget = self._budget(ctx)
        if opts.get("trigger") == "cost" or budget.window is None:
            return None
        seen = self._seen
        n = len(seen.entries)
        if not n or entries[:n] != seen.entries:
            named = opts.get("dialect")
            dialect = get(named) if named is not None else guess([entry.message for entry in entries])
            seen, n = _Seen(dialect=dialect), 0
        assert seen.dialect is not None
        dialect, meter = seen.dialect, self._meter
        messages = [entry.message for entry in entries[n:]]
        weights = [dialect.weigh(message, meter.count) for message in messages]
        tokens = seen.tokens + sum([weight[1] for weight in weights])
        size = seen.size + sum([weight[4] for weight in weights])
        if tokens > meter.unscaled(budget.start) or size > budget.byte_start:
            return None
        history = History(messages, weights, range(len(messages)))
        if not is_whole(dialect, history, before=seen.last):
            return None
        cut = last_start(history, dialect.facts)
        if cut:
            settled = weights[:cut]
            self._seen = _Seen(
                entries=entries[: n + cut],
                tokens=seen.tokens + sum([weight[1] for weight in settled]),
                size=seen.size + sum([weight[4] for weight in settled]),
                last=settled[-1],
                dialect=dialect,
            )
        self._estimate = tokens + budget.prompt_tokens
        real = meter.scaled(tokens)
        return CompactionMeta(
            compacted=False, reason="fits", tokens_before=real, tokens_after=real, strategy=opts["strategy"]
        )

    def _budget(self, ctx: Any) -> Budget:
        opts = self.options
        window = opts.get("context_window") or _of(ctx, "window")
        if window is None and opts.get("max_bytes") is None:
            raise ConfigError("WindowManager needs a window: ctx.window is None and no context_window is pinned")
        start, goal = shares(opts, "WindowManager", 1.0)
        reserve = opts.get("reserve")
        if window is None:
            reserve = 0
        elif reserve is None:
            reserve = default_reserve(window, None)
        return Budget(
            window=window,
            reserve=reserve,
            prompt_tokens=_of(ctx, "prompt_tokens") or 0,
            trigger=1.0 if _of(ctx, "mid_round") else start,
            target=goal,
            max_bytes=opts.get("max_bytes"),
        )

    def _policy(self, ctx: Any, entries: Sequence[Entry], messages: list[Any]) -> Policy:
        opts = self.options
        budget = self._budget(ctx)
        dialect = opts.get("dialect")
        return Policy(
            dialect=get(dialect) if dialect is not None else guess(messages),
            meter=self._meter,
            budget=budget,
            strategy=opts.get("strategy", "ladder"),
            keep_recent=opts.get("keep_recent", KEEP_RECENT),
            yields="keep_recent" not in opts,
            mid_round=bool(_of(ctx, "mid_round")),
            cost=CostPolicy(expected_calls=opts.get("expected_calls")) if opts.get("trigger") == "cost" else None,
            summarizer=opts.get("summarizer") is not None,
            archive=opts.get("archive") is not None,
            space=opts.get("space", ""),
            instructions=opts.get("instructions"),
            breaker=self._breaker,
            entry_ids=[entry.id for entry in entries],
            marked=frozenset(i for i, entry in enumerate(entries) if entry.pinned),
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"WindowManager({shown})"


def rebuilt(memory: AgentMemory, result: CompactionResult) -> tuple[AgentMemory, CompactionMeta]:
    """Put a result back into the memory that it was made from; gives the memory and meta with its dropped entries."""
    entries = memory.active
    taken = set(memory.entries)
    branch: list[Entry] = []
    for at, (message, origin) in enumerate(zip(result.messages, result.origins, strict=True)):
        group = result.merged.get(at, ())
        if len(group) > 1:
            parts = tuple(part for o in group for part in entries[o].as_it_came())
            first = entries[group[0]]
            pinned = any(entries[o].pinned for o in group)
            branch.append(Entry(first.id, message, None, first.turn_id, pinned, None, parts))
        elif origin < 0:
            branch.append(Entry(_fresh_id(message, taken), message))
        else:
            entry = entries[origin]
            if message is not entry.message:
                original = entry.original if entry.original is not None or entry.parts else entry.message
                entry = dataclasses.replace(entry, message=message, original=original)
            branch.append(entry)
    dropped = tuple(e for d in result.dropped for e in entries[d.position].as_it_came())
    meta = dataclasses.replace(result.meta, dropped=dropped or None)
    return memory.with_branch(branch), meta


def _fresh_id(message: Any, taken: set[str]) -> str:
    base = content_id(repr(message), prefix="s-")
    id, ordinal = base, 1
    while id in taken:
        ordinal += 1
        id = f"{base}-{ordinal}"
    taken.add(id)
    return id


def with_memory(acc: Any, memory: AgentMemory) -> Any:
    """Give a value like ``acc`` that differs only in ``.memory``."""
    if dataclasses.is_dataclass(acc) and not isinstance(acc, type):
        return dataclasses.replace(acc, memory=memory)
    if hasattr(acc, "_replace"):
        return acc._replace(memory=memory)
    if hasattr(acc, "model_copy"):
        return acc.model_copy(update={"memory": memory})
    changed = copy.copy(acc)
    changed.memory = memory
    return changed


def check_compactor(compactor: Any, opts: Mapping[str, Any] | None = None, *, entry: str) -> None:
    """Refuse, where a configuration is made, what is no compactor or has bad options.

    ``compactor`` is an instance or a class; ``opts`` are checked by its own ``validate_opts(opts, entry)``. Raises
    ``ConfigError`` that names ``entry``, the public function that was called.
    """
    name = compactor.__name__ if isinstance(compactor, type) else type(compactor).__name__
    methods = {"maybe_compact": 2, "needs_window": 0, "validate_opts": 2}
    for method, count in methods.items():
        found = getattr(compactor, method, None)
        if found is None:
            if method == "maybe_compact":
                raise ConfigError(f"{entry}: {name} is no compactor; it needs maybe_compact(acc, ctx)")
            continue
        if not callable(found):
            raise ConfigError(f"{entry}: {name}.{method} is {found!r}; it must be a method")
        static = isinstance(inspect.getattr_static(compactor, method, None), (staticmethod, classmethod))
        unbound = isinstance(compactor, type) and not static
        if not _takes(found, count + unbound):
            wanted = {"maybe_compact": "(acc, ctx)", "needs_window": "()", "validate_opts": "(opts, entry)"}[method]
            raise ConfigError(f"{entry}: {name}.{method}{inspect.signature(found)} must take {wanted}")
    validate = getattr(compactor, "validate_opts", None)
    if validate is not None and opts is not None:
        validate(opts, entry)


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def needs_window(compactor: Any) -> bool:
    """Say whether a compactor sizes against the model's window; one that does not say is taken to need it."""
    asked = getattr(compactor, "needs_window", None)
    return True if asked is None else bool(asked())


def step(
    compactor: Any, acc: Any, ctx: Any, *, after_compact: Iterable[Callable[[CompactionMeta], Any]] = ()
) -> Flow[tuple[Any, CompactionMeta]]:
    """Run a compactor at a boundary, then the hooks: the flow that a turn's shell drives.

    Takes a plain ``maybe_compact``, an async one, or a flow. Never raises for the compactor or a hook: ``acc`` comes
    back as it was, with ``meta.error``. Hooks run only when something was dropped, with the meta, each isolated.
    """
    try:
        answer = yield from call(compactor.maybe_compact, acc, ctx)
        changed, found = answer
        meta = CompactionMeta.of(found)
    except Exception as error:
        log.warning("compactor %r failed: %s", compactor, error)
        return acc, CompactionMeta(compacted=False, error=f"{type(error).__name__}: {error}")
    if not meta.compacted:
        changed = acc
    yield from run_hooks(after_compact, meta)
    return changed, meta


def run_hooks(hooks: Iterable[Callable[[CompactionMeta], Any]], meta: CompactionMeta) -> Flow[None]:
    """Call ``after_compact`` hooks when something was dropped; one that raises is logged and isolated."""
    if not meta.dropped:
        return
    for hook in hooks:
        try:
            yield from call(hook, meta)
        except Exception:
            log.exception("after_compact hook %r failed", hook)


def _of(ctx: Any, name: str) -> Any:
    return ctx.get(name) if isinstance(ctx, Mapping) else getattr(ctx, name, None)


def _resumed(flow: Flow[tuple[Any, CompactionMeta]], need: Need) -> Flow[tuple[Any, CompactionMeta]]:
    """Go on with a flow whose first need is known already."""
    try:
        while True:
            try:
                answer = yield need
            except Exception as error:
                need = flow.throw(error)
            else:
                need = flow.send(answer)
    except StopIteration as stop:
        value: tuple[Any, CompactionMeta] = stop.value
        return value
