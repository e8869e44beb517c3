"""Types of OpenAI Responses items, as tables: which are calls, which answer them, which the provider ran itself.

Source: ``ResponseInputItemParam`` of the ``openai`` SDK and https://platform.openai.com/docs/api-reference/responses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from wakeful.dialects.native import text_of


class ItemType(NamedTuple):
    """Where a call or an output keeps what it is about."""

    content: str
    """Field of the arguments, or of the output."""
    id: str = "call_id"
    """Field of the id that pairs call and output."""
    name: str = ""
    """Name of the tool where the item carries none."""


CALLS = {
    "function_call": ItemType("arguments"),
    "custom_tool_call": ItemType("input"),
    "computer_call": ItemType("action", name="computer"),
    "local_shell_call": ItemType("action", name="local_shell"),
    "shell_call": ItemType("action", name="shell"),
    "apply_patch_call": ItemType("operation", name="apply_patch"),
    "tool_search_call": ItemType("arguments", name="tool_search"),
    "mcp_approval_request": ItemType("arguments", "id"),
}
"""Calls that the client answers."""

OUTPUTS = {
    "function_call_output": ItemType("output"),
    "custom_tool_call_output": ItemType("output"),
    "computer_call_output": ItemType("output"),
    "local_shell_call_output": ItemType("output"),
    "shell_call_output": ItemType("output"),
    "apply_patch_call_output": ItemType("output"),
    "tool_search_output": ItemType("tools"),
    "mcp_approval_response": ItemType("reason", "approval_request_id"),
}
"""What answers them."""

RUN_BY_PROVIDER = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "program",
        "program_output",
    }
)
"""Model items that carry call and result in one, or pair with each other at the provider's side."""

OTHER = frozenset(
    {
        "compaction",
        "compaction_summary",
        "compaction_trigger",
        "context_compaction",
        "item_reference",
        "mcp_list_tools",
        "additional_tools",
        "configuration_update",
    }
)
"""Items of no role."""

BLANK_IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)
"""One transparent pixel: what is left of a cleared screenshot, whose item can hold nothing but an image."""


def item_type(item: dict[str, Any]) -> str:
    """Give an item's type: a role alone makes a message, an id alone a reference."""
    what = item.get("type")
    if isinstance(what, str):
        return what
    return "item_reference" if "role" not in item and isinstance(item.get("id"), str) else "message"


def call_id(item: dict[str, Any], what: str) -> str:
    """Give the id that pairs a call with its output; a local shell's output has it as its own id."""
    found = item.get((CALLS.get(what) or OUTPUTS[what]).id)
    return text_of(found if found is not None else item.get("id"))
