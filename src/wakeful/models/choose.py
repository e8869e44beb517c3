"""Make a chat model of what a user has.

``coerce_model`` takes a client of the ``anthropic`` or ``openai`` SDK with a model id, a LangChain chat model, a plain
function from text to text, a string such as ``"anthropic/claude-sonnet-4-5"``, or a model of the protocol.
"""

from __future__ import annotations

import inspect
from typing import Any

from wakeful.errors import ConfigError
from wakeful.models.anthropic import AnthropicModel
from wakeful.models.chat import ChatModel, FunctionModel
from wakeful.models.langchain import LangChainModel
from wakeful.models.openai import OpenAIChatModel, OpenAIResponsesModel


def coerce_model(value: Any, *, model: str | None = None) -> ChatModel:
    """Make a chat model of what the caller has.

    ``value``: a ``ChatModel``; an SDK client (``model`` is then the model's id, or give ``(client, "model-id")``); a
    LangChain chat model; a function from text to text; ``"anthropic/MODEL"``, ``"openai/MODEL"`` (Chat Completions) or
    ``"openai-responses/MODEL"``, whose SDK reads its own credentials. Raises ``ConfigError`` for anything else.
    """
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], str) and model is None:
        value, model = value
    if isinstance(value, str):
        return _from_name(value)
    if isinstance(value, ChatModel) and not inspect.isclass(value):
        return value
    found = _from_client(value, model)
    if found is not None:
        return found
    if callable(value) and not inspect.isclass(value):
        return FunctionModel(value)
    raise ConfigError(
        f"can't make a chat model of {type(value).__name__}; give a ChatModel, an anthropic or openai client with a "
        "model id, a LangChain chat model, a function from text to text, or a name like 'anthropic/claude-sonnet-4-5'"
    )


def _from_name(name: str) -> ChatModel:
    provider, slash, model = name.partition("/")
    if slash and model:
        match provider:
            case "anthropic":
                return AnthropicModel(model)
            case "openai":
                return OpenAIChatModel(model)
            case "openai-responses":
                return OpenAIResponsesModel(model)
            case _:
                pass
    raise ConfigError(
        f"unknown model name {name!r}; write 'anthropic/MODEL', 'openai/MODEL' or 'openai-responses/MODEL', "
        "or give a client of the provider's SDK"
    )


def _from_client(value: Any, model: str | None) -> ChatModel | None:
    """Recognise a foreign object by what it can do, so that nothing is imported for the sake of a check."""
    if hasattr(value, "ainvoke") and hasattr(value, "bind_tools"):
        return LangChainModel(value, name=model)
    speaks_anthropic = hasattr(getattr(value, "messages", None), "create")
    speaks_openai = hasattr(getattr(getattr(value, "chat", None), "completions", None), "create")
    if not (speaks_anthropic or speaks_openai):
        return None
    if model is None:
        raise ConfigError(f"a {type(value).__name__} client needs a model id: give (client, 'model-id')")
    if speaks_anthropic:
        return AnthropicModel(model, client=value)
    return OpenAIChatModel(model, client=value)
