"""What tests need: a model that answers by a script, a frozen clock, a strict local provider server."""

from __future__ import annotations

from wakeful.testing.models import FrozenClock, Say, ScriptedModel

__all__ = ["FrozenClock", "Say", "ScriptedModel"]
