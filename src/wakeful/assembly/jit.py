"""Render the short prompt: who the agent is, the rules, and the tool by which it pulls memory when it needs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wakeful.assembly.context import Prompt
from wakeful.assembly.fence import escape
from wakeful.assembly.stratified import BRAIN_PROMPT_VERSION, KERNEL, shape
from wakeful.assembly.template import Template
from wakeful.ids import content_id
from wakeful.needs import ToolSpec
from wakeful.records import MemoryLayer

MOST_TOP_K = 20
DEFAULT_TOP_K = 5

HYDRATE_CONTEXT = ToolSpec(
    name="hydrate_context",
    description="Look up what is remembered about a topic. Returns notes, best first, as data.",
    parameters={
        "type": "object",
        "properties": {
            "domain": {"type": "string", "description": "The topic or question to look up."},
            "top_k": {"type": "integer", "minimum": 1, "maximum": MOST_TOP_K, "description": "How many notes."},
        },
        "required": ["domain"],
    },
)
"""The tool by which a model pulls memory."""


def tool_schema(tool: ToolSpec, provider: str) -> dict[str, Any]:
    """A tool's definition in a provider's shape.

    Source: the providers' tool-use references (Anthropic ``input_schema``; OpenAI Chat ``function``; Responses flat;
    Gemini ``functionDeclarations``; Bedrock ``toolSpec``).
    """
    parameters = dict(tool.parameters) or {"type": "object", "properties": {}}
    match provider:
        case "anthropic":
            return {"name": tool.name, "description": tool.description, "input_schema": parameters}
        case "openai_responses":
            return {"type": "function", "name": tool.name, "description": tool.description, "parameters": parameters}
        case "gemini":
            return {"name": tool.name, "description": tool.description, "parameters": parameters}
        case "bedrock":
            return {
                "toolSpec": {
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": {"json": parameters},
                }
            }
        case _:
            function = {"name": tool.name, "description": tool.description, "parameters": parameters}
            return {"type": "function", "function": function}


def clamp(arguments: Mapping[str, Any]) -> tuple[str, int] | str:
    """Read the arguments of ``hydrate_context``: (domain, top_k) with ``top_k`` clamped, or an error text."""
    domain = arguments.get("domain")
    if not isinstance(domain, str) or not domain.strip():
        return "error: domain is missing; give the topic to look up as a text"
    raw = arguments.get("top_k", DEFAULT_TOP_K)
    try:
        top_k = int(raw)
    except (TypeError, ValueError, OverflowError):
        return f"error: top_k is a number from 1 to {MOST_TOP_K}, not {raw!r}"
    return domain.strip()[:2_000], max(1, min(MOST_TOP_K, top_k))


def layers_for(domain: str) -> tuple[MemoryLayer, ...] | None:
    """A domain that names a layer asks for that layer alone; None: every layer."""
    name = domain.strip().casefold()
    return (MemoryLayer(name),) if name in set(MemoryLayer) else None


def render_short(template: Template, tenant_id: str, namespace: str, rules: tuple[str, ...] = ()) -> Prompt:
    """Render the short prompt. Nothing in it depends on the query or the clock."""
    l0 = "\n".join((f"You are {escape(template.name)}.", *KERNEL))
    lines = [f"Tenant: {escape(tenant_id)}", f"Namespace: {escape(namespace)}"]
    if template.description:
        lines.append(escape(template.description))
    lines += [f"- {escape(rule)}" for rule in template.rules]
    if rules:
        lines += ["Before you call a tool:", *(f"- {rule}" for rule in rules)]
    lines.append(f"Call {HYDRATE_CONTEXT.name} when you need something that was said or learned before.")
    l1 = "\n".join(lines)
    return Prompt(
        text=f"{l0}\n\n{l1}",
        system_blocks=tuple(shape(l0, l1, "anthropic")),
        overrides={
            "brain_prompt_version": BRAIN_PROMPT_VERSION,
            "system_prompt_hash": content_id(l0, l1, prefix="p-"),
        },
    )
