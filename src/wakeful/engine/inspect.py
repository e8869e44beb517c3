"""Inspect a conversation: what fills the window, by the meter and the rules that compaction itself uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wakeful.compaction.budget import Budget
from wakeful.compaction.inspection import Inspection, inspect_messages
from wakeful.compaction.meter import Meter, as_meter
from wakeful.compaction.options import CompactOptions, check
from wakeful.dialects import get, guess
from wakeful.dialects.protocol import Dialect
from wakeful.engine.policies import budget_of


def inspect(
    messages: Sequence[Any],
    *,
    model: str | None = None,
    window: int | None = None,
    reserve: int | None = None,
    prompt_tokens: int = 0,
    dialect: Dialect | str | None = None,
    meter: Meter | Callable[[str], int] | None = None,
    largest: int = 8,
) -> Inspection:
    """Say what is in a conversation and how much of the window it fills.

    Without ``model`` or ``window`` nothing is sized. Raises ``ConfigError`` for a wrong option, ``InputError`` for what
    can't be messages.
    """
    options: CompactOptions = {"prompt_tokens": prompt_tokens}
    if model is not None:
        options["model"] = model
    if window is not None:
        options["window"] = window
    if reserve is not None:
        options["reserve"] = reserve
    check(options, "inspect")
    sized = model is not None or window is not None
    budget = budget_of(options, "inspect") if sized else Budget(window=None, prompt_tokens=prompt_tokens)
    spoken = guess(messages) if dialect is None else get(dialect)
    return inspect_messages(messages, spoken, as_meter(meter, model=model), budget, largest=largest)
