"""From what a user writes to an embedder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wakeful.errors import ConfigError, MissingExtra
from wakeful.models.embed.hosted import CallableEmbedder, SentenceTransformerEmbedder
from wakeful.models.embed.minilm import MiniLMEmbedder
from wakeful.models.embed.multilingual import MultilingualEmbedder
from wakeful.models.embed.protocol import Embedder
from wakeful.models.embed.static import StaticEmbedder

_NAMED: dict[str, Callable[[], Embedder]] = {
    "static": StaticEmbedder,
    "minilm": MiniLMEmbedder,
    "multilingual": MultilingualEmbedder,
}


def coerce_embedder(value: Any = None) -> Embedder | None:
    """Give the embedder that ``value`` means; None when there is none.

    None: the static embedder when its extra is installed, else no embedder. False or ``"none"``: no embedder.
    ``"static"``, ``"minilm"``, ``"multilingual"``: that one. An object with ``model_id``, ``dimensions`` and ``embed``:
    itself. A sentence-transformers model or any function is wrapped. Raises ``MissingExtra`` for a named embedder that
    is not installed, ``ConfigError`` for anything else.
    """
    if value is None:
        try:
            return StaticEmbedder()
        except MissingExtra:
            return None
    if value is False or value == "none":
        return None
    if isinstance(value, str):
        if value not in _NAMED:
            known = ", ".join([*_NAMED, "none"])
            raise ConfigError(f"unknown embedder {value!r}; known: {known}, or give an embedder object or a function")
        return _NAMED[value]()
    if isinstance(value, type):
        raise ConfigError(f"an embedder is needed, not the class {value.__name__}; write {value.__name__}(...)")
    if isinstance(value, Embedder):
        return value
    if callable(getattr(value, "encode", None)) and hasattr(value, "get_sentence_embedding_dimension"):
        return SentenceTransformerEmbedder(value)
    if callable(value):
        return CallableEmbedder(value)
    raise ConfigError(
        "an embedder has model_id, dimensions and embed(texts, kind); "
        f"{value!r} has not. For an OpenAI client write OpenAIEmbedder(client)"
    )
