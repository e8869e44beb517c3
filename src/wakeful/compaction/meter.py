"""How many tokens a text is, estimated without a tokenizer and corrected by what providers report.

Rules of the file:

- ``Meter`` is a value. ``count`` is an estimate that never changes during the meter's life, so what was measured once
  stays measured; the correction (``factor``) applies to sums, with ``scaled`` and ``unscaled``.
- One meter decides both when to compact and where to cut.
- A function of the user's, from text to tokens, is used exactly as it is.

``count`` has the shape that ``Dialect.weigh`` asks for.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from wakeful.dialects.protocol import Count, TextKind
from wakeful.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Meter:
    """Counts tokens. Two meters of the same model and function count the same."""

    count: Count
    """Estimate of a text, in this meter's own unit: ``count(text, "text" | "json")``."""
    factor: float = 1.0
    """Real tokens for each estimated one, learnt from usage."""
    exact: bool = False
    """True: ``count`` is the user's own function, and ``factor`` stays 1."""
    samples: int = 0
    """Usage reports that shaped ``factor``."""
    floor: int = 200
    """Estimates below this are too small to learn from, tokens."""

    def scaled(self, estimate: float) -> int:
        """Give the real tokens to expect for a sum of estimates."""
        return round(estimate * self.factor)

    def unscaled(self, tokens: float) -> int:
        """Give the sum of estimates that fills a room of this many real tokens (rounded down)."""
        return int(tokens / self.factor)

    def observe(self, estimated: int, real: int, *, stale: bool = False) -> Meter:
        """Learn from a provider's usage: ``estimated`` (unscaled) and ``real`` input tokens of the same request.

        The same meter when there is nothing to learn: a stale report (of a request from before a compaction), a missing
        or non-positive count, a request too small to tell, or a user's own function.
        """
        if self.exact or stale or estimated < max(1, self.floor) or real <= 0:
            return self
        ratio = min(4.0, max(0.25, real / estimated))
        weight = 1.0 / min(self.samples + 1, 4)
        return replace(self, factor=self.factor + (ratio - self.factor) * weight, samples=self.samples + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How much a tokenizer needs, against OpenAI's ``o200k``: one factor for each kind of content."""

    text: float = 1.0
    json: float = 1.0
    other: float = 1.0
    """Letters outside ASCII."""


LETTER, SIGN = 0.18, 0.60
"""Tokens of an ASCII character: a lower-case letter or space, and anything else (capitals, digits, signs, line ends).

Source: least squares against ``o200k`` over English chat and policy text, tool results and arguments in JSON, shell
output and Python: the mean of each kind comes out between 0.98 and 1.17 of the real count.
"""

ENCODED = 0.66
"""Tokens of a character of encoded data (hex, UUID, base64). Source: ``o200k`` needs 0.57 to 0.68."""

BYTES = ((2, 0.32), (3, 0.70), (4, 1.70))
"""Tokens of a character by its length in UTF-8: two bytes (Cyrillic, Greek, Arabic, accented Latin), three (Chinese,
Japanese, Korean, Indic, Thai), four (emoji). Source: ``o200k`` on sentences of each script; Indic scripts and Thai come
out above the real count."""

FAMILIES: tuple[tuple[str, Family], ...] = (
    (r"claude-(?:instant|[12]\b)", Family(text=1.2, json=1.25, other=1.5)),
    (r"claude", Family(text=1.25, json=1.28, other=1.35)),
    (r"gpt-4o|gpt-4\.[1-9]|gpt-5|chatgpt|o[1-9](?:-|$)", Family()),
    (r"gpt-4|gpt-3\.5", Family(text=1.02, json=1.0, other=1.3)),
    (r"llama", Family(text=1.02, json=1.0, other=1.08)),
    (r"qwen", Family(text=1.08, json=1.08, other=1.1)),
)
"""Factors by model id, the first match counts. Source: tokenizers run over the same texts (English, Python, JSON,
Chinese, Japanese, German, Russian); the mean over the kinds."""

CLAUDE_NEW = Family(text=1.6, json=1.62, other=1.6)
"""Claude from version 4.7 on has another tokenizer. Source: as above."""

UNKNOWN = Family(text=1.1, json=1.1, other=1.2)
"""For a model of no known family: a little above the best, since too low an estimate costs a failed request."""

_CLAUDE_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")


def family_of(model: str | None) -> Family:
    """Give the factors for a model id; provider prefixes such as ``anthropic/`` do not matter."""
    if not model:
        return UNKNOWN
    name = model.lower()
    version = _CLAUDE_VERSION.search(name)
    if version and (int(version[1]), int(version[2] or 0)) >= (4, 7):
        return CLAUDE_NEW
    for pattern, family in FAMILIES:
        if re.search(rf"(?:^|[^a-z0-9])(?:{pattern})", name):
            return family
    return UNKNOWN


def as_meter(value: Any = None, *, model: str | None = None) -> Meter:
    """Make a meter of what the caller has: None (estimate, for the family of ``model``), a ``Meter``, or a function.

    A function takes a text and gives its tokens; it is used exactly. Raises ``ConfigError`` for anything else.
    """
    if value is None:
        return Meter(estimator(family_of(model)))
    if isinstance(value, Meter):
        return value
    if callable(value):
        return Meter(_from_function(value), exact=True)
    raise ConfigError(f"meter is a function from text to tokens, not {type(value).__name__}")


def _from_function(function: Callable[[str], int]) -> Count:
    def count(text: str, kind: TextKind) -> int:  # noqa: ARG001  # the user's function knows no kinds
        return function(text)

    count.function = function  # type: ignore[attr-defined]  # for those who count many texts, ``native.as_texts``
    return count


_PLAIN = (string.ascii_lowercase + " ").encode()
_HIGH = bytes(range(128, 256))


def estimator(family: Family = UNKNOWN) -> Count:
    """Make the estimating count of a family: never 0 for a text that is not empty, linear, no state."""
    factors = {"text": family.text, "json": family.json}
    other = family.other

    def count(text: str, kind: TextKind) -> int:
        if text.isascii():
            size = len(text)
            signs = len(text.encode().translate(None, _PLAIN))
            if signs + signs > size > 64 and text.count(" ") * 12 < size and kind == "text":
                return int(size * ENCODED * factors[kind]) + 1
            return int((size * LETTER + signs * (SIGN - LETTER)) * factors[kind]) + (size > 0)
        return _mixed(text, factors[kind], other)

    return count


def _mixed(text: str, factor: float, other: float) -> int:
    raw = text.encode("utf-8", "surrogatepass")
    ascii_part = raw.translate(None, _HIGH)
    size = len(ascii_part)
    signs = len(ascii_part.translate(None, _PLAIN))
    characters = len(text) - size
    mean = (len(raw) - size) / characters
    (_, two), (_, three), (_, four) = BYTES
    each = two + (mean - 2) * (three - two) if mean <= 3 else three + (mean - 3) * (four - three)
    return int((size * LETTER + signs * (SIGN - LETTER)) * factor + characters * each * other) + 1
