"""What tests need: conversations in every dialect, a model that answers by a script, a frozen clock, a strict local
provider server.
"""

from __future__ import annotations

from wakeful.testing.conversations import (
    ADVERSARIAL_BUDGET,
    Assistant,
    Call,
    Result,
    Results,
    System,
    User,
    adversarial,
    conversation,
    random_conversation,
    random_steps,
)
from wakeful.testing.models import FrozenClock, Say, ScriptedModel
from wakeful.testing.server import Failure, ProviderServer, Received
from wakeful.testing.wire import call

__all__ = [
    "ADVERSARIAL_BUDGET",
    "adversarial",
    "Assistant",
    "Call",
    "call",
    "conversation",
    "Failure",
    "FrozenClock",
    "ProviderServer",
    "random_conversation",
    "random_steps",
    "Received",
    "Result",
    "Results",
    "Say",
    "ScriptedModel",
    "System",
    "User",
]
