"""Rules of Amazon Bedrock Converse, checked over a list of messages.

| code | rule |
|---|---|
| B1 | a request with tool blocks has a ``toolConfig`` (the caller says whether it has one) |
| B2 | results answer the calls of the message before, all of them, each once |
| B3 | the first message is a user's |
| B4 | user and assistant take turns; ``strict``: the last message is a user's |
| B5 | ``strict``: no text beside results in one message, as some models demand |
| B6 | no reasoning and no tool use in a user message |
| B7 | a result's ``json`` is an object; content is there, no text is blank, reasoning stands before text and calls |

Source: https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-call.html and the API reference of
Converse (Message, ContentBlock, ToolResultContentBlock).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wakeful.dialects.native import field, text_of
from wakeful.dialects.protocol import Problem

Parsed = tuple[str, list[dict[str, Any]]]
"""Role and blocks."""


def validate(parsed: Sequence[Parsed], *, open_tail: bool, strict: bool, tool_config: bool) -> list[Problem]:
    """Check every rule of the table; problems are in the order of the messages."""
    problems = [*_pairing(parsed, open_tail), *_order(parsed, strict), *_content(parsed, strict)]
    if not tool_config:
        for index, (_, blocks) in enumerate(parsed):
            if any("toolUse" in block or "toolResult" in block for block in blocks):
                why = "tool blocks without a toolConfig; give the tools, or render the blocks as text"
                problems.append(Problem("B1", index, why))
                break
    return sorted(problems, key=lambda problem: problem.index)


def _pairing(parsed: Sequence[Parsed], open_tail: bool) -> Iterator[Problem]:
    waiting: dict[str, None] = {}
    for index, (role, blocks) in enumerate(parsed):
        called, waiting = waiting, {}
        for block in blocks:
            use, result = block.get("toolUse"), block.get("toolResult")
            if result is not None and field(result, "type") in (None, "tool_result"):
                call_id = text_of(field(result, "toolUseId"))
                if call_id in called and role == "user":
                    del called[call_id]
                else:
                    yield Problem("B2", index, f"{call_id}: a result for no open call of the message before; remove it")
            elif use is not None and role == "assistant" and field(use, "type") != "server_tool_use":
                waiting[text_of(field(use, "toolUseId"))] = None
        if called:
            yield Problem("B2", index, f"no toolResult for {', '.join(called)}; add the results or remove the calls")
    if waiting and not open_tail:
        yield Problem(
            "B2", len(parsed) - 1, f"no toolResult for {', '.join(waiting)}; add the results or remove the calls"
        )


def _order(parsed: Sequence[Parsed], strict: bool) -> Iterator[Problem]:
    before = ""
    for index, (role, _) in enumerate(parsed):
        if index == 0 and role != "user":
            yield Problem("B3", 0, "the conversation starts with the assistant; put a user message first")
        if role == before:
            yield Problem("B4", index, f"two {role} messages in a row; merge them into one")
        before = role
    if strict and before == "assistant":
        yield Problem("B4", len(parsed) - 1, "the last message is the assistant's; end with a user message")


def _content(parsed: Sequence[Parsed], strict: bool) -> Iterator[Problem]:
    for index, (role, blocks) in enumerate(parsed):
        if not any("cachePoint" not in block for block in blocks):
            yield Problem("B7", index, "a message without content; remove it")
        kinds = [next((key for key in _KINDS if key in block), "") for block in blocks]
        if strict and "toolResult" in kinds and "text" in kinds:
            yield Problem("B5", index, "text beside results in one message; send the text before or after")
        if role == "user" and "reasoningContent" in kinds:
            yield Problem("B6", index, "reasoning in a user message; remove it")
        if role == "user" and "toolUse" in kinds:
            yield Problem("B6", index, "a tool use in a user message; calls are the assistant's")
        if "reasoningContent" in kinds and "text" in kinds and kinds.index("text") < kinds.index("reasoningContent"):
            yield Problem("B7", index, "reasoning stands after text; keep the order in which it came")
        for block in blocks:
            if "text" in block and not text_of(block["text"]).strip():
                yield Problem("B7", index, "a text block is blank; remove it")
            for inner in field(block.get("toolResult") or {}, "content") or ():
                if isinstance(inner, dict) and "json" in inner and not isinstance(inner["json"], dict):
                    yield Problem("B7", index, "a result's json is no object; wrap it, or send it as text")


_KINDS = ("text", "toolUse", "toolResult", "reasoningContent")
