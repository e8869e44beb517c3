"""Rules of Gemini generateContent, checked over a list of contents.

| code | rule |
|---|---|
| G1 | a function call comes right after a user's content or function responses |
| G2 | a call content is followed by as many function responses, for the same calls |
| G3 | a content has parts, and a part has data; an empty text is none |
| G4 | in the current turn the first call of each step carries its thought signature |
| G5 | user and model take turns, the user first; ``strict``: the last content is the user's |

G4 is checked when ``thinking`` is on, or when any call of the list carries a signature (then the model signs its calls). The
current turn is everything after the last content of the user's own; earlier turns are not checked (G6 follows from it).

Source: https://ai.google.dev/gemini-api/docs/function-calling, https://ai.google.dev/gemini-api/docs/thought-signatures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wakeful.dialects.protocol import Block, Problem, Role, ToolResult, ToolUse

Parsed = tuple[Role, list[dict[str, Any]], tuple[Block, ...]]
"""Role, parts, blocks of a content."""


def validate(parsed: Sequence[Parsed], *, thinking: bool, open_tail: bool, strict: bool) -> list[Problem]:
    """Check every rule of the table; problems are in the order of the contents."""
    found = [*_pairing(parsed, open_tail), *_content(parsed), *_order(parsed, strict), *_signatures(parsed, thinking)]
    return sorted(found, key=lambda problem: problem.index)


def _calls(blocks: Sequence[Block]) -> list[str]:
    return [block.id for block in blocks if isinstance(block, ToolUse) and not block.server]


def _results(blocks: Sequence[Block]) -> list[str]:
    return [block.call_id for block in blocks if isinstance(block, ToolResult) and not block.server]


def _pairing(parsed: Sequence[Parsed], open_tail: bool) -> Iterator[Problem]:
    waiting: list[str] = []
    before: tuple[str, bool] = ("", False)
    for index, (role, _, blocks) in enumerate(parsed):
        calls, results = _calls(blocks), _results(blocks)
        if sorted(results) != sorted(waiting):
            if len(results) == len(waiting):
                why = f"{', '.join(results)} do not answer the calls {', '.join(waiting)}"
            else:
                why = f"{len(results)} function responses for {len(waiting)} calls"
            yield Problem("G2", index, f"{why} of the content before; every call needs its own response, and no other")
        if calls and role != "assistant":
            yield Problem("G1", index, "a function call stands in a user's content; calls are the model's")
        elif calls and before[0] != "user":
            yield Problem(
                "G1", index, "a function call comes first or after the model's content; put a user turn before"
            )
        waiting = calls
        before = (role, bool(results))
    if waiting and not open_tail:
        yield Problem("G2", len(parsed) - 1, f"no function response for {', '.join(waiting)}; add one for each call")


def _content(parsed: Sequence[Parsed]) -> Iterator[Problem]:
    for index, (_, parts, _) in enumerate(parsed):
        if not parts:
            yield Problem("G3", index, "a content without parts; remove it")
        for part in parts:
            text = part.get("text")
            signed = part.get("thoughtSignature") or part.get("thought_signature")
            if text == "" and not signed:
                yield Problem("G3", index, "an empty text part; remove it")
            elif text is None and not any(key in part for key in _DATA):
                yield Problem("G3", index, "a part without data; remove it")


_DATA = tuple(
    key
    for name in (
        "functionCall",
        "functionResponse",
        "inlineData",
        "fileData",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
    )
    for key in (name, "".join(f"_{c.lower()}" if c.isupper() else c for c in name))
)


def _order(parsed: Sequence[Parsed], strict: bool) -> Iterator[Problem]:
    before = ""
    for index, (role, _, _) in enumerate(parsed):
        if not before and role == "assistant":
            yield Problem("G5", index, "the model speaks first; put a user's content before it")
        if role == before:
            yield Problem(
                "G5", index, f"two contents of the {'model' if role == 'assistant' else role} in a row; merge them"
            )
        before = role
    if strict and before == "assistant":
        yield Problem(
            "G5", len(parsed) - 1, "the last content is the model's; end with the user's or function responses"
        )


def _signatures(parsed: Sequence[Parsed], thinking: bool) -> Iterator[Problem]:
    start = 0
    signs = thinking
    for index, (role, parts, blocks) in enumerate(parsed):
        if role == "user" and not (blocks and all(isinstance(block, ToolResult) for block in blocks)):
            start = index + 1
        signs = signs or any(_is_call(part) and _signature(part) for part in parts)
    if not signs:
        return
    for index in range(start, len(parsed)):
        first = next((part for part in parsed[index][1] if _is_call(part)), None)
        if first is not None and not _signature(first):
            yield Problem("G4", index, "the first call of this step has no thought signature; keep the part as it came")


def _is_call(part: dict[str, Any]) -> bool:
    return part.get("functionCall") is not None or part.get("function_call") is not None


def _signature(part: dict[str, Any]) -> Any:
    return part.get("thoughtSignature") or part.get("thought_signature")
