"""What a model can hold and what it costs: the protocol of a catalogue, and its records.

The catalogue itself lives with the models; rooms and engine know only this protocol, so a user's own table serves as
well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from wakeful.needs import Usage

MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """List prices of a model, in US dollars per million tokens."""

    input: float
    """Input that is neither read from nor written to the prompt cache."""
    output: float
    cache_read: float | None = None
    """Input read from the prompt cache; None: not told, and then charged as ``input``."""
    cache_write: float | None = None
    """Input written to the prompt cache; None: writing has no price of its own, and is charged as ``input``."""

    @property
    def read_ratio(self) -> float:
        """Price of a cached token as a share of an uncached one; 1.0 when caching saves nothing or is not priced."""
        return 1.0 if self.cache_read is None or self.input <= 0 else self.cache_read / self.input

    @property
    def write_ratio(self) -> float:
        """Price of writing a token to the cache as a share of an uncached one."""
        return 1.0 if self.cache_write is None or self.input <= 0 else self.cache_write / self.input

    def cost(self, usage: Usage) -> float:
        """Cost of one call in US dollars."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        plain = max(0, usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens)
        return (
            plain * self.input
            + usage.cached_tokens * read
            + usage.cache_write_tokens * write
            + usage.output_tokens * self.output
        ) / MILLION


@runtime_checkable
class ModelCatalog(Protocol):
    """Looks models up by id. Every answer is None for a model that it does not know."""

    def context_window(self, model: str) -> int | None:
        """Tokens that the model's window holds, input and output together where the provider counts so."""
        ...

    def output_limit(self, model: str) -> int | None:
        """Most tokens that the model writes in one reply."""
        ...

    def prices(self, model: str) -> Prices | None:
        """The model's list prices."""
        ...
