"""Rules of OpenAI Responses items, checked over a list of items.

| code | rule |
|---|---|
| R1 | an output has its call before it, and is the only one |
| R2 | a call has its output before the model's next step |
| R3 | a reasoning item is followed by the item it belongs to |
| R5 | an item's id begins as its type demands |
| R6 | one compaction item, with its encrypted content |

R4 (an item made with reasoning is not sent without it unless its id is removed) needs the history as it was:
``binding.bound_problems``. With ``previous_response_id`` a call may be in the chain and not in the list: validate the whole
chain. R7 and R8 depend on the provider and on ``store``: reasoning and ids of one chain are not mixed with another's.

Source: https://platform.openai.com/docs/guides/reasoning, .../guides/function-calling, .../guides/conversation-state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wakeful.dialects.native import plain
from wakeful.dialects.protocol import Problem
from wakeful.dialects.responses_items import CALLS, OUTPUTS, RUN_BY_PROVIDER, call_id, item_type
from wakeful.errors import InputError

PREFIXES = {
    "function_call": "fc",
    "message": "msg",
    "reasoning": "rs",
    "web_search_call": "ws",
    "custom_tool_call": "ctc",
}
"""How an item's id begins. Source: the API's message ``Expected an ID that begins with 'fc'``."""

_COMPACTIONS = frozenset({"compaction", "compaction_summary", "context_compaction"})


def validate(messages: Sequence[Any], *, open_tail: bool) -> list[Problem]:
    """Check every rule of the table; problems are in the order of the items."""
    problems: list[Problem] = []
    waiting: dict[str, int] = {}
    answered: set[str] = set()
    stepped = False
    reasoning = compaction = -1
    for index, message in enumerate(messages):
        item = plain(message, f"messages[{index}]")
        what = item_type(item)
        if what == "message" and item.get("role") not in ("user", "assistant", "system", "developer"):
            raise InputError(f"messages[{index}] needs a type, or a role; it has neither")
        model = what in CALLS or what in RUN_BY_PROVIDER or what == "reasoning" or item.get("role") == "assistant"
        if reasoning >= 0 and not model:
            problems.append(_unfollowed(reasoning))
        reasoning = index if what == "reasoning" else -1
        if model and stepped:
            problems += _unanswered(waiting)
            waiting.clear()
            stepped = False
        if what in CALLS:
            pair = call_id(item, what)
            if pair in waiting:
                problems.append(Problem("R2", index, f"{pair}: two calls share an id; each needs its own output"))
            waiting[pair] = index
            answered.discard(pair)
        elif what in OUTPUTS:
            stepped = True
            pair = call_id(item, what)
            if pair in waiting:
                del waiting[pair]
                answered.add(pair)
            else:
                why = (
                    "answered already; remove the second output" if pair in answered else "not in the input; remove it"
                )
                problems.append(Problem("R1", index, f"{pair or '(no id)'}: the call of this output is {why}"))
        elif not model:
            stepped = stepped or what == "message"
        problems += _own(item, what, index)
        if what in _COMPACTIONS:
            if compaction >= 0:
                problems.append(Problem("R6", index, "a second compaction item; drop everything before the latest one"))
            compaction = index
    if reasoning >= 0:
        problems.append(_unfollowed(reasoning))
    if waiting and (not open_tail or _closed(messages)):
        problems += _unanswered(waiting)
    return sorted(problems, key=lambda problem: problem.index)


def _own(item: dict[str, Any], what: str, index: int) -> list[Problem]:
    """Check what an item shows by itself."""
    found = []
    item_id = item.get("id")
    prefix = PREFIXES.get(what)
    if prefix and isinstance(item_id, str) and item_id and not item_id.startswith(prefix):
        found.append(
            Problem("R5", index, f"the id {item_id!r} of a {what} does not begin with {prefix!r}; remove the id")
        )
    if what in _COMPACTIONS and not item.get("encrypted_content"):
        found.append(Problem("R6", index, "a compaction item has no encrypted_content; send it back as it came"))
    return found


def _closed(messages: Sequence[Any]) -> bool:
    """Tell whether the list ends with a user's message, so that no output can follow."""
    last = plain(messages[-1])
    return item_type(last) == "message" and last.get("role") != "assistant"


def _unanswered(waiting: dict[str, int]) -> list[Problem]:
    return [
        Problem("R2", index, f"{pair}: no output before the model's next step; add the output or remove the call")
        for pair, index in waiting.items()
    ]


def _unfollowed(index: int) -> Problem:
    return Problem("R3", index, "a reasoning item without the item it belongs to; remove it or bring that item back")
