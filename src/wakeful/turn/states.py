"""The state of a turn: plain data that can be stored between any two steps.

The conversation is not in it. The state says where the turn stands, which calls are open, what they answered, and
what is left of the budget; everything that the machine decides by is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from wakeful.budgets import TaskBudget
from wakeful.errors import InputError
from wakeful.needs import Usage

FORMAT = 1
"""Version of ``TurnState.dump``."""


class Phase(StrEnum):
    """Where a turn stands."""

    PROVISIONING = "provisioning"
    """The turn begins: its input is taken and its context is made."""
    ASSISTANT_STREAMING = "assistant_streaming"
    """The model is asked, or a failed call waits for its next try."""
    TOOL_DISPATCH = "tool_dispatch"
    """A batch of calls is checked, then run."""
    AWAITING_APPROVAL = "awaiting_approval"
    """Calls of the batch wait for a person's decision; nothing of the batch has run."""
    STEERING = "steering"
    """Between model calls: messages that came in are appended and the compactor looks at the conversation."""
    FINALIZING = "finalizing"
    """The answer stands; what the turn leaves in memory is written."""
    STOPPED = "stopped"
    """The turn is over."""
    FAILED = "failed"
    """The turn could not go on; the conversation is valid."""


TERMINAL = frozenset({Phase.STOPPED, Phase.FAILED})

CallStatus: TypeAlias = Literal["new", "parked", "approved", "refused", "running", "done"]
Stop: TypeAlias = Literal["", "end", "length", "refused", "empty", "iterations", "budget", "cancelled", "other"]
"""Why a turn stopped: the model ended, its reply was cut off, it refused, it said nothing, the limit of model calls or
the task budget forced a last call, someone cancelled, or another reason of the provider's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """What a call gave."""

    call_id: str
    text: str
    error: bool = False
    seconds: float = 0.0
    """How long the tool ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCall:
    """A call of the running batch."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    status: CallStatus = "new"
    invalid: str | None = None
    """The raw arguments when they could not be read; the call is answered with an error and never run."""
    outcome: ToolOutcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Tokens of all model calls of the turn."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0

    def plus(self, usage: Usage | None) -> Totals:
        """Add a call's usage."""
        if usage is None:
            return self
        return Totals(
            input_tokens=self.input_tokens + usage.input_tokens,
            output_tokens=self.output_tokens + usage.output_tokens,
            cached_tokens=self.cached_tokens + usage.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + usage.cache_write_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where a turn ends by itself."""

    iterations: int = 50
    """Model calls with tools; after them one last call without."""
    retries: int = 3
    """Further tries of a model call that failed with a retryable error."""
    backoff: float = 1.0
    """Seconds before the first further try when the provider names none; each next one waits twice as long."""
    backoff_max: float = 60.0
    """Longest wait between tries, seconds; also caps what a provider asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnState:
    """A turn between two steps."""

    turn_id: str
    phase: Phase = Phase.PROVISIONING
    limits: Limits = Limits()
    iteration: int = 0
    """Model replies so far."""
    begun: bool = False
    """Whether the input was taken."""
    calls: tuple[PendingCall, ...] = ()
    """The open batch, in the order of the calls."""
    queue: tuple[Any, ...] = ()
    """Messages that came in while the turn ran; appended at the next boundary."""
    tries: int = 0
    """Failed tries of the running model call."""
    mid_round: bool = False
    """What the running ``MaybeCompact`` said."""
    harder: bool = False
    """The running model call overflowed and the compactor was asked to cut deeper."""
    forced: Stop = ""
    """Why the next model call is the last one."""
    thinking_off: bool = False
    """A compaction removed the open round's thinking; requests run without thinking until the round closes."""
    entries: int = 0
    """Messages that the turn appended: numbers their ids."""
    budget: TaskBudget | None = None
    totals: Totals = Totals()
    text: str = ""
    """The last reply's text."""
    stop: Stop = ""
    error_code: str = ""
    error: str = ""

    @property
    def terminal(self) -> bool:
        """Whether the turn is over."""
        return self.phase in TERMINAL

    def dump(self) -> dict[str, Any]:
        """Give the state as plain data, with a format version."""
        return {
            "format": FORMAT,
            "turn_id": self.turn_id,
            "phase": self.phase.value,
            "limits": {name: getattr(self.limits, name) for name in Limits.__slots__},
            "iteration": self.iteration,
            "begun": self.begun,
            "calls": [_dump_call(each) for each in self.calls],
            "queue": list(self.queue),
            "tries": self.tries,
            "mid_round": self.mid_round,
            "harder": self.harder,
            "forced": self.forced,
            "thinking_off": self.thinking_off,
            "entries": self.entries,
            "budget": self.budget.dump() if self.budget else None,
            "totals": {name: getattr(self.totals, name) for name in Totals.__slots__},
            "text": self.text,
            "stop": self.stop,
            "error_code": self.error_code,
            "error": self.error,
        }

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> TurnState:
        """Read what ``dump`` gave. Raises ``InputError`` for another format or unknown keys."""
        if data.get("format") != FORMAT:
            raise InputError(f"turn state format {data.get('format')!r} is not one that this version reads ({FORMAT})")
        values = {name: value for name, value in data.items() if name != "format"}
        try:
            values["phase"] = Phase(values["phase"])
            values["limits"] = Limits(**values["limits"])
            values["calls"] = tuple(_load_call(each) for each in values["calls"])
            values["queue"] = tuple(values["queue"])
            values["budget"] = TaskBudget.load(values["budget"]) if values["budget"] else None
            values["totals"] = Totals(**values["totals"])
            return cls(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"the turn state can't be read: {error}") from error


def _dump_call(call: PendingCall) -> dict[str, Any]:
    outcome = call.outcome
    return {
        "id": call.id,
        "name": call.name,
        "arguments": dict(call.arguments),
        "status": call.status,
        "invalid": call.invalid,
        "outcome": None if outcome is None else {name: getattr(outcome, name) for name in ToolOutcome.__slots__},
    }


def _load_call(data: Mapping[str, Any]) -> PendingCall:
    values = dict(data)
    if values.get("outcome") is not None:
        values["outcome"] = ToolOutcome(**values["outcome"])
    return PendingCall(**values)


def with_outcome(call: PendingCall, text: str, *, error: bool = True, seconds: float = 0.0) -> PendingCall:
    """Answer a call."""
    outcome = ToolOutcome(call_id=call.id, text=text, error=error, seconds=seconds)
    return replace(call, status="done", outcome=outcome)
