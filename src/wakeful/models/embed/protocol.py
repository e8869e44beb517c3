"""What an embedder is, and the vector form that every store keeps.

Rules of the file:

- A vector is little-endian float32, of length 1. A text with nothing to embed (blank) has the zero vector, whose cosine
  to anything is 0.
- ``model_id`` is a fingerprint: two embedders share it only when their vectors may be compared. Stores refuse to mix.
- An embedder keeps no state that changes its answers: the same text gives the same bytes, alone or in a batch.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from wakeful.errors import ModelError

Kind: TypeAlias = Literal["query", "document"]
"""What the text is for; models that were trained with prefixes tell the two apart."""


@runtime_checkable
class Embedder(Protocol):
    """Turn texts into unit vectors."""

    @property
    def model_id(self) -> str:
        """Fingerprint of the model and of how its vectors are made."""

    @property
    def dimensions(self) -> int:
        """Numbers in a vector."""

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> list[bytes]:
        """Embed texts: one vector each, in order, ``4 * dimensions`` bytes."""

    async def aembed(self, texts: Sequence[str], kind: Kind = "document") -> list[bytes]:
        """Embed texts without blocking the event loop."""


class LocalEmbedder:
    """The awaited half of an embedder that computes in this process: a worker thread does the work."""

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> list[bytes]:
        """Embed texts; subclasses say how."""
        raise NotImplementedError

    async def aembed(self, texts: Sequence[str], kind: Kind = "document") -> list[bytes]:
        """Embed texts in a worker thread."""
        import asyncio

        return await asyncio.to_thread(self.embed, texts, kind)


def zero(dimensions: int) -> bytes:
    """Give the vector of a text with nothing to embed."""
    return bytes(4 * dimensions)


def pack(vector: Iterable[Any], *, source: str) -> bytes:
    """Scale a vector to length 1 and write it as little-endian float32.

    ``source`` names the model in an error. Raises ``ModelError`` for a value that is not a finite number.
    """
    try:
        values = [float(value) for value in vector]
    except (TypeError, ValueError) as error:
        raise ModelError(f"{source} gave something that is not a vector of numbers: {error}") from error
    length = math.sqrt(math.fsum(value * value for value in values)) if values else 0.0
    if not values or not math.isfinite(length):
        raise ModelError(f"{source} gave a vector that is empty or not finite")
    raw = array("f", [value / length for value in values] if length else values)
    if sys.byteorder == "big":
        raw.byteswap()
    return raw.tobytes()


def clean(text: str) -> str:
    """Give the text as valid Unicode: lone surrogates and NUL become spaces, which mean nothing to a model."""
    if "\x00" in text:
        text = text.replace("\x00", " ")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join(" " if 0xD800 <= ord(character) <= 0xDFFF else character for character in text)
    return text
