"""Make a compaction's policy from options: look the model up, take the defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wakeful.compaction.budget import Budget, default_reserve
from wakeful.compaction.cost import CacheShares
from wakeful.compaction.meter import as_meter
from wakeful.compaction.options import shares
from wakeful.compaction.policy import KEEP_RECENT, CostPolicy, Policy
from wakeful.dialects import get, guess
from wakeful.dialects.protocol import Dialect
from wakeful.errors import ConfigError
from wakeful.pricing import ModelCatalog

_SIZELESS = ("sliding_window",)
"""Strategies that can do their work without a window."""


def catalog_of(options: Mapping[str, Any]) -> ModelCatalog:
    """Give the catalogue of the options, or the one that ships."""
    given = options.get("catalog")
    if given is not None:
        catalog: ModelCatalog = given
        return catalog
    from wakeful.models.catalog import Catalog

    return Catalog.default()


def window_of(options: Mapping[str, Any], entry: str) -> int | None:
    """Give the window in tokens; None when nothing is sized against it. Raises ``ConfigError`` when it is not known."""
    window: int | None = options.get("window")
    if window is not None:
        return window
    model = options.get("model")
    if model is not None:
        found = catalog_of(options).context_window(model)
        if found is None:
            raise ConfigError(
                f"{entry}: the catalogue does not know the window of model {model!r}; give window=TOKENS, or a catalog "
                "that knows it"
            )
        return found
    if options.get("max_bytes") is not None or options.get("strategy") in _SIZELESS:
        return None
    raise ConfigError(f"{entry} needs model=... or window=... to size the history against")


def dialect_of(options: Mapping[str, Any], messages: Sequence[Any]) -> Dialect:
    """Give the dialect named, or the one that the messages are written in."""
    named = options.get("dialect")
    if named is not None:
        return get(named)
    return guess(messages) if len(messages) else get("openai_chat")


def budget_of(options: Mapping[str, Any], entry: str, *, trigger: float = 0.9) -> Budget:
    """Give the budget of the options."""
    window = window_of(options, entry)
    start, goal = shares(options, entry, trigger)
    reserve = options.get("reserve")
    if window is None:
        reserve = 0
    elif reserve is None:
        model = options.get("model")
        limit = catalog_of(options).output_limit(model) if model is not None else None
        reserve = default_reserve(window, limit)
    return Budget(
        window=window,
        reserve=reserve,
        prompt_tokens=options.get("prompt_tokens", 0),
        trigger=1.0 if options.get("mid_round") else start,
        target=goal,
        max_bytes=options.get("max_bytes"),
    )


def cost_of(options: Mapping[str, Any]) -> CostPolicy | None:
    """Give what cost-aware timing needs; None for a fixed trigger."""
    if options.get("trigger") != "cost":
        return None
    model = options.get("model")
    prices = catalog_of(options).prices(model) if model is not None else None
    return CostPolicy(shares=CacheShares.of(prices), expected_calls=options.get("expected_calls"))


def policy_of(
    options: Mapping[str, Any], messages: Sequence[Any], entry: str, *, trigger: float = 0.9, **more: Any
) -> Policy:
    """Give the whole policy of checked options for these messages."""
    budget = budget_of(options, entry, trigger=trigger)
    sizeless = budget.window is None and budget.max_bytes is None
    return Policy(
        dialect=dialect_of(options, messages),
        meter=as_meter(options.get("meter"), model=options.get("model")),
        budget=budget,
        strategy=options.get("strategy", "ladder"),
        keep_recent=options.get("keep_recent", KEEP_RECENT),
        yields="keep_recent" not in options,
        mid_round=options.get("mid_round", False),
        cost=cost_of(options),
        summarizer=options.get("summarizer") is not None,
        archive=options.get("archive") is not None,
        space=options.get("space", ""),
        instructions=options.get("instructions"),
        force=sizeless,
        **more,
    )
