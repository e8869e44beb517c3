"""What can happen to a turn. Plain values; the shell makes them, the machine reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from wakeful.needs import ToolCall, Usage
from wakeful.turn.states import ToolOutcome


@dataclass(frozen=True, slots=True)
class Begin:
    """The turn's input is there."""

    messages: tuple[Any, ...]
    """Texts or native messages of the user, in order; empty: the conversation goes on as it stands."""


@dataclass(frozen=True, slots=True)
class Provisioned:
    """The turn's context (system prompt, tools, recalled memories) is made."""


@dataclass(frozen=True, slots=True)
class CompactionDone:
    """The compactor has looked at the conversation."""

    meta: Mapping[str, Any] = field(default_factory=lambda: {"compacted": False})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReplied:
    """The model's whole reply is there."""

    message: Any = None
    """Native; None when nothing was said that could be sent back."""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: Literal["end", "tools", "length", "refused", "other"] = "end"
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed:
    """The model call failed; nothing of its reply is kept."""

    code: str
    """What failed: ``auth``, ``rate_limit``, ``overloaded``, ``context_overflow``, ``invalid_request``, ``transport``,
    ``other``."""
    message: str = ""
    retryable: bool = False
    retry_after: float | None = None
    """Seconds, as told by the provider."""


@dataclass(frozen=True, slots=True)
class Waited:
    """The time before the next try is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the checks say of a call."""

    kind: Literal["run", "refuse", "park"] = "run"
    feedback: str = ""
    """For a refused call: what the model is told."""
    arguments: Mapping[str, Any] | None = None
    """Arguments to run with instead of the model's."""


@dataclass(frozen=True, slots=True)
class CallsChecked:
    """Every call of the batch was checked. A call without a verdict is refused."""

    verdicts: Mapping[str, Verdict]


@dataclass(frozen=True, slots=True)
class Decided:
    """A person decided on the parked calls: True runs a call, False or a text (why not) rejects it.

    What stays undecided is rejected.
    """

    decisions: Mapping[str, bool | str]


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """One call of the running batch is answered."""

    outcome: ToolOutcome


@dataclass(frozen=True, slots=True)
class ToolsReturned:
    """The rest of the running batch is answered at once."""

    outcomes: tuple[ToolOutcome, ...]


@dataclass(frozen=True, slots=True)
class Steer:
    """A message came in while the turn runs."""

    message: Any
    """A text or a native message (plain data)."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Someone wants the turn to end now."""


@dataclass(frozen=True, slots=True)
class MemoryWritten:
    """What the turn leaves in memory is written, or could not be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """The shell can't carry out the effect (no window known, an unreadable reply)."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Resume:
    """The state was loaded after an interruption; whatever was being carried out then may or may not have happened."""


Event: TypeAlias = (
    Begin
    | Provisioned
    | CompactionDone
    | ModelReplied
    | ModelFailed
    | Waited
    | CallsChecked
    | Decided
    | ToolReturned
    | ToolsReturned
    | Steer
    | Cancel
    | MemoryWritten
    | Broken
    | Resume
)

EVENTS: tuple[type[Any], ...] = Event.__args__
"""Every kind of event."""
