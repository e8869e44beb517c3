"""Tell the values worth keeping by their form: ids, paths, URLs, hashes, e-mails, dates, amounts, names, codes.

Rules of the file:

- General by form, never by a list of known systems: a value is told by its shape (digits, signs inside, capitals, quotes)
  or by where it stands (a leaf of JSON).
- Linear: no pattern may backtrack over a long run.
- A value is given exactly as it stands in its source, so it can be passed to a tool again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any

MOST = 120
"""Characters of the longest value that is kept whole; longer strings are read as text."""

ID, PLAIN, NAME, NUMBER, COMMON, WORD = 0, 1, 2, 3, 4, 5
"""Kinds of a value: an identifier (id, path, URL, e-mail, hash, date, code); a string of JSON; a name or a quoted text of
a person's; a number, amount or time; a common word or flag; a name in prose."""

Shape = tuple[str, int]
"""A value and its kind."""

_EDGES = ".,;:!?()[]{}<>\"'`*|=\\~^&“”‘’«»、。！？"
_DIGIT = re.compile(r"[0-9]")
_INSIDE = re.compile(r"[^\W_][_@/#\\.:+~-]+[^\W_]|://|^[~.]{0,2}/[^\W_]|[a-z][A-Z]")
_RUNS = re.compile(r"[!-~]+|[^\W!-~]+")
_PIECES = re.compile(r"[^\s\"',;{}\[\]()<>=|`]+")
_QUOTED = re.compile(r"\"([^\"\n\\]{3,60})\"|`([^`\n]{2,60})`|“([^”\n]{2,60})”|«([^»\n]{2,60})»|「([^」\n]{1,60})」")
_NUMBER = re.compile(r"[$€£¥+\-−]?\d[\d.,:%]*(?:st|nd|rd|th)?")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?(?:[T ].*)?|\d\d?[./]\d\d?[./]\d{2,4}")
_TIME = re.compile(r"[\d:.]+(?:[+-]\d+|Z|am|pm)?", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_LONG_TOKEN = 48

NAMING_KEY = re.compile(
    r"(?:^|_|(?<=[a-z])(?=[A-Z]))(?:id|ids|uuid|guid|key|number|code|ref|sku|path|file|url|uri|email)s?$", re.I
)
"""Keys whose value names a thing, by the conventions of APIs: ``id``, ``order_id``, ``orderId``, ``flight_number``."""

UNITS = frozenset(
    "g kg mg t m km cm mm mi ft in s ms min mins minutes h hr hrs hours days weeks months years W kW kWh V A Hz kHz MHz "
    "GHz B kB KB MB GB TB KiB MiB GiB TiB bytes bits bps Mbps Gbps km/h mph % percent USD EUR GBP CHF JPY CNY INR dollars "
    "euros tokens lines rows items px pt dpi °C °F °".split()
)
"""Words after a number that belong to it."""


def kind_of_value(value: str) -> int:
    """Tell the kind of a short string that stands alone (a leaf of JSON, an argument)."""
    if value.isalpha():
        if value.islower():
            return COMMON
        return NAME if value.istitle() or value.isupper() else ID
    if not _DIGIT.search(value):
        if " " not in value:
            return ID if _INSIDE.search(value) else COMMON if value.islower() else PLAIN
        return COMMON if value.islower() and value.replace(" ", "").isalpha() else NAME if value.istitle() else PLAIN
    if _DATE.fullmatch(value):
        return ID if len(value) <= 10 else PLAIN
    if _NUMBER.fullmatch(value):
        return ID if len(value) >= 6 and value.isdigit() else NUMBER
    return PLAIN if " " in value else NUMBER if _TIME.fullmatch(value) else ID


@lru_cache(maxsize=8192)
def shape_of(token: str) -> Shape | None:
    """Tell whether a token of prose is a value; None for a plain word."""
    if token.isalpha() and token.islower():
        return None
    word = token.strip(_EDGES)
    if len(word) < 2 or len(word) > MOST:
        return None
    if _DIGIT.search(word):
        if _NUMBER.fullmatch(word) and not _DATE.fullmatch(word):
            return word, NUMBER
        return word, NUMBER if _TIME.fullmatch(word) and not _DATE.fullmatch(word) else ID
    if _INSIDE.search(word):
        return word, ID
    if word[0].isupper() and "'" not in word and "’" not in word:
        return word, NAME if word.isupper() and len(word) > 2 else WORD
    return None


def tokens_of(text: str) -> list[str]:
    """Split a text into tokens; a long one without spaces (dense JSON, code) is split at its signs."""
    found = _pieces(_split(text))
    return found if isinstance(found, list) else list(found)


def distinct_tokens(text: str) -> dict[str, None]:
    """Give the same, each token once, in the order in which it first stands."""
    return dict.fromkeys(_pieces(dict.fromkeys(_split(text))))


def _split(text: str) -> list[str]:
    return text.split() if text.isascii() else _RUNS.findall(text)


def _pieces(tokens: Collection[str]) -> Iterable[str]:
    if not tokens or max(map(len, tokens)) <= _LONG_TOKEN:
        return tokens
    out: list[str] = []
    for token in tokens:
        if len(token) > _LONG_TOKEN and "://" not in token:
            out += _PIECES.findall(token)
        else:
            out.append(token)
    return out


def quoted(text: str) -> list[str]:
    """Give the short quoted texts of a text, in any quotes."""
    if '"' in text or "`" in text or not text.isascii():
        return [next(filter(None, groups)) for groups in _QUOTED.findall(text)]
    return []


def decode(text: str) -> Any:
    """Decode a text that is a JSON object or list; None for any other text."""
    if text[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if type(value) in (dict, list) else None


def has_digit(text: str) -> bool:
    """Whether an ASCII digit stands in the text."""
    return _DIGIT.search(text) is not None


def sentences(text: str) -> Iterator[str]:
    """Split a text into sentences and lines, white space folded."""
    for piece in _SENTENCE.split(text):
        folded = " ".join(piece.split())
        if folded:
            yield folded
