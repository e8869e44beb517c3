"""Replay a recorded conversation, call by call, through a ``Window``: what each policy would have sent and paid.

Rules of the file:

- A request is made wherever the recording shows the model speaking: before each assistant message that follows a user's
  message or results. Its input is what the policy kept of everything before it.
- The provider's prompt cache is taken as ideal: the longest prefix of messages that the request shares with the one
  before it is read from the cache, the rest is written to it. No expiry, no least length.
- Costs are input costs; what the model wrote is the same under every policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wakeful.compaction.meter import as_meter
from wakeful.dialects import get, guess
from wakeful.dialects.protocol import Dialect, Kind
from wakeful.engine.policies import catalog_of, window_of
from wakeful.engine.window import Window
from wakeful.errors import ConfigError
from wakeful.pricing import MILLION, ModelCatalog, Prices

POLICIES: Mapping[str, Mapping[str, Any] | None] = {
    "none": None,
    "ladder": {"strategy": "ladder"},
    "clear": {"strategy": "clear"},
    "oldest_first": {"strategy": "oldest_first"},
    "sliding_window": {"strategy": "sliding_window"},
    "summarize": {"strategy": "summarize"},
    "cost": {"strategy": "ladder", "trigger": "cost"},
}
"""Policies by name: the settings of the ``Window`` that plays it; None sends everything."""

UNIT_PRICES = Prices(input=1.0, output=5.0, cache_read=0.1, cache_write=1.25)
"""Relative prices, for a model without known ones. Source: ratios of Anthropic's list prices
(docs.anthropic.com/en/docs/build-with-claude/prompt-caching): a cached read 0.1, a write 1.25."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One model call of the replay."""

    index: int
    """Messages of the recording that lie before the call."""
    messages: int
    """Messages sent."""
    tokens: int
    """Estimate of the request: kept history and ``prompt_tokens``."""
    cached: int
    """Tokens of it that the cache holds."""
    cost: float
    """US dollars, or units of the input price when prices are relative, per million tokens."""
    compacted: bool
    strategy: str | None
    reason: str | None
    dropped: int
    """Messages dropped by the compaction before the call."""
    over: bool
    """The request does not fit the window."""
    problems: tuple[str, ...]
    """Codes of the rules of the format that the request breaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A policy over the whole recording."""

    policy: str
    calls: int
    compactions: int
    invalid: int
    """Calls whose request breaks a rule."""
    over: int
    """Calls whose request does not fit."""
    input_tokens: int
    cached_tokens: int
    cost: float
    largest: int
    """Tokens of the largest request."""
    kept_users: float
    """Share (0-1) of the user's messages that stand verbatim in the last request."""

    @property
    def cache_share(self) -> float:
        """Share (0-1) of all input tokens that came from the cache."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else 0.0


@dataclass(slots=True)
class Replay:
    """One policy's run. Iterate over ``steps()`` for progress; ``summary()`` is complete after it."""

    messages: Sequence[Any]
    policy: str
    window: int
    dialect: Dialect | str | None = None
    prompt_tokens: int = 0
    prices: Prices = UNIT_PRICES
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the ``Window``, over those of the policy."""
    unit: str = "units of the input price, per million tokens"
    """What costs are in."""
    done: list[Step] = field(default_factory=list)
    last: list[Any] = field(default_factory=list)
    """The last request."""

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ConfigError(f"unknown policy {self.policy!r}; known: {', '.join(POLICIES)}")
        self.dialect = guess(self.messages) if self.dialect is None else get(self.dialect)

    def points(self) -> list[int]:
        """Positions at which the model is called."""
        dialect = self._dialect()
        kinds = [dialect.weigh(message, _no_tokens).kind for message in self.messages]
        speaks = (Kind.ASSISTANT, Kind.CALLS)
        return [i for i in range(1, len(kinds)) if kinds[i] in speaks and kinds[i - 1] not in speaks]

    def steps(self) -> Iterator[Step]:
        """Play the calls one after another."""
        dialect = self._dialect()
        chosen = POLICIES[self.policy]
        window = None
        if chosen is not None:
            window = Window(window=self.window, dialect=dialect, **{**chosen, **self.settings})
        meter = as_meter(self.settings.get("meter"))
        weights: dict[int, int] = {}

        def tokens(message: Any) -> int:
            key = id(message)
            if key not in weights:
                weights[key] = dialect.weigh(message, meter.count).tokens
            return weights[key]

        sent: list[Any] = []
        keep_alive: list[Any] = []
        seen = 0
        for at in self.points():
            request, result = [*sent, *self.messages[seen:at]], None
            seen = at
            if window is not None:
                result = window.fit(request, prompt_tokens=self.prompt_tokens, mid_round=False)
                request = result.messages
            keep_alive.append(request)
            yield self._step(at, request, sent, result, [tokens(m) for m in request])
            sent = request
        self.last = sent

    def _step(self, at: int, request: list[Any], before: list[Any], result: Any, sizes: list[int]) -> Step:
        shared = 0
        for new, old in zip(request, before, strict=False):
            if new is not old and new != old:
                break
            shared += 1
        total = sum(sizes) + self.prompt_tokens
        cached = 0 if not self.done else sum(sizes[:shared]) + self.prompt_tokens
        read, write = self.prices.read_ratio, self.prices.write_ratio
        meta = result.meta if result is not None else None
        step = Step(
            index=at,
            messages=len(request),
            tokens=total,
            cached=cached,
            cost=(cached * read + (total - cached) * write) * self.prices.input / MILLION,
            compacted=bool(meta and meta.compacted),
            strategy=meta.strategy if meta else None,
            reason=meta.reason if meta else None,
            dropped=len(result.dropped) if result is not None else 0,
            over=total > self.window,
            problems=tuple(sorted({p.code for p in self._dialect().validate(request)})),
        )
        self.done.append(step)
        return step

    def summary(self) -> Summary:
        """Add the calls up."""
        dialect = self._dialect()
        kept = {id(message) for message in self.last}
        users = [m for m in self.messages[: self.done[-1].index if self.done else 0] if _is_user(dialect, m)]
        return Summary(
            policy=self.policy,
            calls=len(self.done),
            compactions=sum(step.compacted for step in self.done),
            invalid=sum(bool(step.problems) for step in self.done),
            over=sum(step.over for step in self.done),
            input_tokens=sum(step.tokens for step in self.done),
            cached_tokens=sum(step.cached for step in self.done),
            cost=sum(step.cost for step in self.done),
            largest=max((step.tokens for step in self.done), default=0),
            kept_users=sum(id(m) in kept for m in users) / len(users) if users else 1.0,
        )

    def _dialect(self) -> Dialect:
        dialect = self.dialect
        assert dialect is not None
        return get(dialect)


def replays(
    messages: Sequence[Any],
    policies: Sequence[str],
    *,
    model: str | None = None,
    window: int | None = None,
    dialect: Dialect | str | None = None,
    prompt_tokens: int = 0,
    settings: Mapping[str, Any] | None = None,
    catalog: ModelCatalog | None = None,
) -> list[Replay]:
    """Prepare one replay a policy. A model's window and prices come from the catalogue.

    Raises ``ConfigError`` for an unknown policy, or a model without a known window.
    """
    options: dict[str, Any] = {"catalog": catalog, "model": model, "window": window}
    size = window_of(options, "replay")
    assert size is not None
    prices = catalog_of(options).prices(model) if model is not None else None
    return [
        Replay(
            messages=messages,
            policy=policy,
            window=size,
            dialect=dialect,
            prompt_tokens=prompt_tokens,
            prices=prices if prices is not None else UNIT_PRICES,
            unit="US dollars" if prices is not None else "units of the input price, per million tokens",
            settings=settings or {},
        )
        for policy in dict.fromkeys(policies)
    ]


def _no_tokens(_text: str, _kind: str) -> int:
    return 0


def _is_user(dialect: Dialect, message: Any) -> bool:
    return dialect.weigh(message, _no_tokens).kind == Kind.USER
