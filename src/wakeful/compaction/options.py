"""The options of a compaction as the caller writes them, checked where they are given.

An unknown option, a wrong type or a value out of range is a ``ConfigError`` that names the public function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict

from wakeful.compaction.meter import Meter
from wakeful.compaction.policy import STRATEGIES, StrategyName
from wakeful.dialects.protocol import Dialect
from wakeful.errors import ConfigError
from wakeful.pricing import ModelCatalog


class WindowOptions(TypedDict, total=False):
    """Options of a compaction that hold for a whole conversation."""

    model: str | None
    """Model id; its window, output limit and prices are looked up in the catalogue."""
    window: int | None
    """Tokens of the model's window; wins over the catalogue."""
    reserve: int | None
    """Tokens left for the reply; default: the model's output limit, else 4,096, at most half of the window."""
    trigger: float | Literal["cost"] | None
    """Share of the room above which a compaction starts, or ``"cost"``: when it pays. Default 0.9."""
    target: float | None
    """Share of the room that it comes down to. Default 0.6 (two thirds of a lower ``trigger``)."""
    keep_recent: int
    """Newest rounds that are left alone as long as possible. Default: 4, and fewer where a digest has no room otherwise."""
    strategy: StrategyName
    """``ladder`` (default), ``oldest_first``, ``sliding_window``, ``summarize`` or ``clear``."""
    catalog: ModelCatalog | None
    """Where models are looked up; default: the catalogue that ships."""
    meter: Meter | Callable[[str], int] | None
    """Counts tokens of a text; default: an estimate by script and content."""
    summarizer: Any
    """A chat model for digests; default: they are extracted, without a model."""
    archive: Any
    """Store of what is taken out; default: the result alone holds it."""
    space: str
    """Whose part of the archive it is: a path of parts joined by ``/``."""
    instructions: str | None
    """What a digest should dwell on."""
    max_bytes: int | None
    """Most bytes of the history in a request."""
    dialect: Dialect | str | None
    """The messages' format; default: guessed."""
    expected_calls: float | None
    """With ``trigger="cost"``: model calls still to come."""


class CompactOptions(WindowOptions, total=False):
    """Options of one compaction."""

    prompt_tokens: int
    """Tokens of system prompt and tool definitions that the next call sends beside the history. Default 0."""
    mid_round: bool
    """The model's round is still open: the history is untouched while it fits the whole room. Default False."""


WINDOW_OPTIONS: tuple[str, ...] = tuple(WindowOptions.__annotations__)
COMPACT_OPTIONS: tuple[str, ...] = (*WINDOW_OPTIONS, "prompt_tokens", "mid_round")


def check(options: Mapping[str, Any], entry: str, known: tuple[str, ...] = COMPACT_OPTIONS) -> None:
    """Check options; raise ``ConfigError`` that names ``entry`` for the first one that is wrong."""
    for name in options:
        if name not in known:
            raise ConfigError(f"{entry} has no option {name!r}; known: {', '.join(known)}")
    for name, value in options.items():
        rule = _RULES.get(name)
        if rule is not None:
            wrong = rule(value)
            if wrong:
                raise ConfigError(f"{entry}: {name} must be {wrong}, not {value!r}")
    shares(options, entry)


def shares(options: Mapping[str, Any], entry: str, default: float = 0.9) -> tuple[float, float]:
    """Give trigger and target as shares of the room; with ``trigger="cost"`` the trigger is the whole room."""
    trigger, target = options.get("trigger"), options.get("target")
    start = 1.0 if trigger == "cost" else default if trigger is None else float(trigger)
    goal = min(0.6, start * 2 / 3) if target is None else float(target)
    if goal > start:
        raise ConfigError(
            f"{entry}: target ({goal:g}) must not be above trigger ({start:g}); between them is what a compaction frees"
        )
    return start, goal


def _integer(least: int) -> Callable[[Any], str]:
    def rule(value: Any) -> str:
        good = type(value) is int and value >= least
        return "" if good else f"a whole number of at least {least}"

    return rule


def _optional(rule: Callable[[Any], str]) -> Callable[[Any], str]:
    def checked(value: Any) -> str:
        wrong = "" if value is None else rule(value)
        return f"{wrong}, or None" if wrong else ""

    return checked


def _share(value: Any) -> str:
    good = type(value) in (int, float) and 0 < value <= 1
    return "" if good else "a share above 0 and at most 1"


def _trigger(value: Any) -> str:
    if value is None or value == "cost":
        return ""
    return f'{_share(value)}, or "cost"' if _share(value) else ""


def _text(value: Any) -> str:
    return "" if isinstance(value, str) else "a text"


def _strategy(value: Any) -> str:
    return "" if value in STRATEGIES else f"one of {', '.join(STRATEGIES)}"


def _flag(value: Any) -> str:
    return "" if type(value) is bool else "True or False"


def _positive(value: Any) -> str:
    return "" if type(value) in (int, float) and value >= 0 else "a number of at least 0"


def _catalog(value: Any) -> str:
    return "" if hasattr(value, "context_window") else "an object with context_window(model)"


def _meter(value: Any) -> str:
    return "" if isinstance(value, Meter) or callable(value) else "a Meter or a function from text to tokens"


def _archive(value: Any) -> str:
    return "" if hasattr(value, "execute") or hasattr(value, "aexecute") else "an archive store"


_RULES: dict[str, Callable[[Any], str]] = {
    "model": _optional(_text),
    "window": _optional(_integer(1)),
    "reserve": _optional(_integer(0)),
    "trigger": _trigger,
    "target": _optional(_share),
    "keep_recent": _integer(0),
    "strategy": _strategy,
    "catalog": _optional(_catalog),
    "meter": _optional(_meter),
    "archive": _optional(_archive),
    "space": _text,
    "instructions": _optional(_text),
    "max_bytes": _optional(_integer(1)),
    "expected_calls": _optional(_positive),
    "prompt_tokens": _integer(0),
    "mid_round": _flag,
}
