"""Middleware for LangChain agents: each model call sees a history that fits, and the agent's state keeps all of it.

::

    from langchain.agents import create_agent
    from wakeful.adapters.langchain import ContextWindow

    agent = create_agent(model, tools, middleware=[ContextWindow(window=200_000)])
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Unpack

from wakeful.compaction.options import WINDOW_OPTIONS, WindowOptions, check
from wakeful.compaction.result import CompactionResult
from wakeful.engine.compacting import prompt_tokens
from wakeful.engine.window import Window
from wakeful.errors import ConfigError, MissingExtra
from wakeful.models.langchain import usage_of
from wakeful.needs import ToolSpec

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.config import get_config
except ImportError as _missing:
    raise MissingExtra("langchain", needed_for="the middleware for LangChain agents") from _missing

CONVERSATIONS = 1_000
"""Windows that one middleware remembers; the one unused for longest is forgotten, and starts anew when it comes back."""


class ContextWindow(AgentMiddleware):  # type: ignore[misc]  # the base class is not typed
    """Fits the messages into the model's window before each model call.

    Options: those of ``Window``; ``dialect`` is LangChain's. The state is not changed: what a call does not see stays in
    the checkpoint. One instance serves many conversations: each thread (``configurable.thread_id``) has a window of its
    own, and a run without a thread id gets a fresh one for each call.
    """

    def __init__(self, **options: Unpack[WindowOptions]) -> None:
        super().__init__()
        check(options, "ContextWindow", WINDOW_OPTIONS)
        if options.setdefault("dialect", "langchain") != "langchain":
            raise ConfigError(
                f"ContextWindow reads LangChain messages; dialect={options['dialect']!r} is another format"
            )
        Window(**options)  # a bad option raises here, not in the middle of a run
        self._options = options
        self._windows: OrderedDict[str, Window] = OrderedDict()
        self._lock = threading.Lock()
        self._prompts: dict[Any, tuple[int, Any]] = {}

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Fit, call the model, learn from its usage."""
        window = self._window()
        fitted = window.fit(request.messages, prompt_tokens=self._prompt(window, request), mid_round=_open(request))
        response = handler(_with(request, fitted))
        _learn(window, response)
        return response

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do the same, awaited."""
        window = self._window()
        fitted = await window.afit(
            request.messages, prompt_tokens=self._prompt(window, request), mid_round=_open(request)
        )
        response = await handler(_with(request, fitted))
        _learn(window, response)
        return response

    def _window(self) -> Window:
        thread = _thread_id()
        if thread is None:
            return Window(**self._options)
        with self._lock:
            window = self._windows.pop(thread, None) or Window(**self._options)
            self._windows[thread] = window
            while len(self._windows) > CONVERSATIONS:
                self._windows.popitem(last=False)
            return window

    def _prompt(self, window: Window, request: Any) -> int:
        """Estimate system prompt and tool definitions; counted once for each set of tools."""
        system, tools = request.system_prompt or "", tuple(request.tools)
        key = (system, tuple(map(id, tools)))
        known = self._prompts.get(key)
        if known is None:
            if len(self._prompts) >= CONVERSATIONS:
                self._prompts.clear()
            known = self._prompts[key] = (prompt_tokens(window.meter.count, system, _specs(tools)), tools)
        return window.meter.scaled(known[0])


def _thread_id() -> str | None:
    try:
        thread = get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:
        return None
    return None if thread is None else str(thread)


def _specs(tools: Sequence[Any]) -> tuple[ToolSpec, ...]:
    functions = [convert_to_openai_tool(tool).get("function", {}) for tool in tools]
    return tuple(ToolSpec(f.get("name", ""), f.get("description", ""), f.get("parameters", {})) for f in functions)


def _open(request: Any) -> bool:
    """Say whether the model's round is still open: the call answers tool results."""
    return bool(request.messages) and request.messages[-1].type == "tool"


def _with(request: Any, fitted: CompactionResult) -> Any:
    """Give the request with the fitted messages; without thinking when that was bound to what is gone (A7, A8)."""
    if fitted.messages is request.messages:
        return request
    changes: dict[str, Any] = {"messages": list(fitted.messages)}
    if fitted.meta.thinking_off and getattr(request.model, "thinking", None):
        changes["model"] = request.model.model_copy(update={"thinking": {"type": "disabled"}})
    return request.override(**changes)


def _learn(window: Window, response: Any) -> None:
    """Tell the window what the provider counted. ``response``: a ``ModelResponse`` or an ``AIMessage``."""
    for message in getattr(response, "result", None) or (response,):
        usage = usage_of(message)
        if usage is not None:
            window.observe(usage)
            return
