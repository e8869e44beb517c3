"""The turn: a pure state machine that says what is to be done next.

``step(state, event) -> (state, effects)``. States, events and effects are plain values;
``machine.TABLE`` is the machine, ``diagram`` draws it. The shells that carry out effects live in the engine.
"""

from wakeful.turn.machine import TABLE, Row, begin, step
from wakeful.turn.states import Limits, PendingCall, Phase, ToolOutcome, Totals, TurnState

__all__ = ["TABLE", "Limits", "PendingCall", "Phase", "Row", "ToolOutcome", "Totals", "TurnState", "begin", "step"]
