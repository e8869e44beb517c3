"""What the machine wants done. The last effect of a step blocks: its answer is the next event.

The shell applies the effects before the last one together with the state, in one transaction, and only then carries
out the last one. So whatever blocks was written down before it began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from wakeful.turn.states import PendingCall, Stop


@dataclass(frozen=True, slots=True)
class AppendInput:
    """Append a message of the user's."""

    id: str
    message: Any


@dataclass(frozen=True, slots=True)
class AppendReply:
    """Append the assistant's message."""

    id: str
    message: Any


@dataclass(frozen=True, slots=True)
class AppendResults:
    """Append the results of a whole batch, in the order of the calls."""

    id: str
    calls: tuple[PendingCall, ...]
    """Each with its outcome."""


@dataclass(frozen=True, slots=True)
class Provision:
    """Make the turn's context. Answered by ``Provisioned``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactInfo:
    """Where in the turn the compactor is asked."""

    turn_id: str
    iteration: int
    """Model replies so far."""
    mid_round: bool
    """True: a batch of results was just appended, and the model's round goes on."""
    harder: bool = False
    """True: the provider refused the request as too long; the next one must be strictly smaller."""


@dataclass(frozen=True, slots=True)
class MaybeCompact:
    """Let the compactor look at the conversation. Answered by ``CompactionDone``."""

    info: CompactInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class CallModel:
    """Ask the model. Answered by ``ModelReplied`` or ``ModelFailed``."""

    tools: bool = True
    """False: the last call of the turn; the model must answer without tools."""
    thinking: bool = True


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait before the next try. Answered by ``Waited``."""

    seconds: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CheckCalls:
    """Ask hooks and policies about each call. Answered by ``CallsChecked``."""

    calls: tuple[PendingCall, ...]


@dataclass(frozen=True, slots=True)
class AskApproval:
    """Tell a person about the parked calls. Answered by ``Decided``, perhaps days later and in another process."""

    calls: tuple[PendingCall, ...]


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these calls, at the same time where allowed. Answered by ``ToolReturned`` for each, or ``ToolsReturned``."""

    calls: tuple[PendingCall, ...]


@dataclass(frozen=True, slots=True)
class AwaitTools:
    """Wait for the calls that still run."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WriteMemory:
    """Write what the turn leaves in memory. Answered by ``MemoryWritten``."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The turn is over."""

    stop: Stop


@dataclass(frozen=True, slots=True)
class Failed:
    """The turn could not go on."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """The event has no meaning here and changed nothing."""

    event: str
    reason: str


Effect: TypeAlias = (
    AppendInput
    | AppendReply
    | AppendResults
    | Provision
    | MaybeCompact
    | CallModel
    | Wait
    | CheckCalls
    | AskApproval
    | RunTools
    | AwaitTools
    | WriteMemory
    | Finished
    | Failed
    | Ignored
)

APPENDS = (AppendInput, AppendReply, AppendResults)
"""Effects that change the conversation and do not block."""
