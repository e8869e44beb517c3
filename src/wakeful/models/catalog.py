"""The model catalogue: windows, output limits and list prices, from a dated snapshot that the package carries.

The snapshot (``catalog.json``) is made by ``tools/make_catalog.py`` from LiteLLM's table (MIT, see
``catalog.NOTICE.txt``). It is read at the first look-up. What a user says wins over it: ``window=`` on a call, or
``with_model``. A model that it does not know is None, never a guess from a similar name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

from wakeful.errors import ConfigError
from wakeful.pricing import Prices

REGIONS = re.compile(r"^(us|eu|apac|global|us-gov|jp|au|ca|sa|me|af)\.")
"""Prefixes of Bedrock's inference profiles."""

VENDORS = re.compile(
    r"^(anthropic|amazon|meta|mistral|cohere|ai21|deepseek|openai|google|qwen|moonshotai?|zai|minimax)\."
)
"""Vendor prefixes of Bedrock's model ids."""

REVISION = re.compile(r"-v\d+(:\d+)?(:\d+k)?$|:\d+(:\d+k)?$")
"""Bedrock's revision suffix, such as ``-v1:0``."""

VARIANT = re.compile(r":(free|beta|thinking|extended|nitro|floor|online|exacto)$")
"""OpenRouter's variants of a model."""

DATE = re.compile(r"-(20\d{6}|20\d{2}-\d{2}-\d{2}|\d{4}|\d{2}-20\d{2}|\d{2}-\d{2}|00\d)$")
"""A dated or numbered snapshot of a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What the catalogue knows of a model; None: not known."""

    context_window: int | None = None
    """Tokens. Where the provider limits the input apart from the output, the input's limit."""
    output_limit: int | None = None
    """Tokens of one reply."""
    prices: Prices | None = None
    """List prices at the shortest context length, without batch or priority terms."""


def spellings(model: str) -> Iterator[str]:
    """Give the ways in which this id may stand in a catalogue, the most exact first.

    Prefixes of gateways, Bedrock, Vertex and fine-tuning are taken off, then variants and revisions, then dates;
    nothing else is.
    """
    name = model.strip().lower()
    if name.startswith("ft:"):
        name = name.split(":")[1]
    seen: set[str] = set()
    for base in _unprefixed(name):
        for spelling in _shorter(base):
            for form in (spelling, spelling.replace(".", "-")):
                if form and form not in seen:
                    seen.add(form)
                    yield form


def _unprefixed(name: str) -> Iterator[str]:
    yield name
    tail = name
    while "/" in tail:
        tail = tail.split("/", 1)[1]
        yield tail
    bare = VENDORS.sub("", REGIONS.sub("", tail))
    if bare != tail:
        yield bare


def _shorter(name: str) -> Iterator[str]:
    yield name
    name = REVISION.sub("", VARIANT.sub("", name)).replace("@", "-")
    yield name
    name = re.sub(r"-(latest|default)$", "", name)
    yield name
    undated = DATE.sub("", name)
    if undated != name:
        yield undated


@dataclass(frozen=True, slots=True)
class Catalog:
    """A catalogue of models: a ``ModelCatalog``.

    ``models``: facts by id, in lower case; ``source`` and ``date`` say where they are from. Look-ups understand dated
    ids and the prefixes of gateways, Bedrock and Vertex.
    """

    models: Mapping[str, ModelFacts] = field(default_factory=dict)
    source: str = ""
    date: str = ""
    """Day of the snapshot, ISO 8601."""

    @classmethod
    def default(cls) -> Catalog:
        """Give the snapshot that the package carries; it is read once."""
        return _snapshot()

    def with_model(
        self,
        model: str,
        *,
        context_window: int | None = None,
        output_limit: int | None = None,
        prices: Prices | None = None,
    ) -> Catalog:
        """Give a catalogue that also knows this model; what is left out stays as it was known.

        Raises ``ConfigError`` for a window or limit below 1.
        """
        for name, value in (("context_window", context_window), ("output_limit", output_limit)):
            if value is not None and value < 1:
                raise ConfigError(f"{name} of {model!r} must be at least 1 token, not {value}")
        old = self.facts(model) or ModelFacts()
        facts = ModelFacts(
            context_window=old.context_window if context_window is None else context_window,
            output_limit=old.output_limit if output_limit is None else output_limit,
            prices=old.prices if prices is None else prices,
        )
        return replace(self, models={**self.models, model.strip().lower(): facts})

    def facts(self, model: str) -> ModelFacts | None:
        """Give all that is known of a model, or None."""
        for name in spellings(model):
            found = self.models.get(name)
            if found is not None:
                return found
        return None

    def context_window(self, model: str) -> int | None:
        """Give the tokens that the model's window holds; None: not known."""
        found = self.facts(model)
        return found.context_window if found is not None else None

    def output_limit(self, model: str) -> int | None:
        """Give the most tokens that the model writes in one reply; None: not known."""
        found = self.facts(model)
        return found.output_limit if found is not None else None

    def prices(self, model: str) -> Prices | None:
        """Give the model's list prices; None: not known."""
        found = self.facts(model)
        return found.prices if found is not None else None


@cache
def _snapshot() -> Catalog:
    raw = resources.files("wakeful.models").joinpath("catalog.json").read_text(encoding="utf-8")
    data = json.loads(raw)
    models = {name: _facts(row) for name, row in data["models"].items()}
    return Catalog(models, source=data["source"], date=data["date"])


def _facts(row: list[Any]) -> ModelFacts:
    """Read a row: window, output limit, then input, output, cache read and cache write in dollars per million."""
    window, limit, input_price, output_price, read, write = row
    prices = None
    if input_price is not None and output_price is not None:
        prices = Prices(input=input_price, output=output_price, cache_read=read, cache_write=write)
    return ModelFacts(context_window=window, output_limit=limit, prices=prices)
