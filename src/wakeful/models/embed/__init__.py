"""Embedders: text in, unit vectors out, offline unless the user brings a hosted client.

| name | what | extra | dimensions |
|---|---|---|---|
| ``static`` | word vectors averaged: the light default | ``memory`` | 256 |
| ``minilm`` | all-MiniLM-L6-v2, int8, on one thread | ``minilm`` | 384 |
| ``multilingual`` | multilingual-e5-small, 4 bits | ``multilingual`` | 384 |

Beside them: ``OpenAIEmbedder`` for any OpenAI-compatible client, ``SentenceTransformerEmbedder``, and
``CallableEmbedder`` for any function. ``coerce_embedder`` turns what a user writes into one of them.
"""

from __future__ import annotations

from wakeful.models.embed.choose import coerce_embedder
from wakeful.models.embed.hosted import CallableEmbedder, OpenAIEmbedder, SentenceTransformerEmbedder
from wakeful.models.embed.minilm import MiniLMEmbedder
from wakeful.models.embed.multilingual import MultilingualEmbedder
from wakeful.models.embed.protocol import Embedder, Kind
from wakeful.models.embed.static import StaticEmbedder

__all__ = [
    "CallableEmbedder",
    "Embedder",
    "Kind",
    "MiniLMEmbedder",
    "MultilingualEmbedder",
    "OpenAIEmbedder",
    "SentenceTransformerEmbedder",
    "StaticEmbedder",
    "coerce_embedder",
]
