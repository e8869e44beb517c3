"""What tests need: a model that answers by a script, a frozen clock, a strict local provider server."""

from __future__ import annotations

from wakeful.testing.models import FrozenClock, Say, ScriptedModel
from wakeful.testing.server import Failure, ProviderServer, Received
from wakeful.testing.wire import call

__all__ = ["Failure", "FrozenClock", "ProviderServer", "Received", "Say", "ScriptedModel", "call"]
