"""What a turn says while it runs: one stream of typed events, and the folds of it.

Every way to consume a turn reads this stream: ``run`` folds it, ``stream_text`` filters it. Calls of internal models
(the summariser, the extractor) appear only as ``UsageEvent`` with their role; their text never does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from wakeful.needs import ToolCall, Usage
from wakeful.turn.states import Stop, Totals


@dataclass(frozen=True, slots=True)
class TextEvent:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingEvent:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class RetryEvent:
    """The model call failed and is tried again: text and thinking of this reply that were streamed are void."""

    code: str
    seconds: float
    """Wait before the next try."""


@dataclass(frozen=True, slots=True)
class ToolCallEvent:
    """A tool is about to run."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultEvent:
    """A call is answered."""

    call: ToolCall
    text: str
    error: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ApprovalEvent:
    """Calls wait for a decision. They are stored; the turn can go on in another process."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ActivationEvent:
    """Memories were recalled for this turn."""

    entries: int
    log: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """The conversation was compacted, or that failed."""

    meta: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MemoryEvent:
    """Something was written to memory, or could not be."""

    kind: str
    """``episodes``, ``facts``, ``dropped``, ``nap``."""
    count: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """A model call was counted."""

    usage: Usage
    role: str = "main"
    model: str | None = None
    cost: float | None = None
    """US dollars at list prices; None when the catalogue knows none."""


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """The turn failed; the conversation is valid and the next turn can start."""

    code: str
    message: str
    cause: BaseException | None = field(default=None, compare=False)
    """What was raised, when something was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneEvent:
    """The turn is over or waits for approval: always the last event."""

    result: RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What a turn came to."""

    text: str
    """The last reply's text."""
    stop: Stop | str
    """Why it stopped; ``awaiting_approval`` and ``failed`` beside the machine's own reasons."""
    session: str
    turn_id: str
    iterations: int = 0
    """Model calls."""
    totals: Totals = field(default_factory=Totals)
    cost: float | None = None
    """US dollars at list prices, internal calls included; None when no price is known."""
    approvals: tuple[ToolCall, ...] = ()
    """Calls that wait for a decision."""
    error: ErrorEvent | None = None
    remaining: int | None = None
    """Tokens left of the task budget; None without one."""

    @property
    def ok(self) -> bool:
        """Whether the turn did not fail."""
        return self.error is None


TurnEvent: TypeAlias = (
    TextEvent
    | ThinkingEvent
    | RetryEvent
    | ToolCallEvent
    | ToolResultEvent
    | ApprovalEvent
    | ActivationEvent
    | CompactionEvent
    | MemoryEvent
    | UsageEvent
    | ErrorEvent
    | DoneEvent
)


class TextFilter:
    """Pick the text out of a stream, without repeating what a retry sends again."""

    def __init__(self) -> None:
        self._sent = ""
        self._again: str | None = None

    def feed(self, event: TurnEvent) -> str:
        """Give the text to show for an event; empty for none."""
        if isinstance(event, RetryEvent):
            self._again = "" if self._sent else None
            return ""
        if not isinstance(event, TextEvent):
            if isinstance(event, UsageEvent) and event.role == "main":
                self._sent, self._again = "", None
            return ""
        if self._again is None:
            self._sent += event.text
            return event.text
        self._again += event.text
        if self._sent.startswith(self._again):
            return ""
        again, self._again = self._again, None
        fresh = again[len(self._sent) :] if again.startswith(self._sent) else "\n" + again
        self._sent = again
        return fresh
