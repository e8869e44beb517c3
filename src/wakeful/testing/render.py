"""How each dialect writes a system prompt, a user's message, a model's answer and a batch of results.

Signatures and encrypted reasoning are made from their place: unreadable to everyone, equal in equal conversations. Gemini
calls carry no id, as its API gives them; the other formats take the ids of the steps.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, Protocol

from wakeful.ids import content_id

Made = tuple[str, str, dict[str, Any]]
"""Id, name and arguments of a call."""
Answered = tuple[str, str, str, bool]
"""Id, name, text and error flag of a result."""

_PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=")


def image(characters: int) -> str:
    """Make base64 of a PNG of about this many characters (a one-pixel image and what follows its end)."""
    raw = _PNG + b"\0" * max(0, characters * 3 // 4 - len(_PNG))
    return base64.b64encode(raw).decode("ascii")


def _seal(place: int, what: str) -> str:
    return content_id(str(place), what) * 3


class Renderer(Protocol):
    """Writes steps as native messages."""

    def system(self, text: str) -> list[Any]:
        """Write a system prompt; nothing where it stands outside the messages."""
        ...

    def user(self, text: str, image_bytes: int, place: int) -> list[Any]:
        """Write a user's message."""
        ...

    def assistant(self, text: str, calls: Sequence[Made], thinking: str, place: int) -> list[Any]:
        """Write what one model call gave."""
        ...

    def results(self, results: Sequence[Answered], place: int) -> list[Any]:
        """Write a batch of results."""
        ...


class _OpenAIChat:
    def system(self, text: str) -> list[Any]:
        return [{"role": "system", "content": text}]

    def user(self, text: str, image_bytes: int, place: int) -> list[Any]:
        if not image_bytes:
            return [{"role": "user", "content": text}]
        url = {"url": "data:image/png;base64," + image(image_bytes)}
        return [{"role": "user", "content": [{"type": "text", "text": text}, {"type": "image_url", "image_url": url}]}]

    def assistant(self, text: str, calls: Sequence[Made], thinking: str, place: int) -> list[Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [
                {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a, ensure_ascii=False)}}
                for i, n, a in calls
            ]
        elif not text:
            message["content"] = ""
        return [message]

    def results(self, results: Sequence[Answered], place: int) -> list[Any]:
        return [{"role": "tool", "tool_call_id": i, "content": text} for i, _, text, _ in results]


class _Anthropic:
    def system(self, text: str) -> list[Any]:
        return []

    def user(self, text: str, image_bytes: int, place: int) -> list[Any]:
        if not image_bytes:
            return [{"role": "user", "content": text}]
        source = {"type": "base64", "media_type": "image/png", "data": image(image_bytes)}
        return [{"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": text}]}]

    def assistant(self, text: str, calls: Sequence[Made], thinking: str, place: int) -> list[Any]:
        blocks: list[Any] = []
        if thinking:
            blocks.append({"type": "thinking", "thinking": thinking, "signature": _seal(place, thinking)})
        if text:
            blocks.append({"type": "text", "text": text})
        blocks += [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in calls]
        return [{"role": "assistant", "content": blocks}]

    def results(self, results: Sequence[Answered], place: int) -> list[Any]:
        blocks = []
        for i, _, text, error in results:
            block: dict[str, Any] = {"type": "tool_result", "tool_use_id": i, "content": text}
            if error:
                block["is_error"] = True
            blocks.append(block)
        return [{"role": "user", "content": blocks}]


class _OpenAIResponses:
    def system(self, text: str) -> list[Any]:
        return [{"type": "message", "role": "system", "content": [{"type": "input_text", "text": text}]}]

    def user(self, text: str, image_bytes: int, place: int) -> list[Any]:
        parts: list[Any] = [{"type": "input_text", "text": text}]
        if image_bytes:
            parts.append({"type": "input_image", "image_url": "data:image/png;base64," + image(image_bytes)})
        return [{"type": "message", "role": "user", "content": parts}]

    def assistant(self, text: str, calls: Sequence[Made], thinking: str, place: int) -> list[Any]:
        items: list[Any] = []
        if thinking:
            summary = [{"type": "summary_text", "text": thinking}]
            sealed = _seal(place, thinking)
            items.append({"type": "reasoning", "id": f"rs_{place}", "summary": summary, "encrypted_content": sealed})
        if text:
            parts = [{"type": "output_text", "text": text, "annotations": []}]
            item = {"type": "message", "id": f"msg_{place}", "role": "assistant", "status": "completed"}
            items.append({**item, "content": parts})
        for i, n, a in calls:
            raw = json.dumps(a, ensure_ascii=False)
            items.append({"type": "function_call", "id": f"fc_{i}", "call_id": i, "name": n, "arguments": raw})
        return items

    def results(self, results: Sequence[Answered], place: int) -> list[Any]:
        return [{"type": "function_call_output", "call_id": i, "output": text} for i, _, text, _ in results]


class _Gemini:
    def system(self, text: str) -> list[Any]:
        return []

    def user(self, text: str, image_bytes: int, place: int) -> list[Any]:
        parts: list[Any] = [{"text": text}]
        if image_bytes:
            parts.append({"inlineData": {"mimeType": "image/png", "data": image(image_bytes)}})
        return [{"role": "user", "parts": parts}]

    def assistant(self, text: str, calls: Sequence[Made], thinking: str, place: int) -> list[Any]:
        parts: list[Any] = [{"text": thinking, "thought": True}] if thinking else []
        if text:
            parts.append({"text": text})
        for first, (_, n, a) in enumerate(calls):
            part: dict[str, Any] = {"functionCall": {"name": n, "args": a}}
            if not first and thinking:
                part["thoughtSignature"] = _seal(place, n)
            parts.append(part)
        return [{"role": "model", "parts": parts}]

    def results(self, results: Sequence[Answered], place: int) -> list[Any]:
        parts = [
            {"functionResponse": {"name": n, "response": {"error" if error else "result": text}}}
            for _, n, text, error in results
        ]
        return [{"role": "user", "parts": parts}]


class _Bedrock:
    def system(self, text: str) -> list[Any]:
        return []

    def user(self, text: str, image_bytes: int, place: int) -> list[Any]:
        blocks: list[Any] = [{"text": text}]
        if image_bytes:
            blocks.append({"image": {"format": "png", "source": {"bytes": base64.b64decode(image(image_bytes))}}})
        return [{"role": "user", "content": blocks}]

    def assistant(self, text: str, calls: Sequence[Made], thinking: str, place: int) -> list[Any]:
        blocks: list[Any] = []
        if thinking:
            sealed = {"text": thinking, "signature": _seal(place, thinking)}
            blocks.append({"reasoningContent": {"reasoningText": sealed}})
        if text:
            blocks.append({"text": text})
        blocks += [{"toolUse": {"toolUseId": i, "name": n, "input": a}} for i, n, a in calls]
        return [{"role": "assistant", "content": blocks}]

    def results(self, results: Sequence[Answered], place: int) -> list[Any]:
        blocks = []
        for i, _, text, error in results:
            result: dict[str, Any] = {"toolUseId": i, "content": [{"text": text}]}
            result["status"] = "error" if error else "success"
            blocks.append({"toolResult": result})
        return [{"role": "user", "content": blocks}]


class _LangChain:
    def _make(self) -> Any:
        from langchain_core import messages

        return messages

    def system(self, text: str) -> list[Any]:
        return [self._make().SystemMessage(content=text, id="system")]

    def user(self, text: str, image_bytes: int, place: int) -> list[Any]:
        content: Any = text
        if image_bytes:
            url = {"url": "data:image/png;base64," + image(image_bytes)}
            content = [{"type": "text", "text": text}, {"type": "image_url", "image_url": url}]
        return [self._make().HumanMessage(content=content, id=f"human-{place}")]

    def assistant(self, text: str, calls: Sequence[Made], thinking: str, place: int) -> list[Any]:
        content: Any = text
        if thinking:
            content = [{"type": "thinking", "thinking": thinking, "signature": _seal(place, thinking)}]
            content += [{"type": "text", "text": text}] if text else []
        uses = [{"id": i, "name": n, "args": a, "type": "tool_call"} for i, n, a in calls]
        return [self._make().AIMessage(content=content, tool_calls=uses, id=f"run-{place}")]

    def results(self, results: Sequence[Answered], place: int) -> list[Any]:
        make = self._make().ToolMessage
        return [
            make(content=text, tool_call_id=i, name=n, status="error" if error else "success", id=f"tool-{place}-{k}")
            for k, (i, n, text, error) in enumerate(results)
        ]


RENDERERS: dict[str, Renderer] = {
    "anthropic": _Anthropic(),
    "openai_chat": _OpenAIChat(),
    "openai_responses": _OpenAIResponses(),
    "gemini": _Gemini(),
    "bedrock": _Bedrock(),
    "langchain": _LangChain(),
}
"""A renderer for each dialect."""
