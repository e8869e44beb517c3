"""A model on this machine: a GGUF file run by llama.cpp, through ``llama-cpp-python`` (the extra ``local``).

The file is the user's; get it from the page of the model's makers. ``sha256`` pins it: a file with another sum is not
loaded. Speaks OpenAI Chat messages.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from wakeful.errors import ConfigError, MissingExtra
from wakeful.ids import content_id
from wakeful.models.chat import system_text
from wakeful.models.openai import ChatAssembler, read_completion
from wakeful.models.retry import wrap
from wakeful.models.sdk import in_thread
from wakeful.needs import CallDelta, ChatReply, ChatRequest, Done, StreamPart, TextDelta

TOOL_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
"""A call as models with a ChatML tool template write it. Source: the chat template of Qwen2.5's model files."""

BLOCK = 1 << 20


class LocalModel:
    """A chat model from a GGUF file.

    ``path``: the file. ``sha256``: its expected sum, 64 hexadecimal digits; None: not checked. ``context_window``:
    tokens; None: what the model was trained with. ``threads``: more than the idle cores makes it slower, not faster;
    None: llama.cpp decides. The file is read at the first call; calls take turns.
    """

    dialect = "openai_chat"

    def __init__(
        self,
        path: str | Path,
        *,
        sha256: str | None = None,
        name: str | None = None,
        context_window: int | None = None,
        threads: int | None = None,
    ) -> None:
        self._path = Path(path)
        if not self._path.is_file():
            raise ConfigError(f"no model file at {self._path}; get a GGUF file from the page of the model's makers")
        if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
            raise ConfigError(f"sha256 must be 64 hexadecimal digits, not {sha256!r}")
        self.name = name or self._path.stem
        self._sha256 = sha256.lower() if sha256 is not None else None
        self._window = context_window
        self._threads = threads
        self._lock = threading.Lock()
        self._llama: Any = None

    @property
    def context_window(self) -> int:
        """Tokens of the loaded model's window; loads the file."""
        with self._lock:
            return int(self._loaded().n_ctx())

    def chat(self, request: ChatRequest) -> ChatReply:
        """Ask, and wait for the whole reply."""
        with self._lock:
            llama = self._loaded()
            try:
                data = llama.create_chat_completion(**self._params(request))
            except Exception as error:
                raise wrap(error) from error
        return read_completion(_with_calls({**data, "model": self.name}, request))

    async def achat(self, request: ChatRequest) -> ChatReply:
        """Ask in a thread, and await the whole reply."""
        import asyncio

        return await asyncio.to_thread(self.chat, request)

    def stream(self, request: ChatRequest) -> Iterator[StreamPart]:
        """Ask, and get the reply in parts. With tools it comes at once: a call can be told from text only at its end."""
        if request.tools:
            yield from _parts(self.chat(request))
            return
        assembler = ChatAssembler()
        with self._lock:
            llama = self._loaded()
            try:
                chunks = iter(llama.create_chat_completion(**self._params(request), stream=True))
            except Exception as error:
                raise wrap(error) from error
            while True:
                try:
                    chunk = next(chunks)
                except StopIteration:
                    break
                except Exception as error:
                    raise wrap(error) from error
                yield from assembler.feed({**chunk, "model": self.name})
        yield Done(assembler.finish())

    async def astream(self, request: ChatRequest) -> AsyncIterator[StreamPart]:
        """Ask in a thread, and await the reply in parts."""
        async for part in in_thread(self.stream(request)):
            yield part

    def _loaded(self) -> Any:
        if self._llama is None:
            try:
                import llama_cpp
            except ImportError as error:
                raise MissingExtra("local", needed_for=f"the local model {self.name!r}") from error
            if self._sha256 is not None:
                found = file_sha256(self._path)
                if found != self._sha256:
                    raise ConfigError(f"{self._path} is not the pinned file: sha256 {found}, expected {self._sha256}")
            threads = {} if self._threads is None else {"n_threads": self._threads, "n_threads_batch": self._threads}
            try:
                self._llama = llama_cpp.Llama(
                    model_path=str(self._path), n_ctx=self._window or 0, verbose=False, seed=0, **threads
                )
            except (ValueError, RuntimeError, OSError) as error:
                raise ConfigError(f"llama.cpp can't load {self._path}: {error}") from error
        return self._llama

    def _params(self, request: ChatRequest) -> dict[str, Any]:
        messages = [_for_template(message) for message in request.messages]
        system = system_text(request)
        if system:
            messages.insert(0, {"role": "system", "content": system})
        if request.prompt is not None:
            messages.append({"role": "user", "content": request.prompt})
        params: dict[str, Any] = {"messages": messages}
        if request.tools:
            params["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": {"type": "object", "properties": {}, **tool.parameters},
                    },
                }
                for tool in request.tools
            ]
        if request.schema is not None:
            params["response_format"] = {"type": "json_object", "schema": dict(request.schema)}
        if request.max_tokens is not None:
            params["max_tokens"] = request.max_tokens
        if request.temperature is not None:
            params["temperature"] = request.temperature
        return params


def file_sha256(path: Path) -> str:
    """Give the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _for_template(message: Any) -> Any:
    """Decode a message's arguments: the model files' templates write them as JSON themselves."""
    calls = message.get("tool_calls") if isinstance(message, Mapping) else None
    if not calls:
        return message
    decoded = []
    for call in calls:
        function = dict(call.get("function") or {})
        with contextlib.suppress(ValueError):
            function["arguments"] = json.loads(function.get("arguments") or "{}")
        decoded.append({**call, "function": function})
    return {**message, "content": message.get("content") or "", "tool_calls": decoded}


def _with_calls(data: Mapping[str, Any], request: ChatRequest) -> dict[str, Any]:
    """Turn calls that the model wrote into its text into calls of the message."""
    out = dict(data)
    choices = out.get("choices")
    if not request.tools or not isinstance(choices, list) or not choices:
        return out
    message = choices[0].get("message") or {}
    text = message.get("content")
    if not isinstance(text, str) or message.get("tool_calls"):
        return out
    found, rest = calls_in_text(text, {tool.name for tool in request.tools})
    if not found:
        return out
    stem = content_id(repr(request.messages), text, prefix="call_")
    calls = [
        {"id": f"{stem}_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for index, (name, arguments) in enumerate(found)
    ]
    message = {**message, "content": rest or None, "tool_calls": calls}
    out["choices"] = [{**choices[0], "message": message, "finish_reason": "tool_calls"}]
    return out


def calls_in_text(text: str, names: set[str]) -> tuple[list[tuple[str, str]], str]:
    """Find calls in a model's text: name and JSON arguments each, and the text without them.

    Read are ``<tool_call>`` blocks, and a text that is one JSON object with a ``name`` among ``names``. Anything else
    stays text.
    """
    found: list[tuple[str, str]] = []
    candidates = TOOL_CALL.findall(text) or ([text] if text.strip().startswith("{") else [])
    for candidate in candidates:
        try:
            value = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(value, dict) and value.get("name") in names:
            arguments = value.get("arguments", value.get("parameters", {}))
            found.append((value["name"], arguments if isinstance(arguments, str) else json.dumps(arguments)))
    if not found:
        return [], text
    return found, TOOL_CALL.sub("", text).strip() if TOOL_CALL.search(text) else ""


def _parts(reply: ChatReply) -> Iterator[StreamPart]:
    if reply.text:
        yield TextDelta(reply.text)
    for index, call in enumerate(reply.calls):
        yield CallDelta(index, id=call.id, name=call.name, arguments=json.dumps(dict(call.arguments)))
    yield Done(reply)
