"""Find the values worth keeping in a text or a tool result: ids, paths, URLs, dates, amounts, names, codes.

Rules of the file:

- General by form, never by a list of known systems: a value is told by its shape (digits, signs inside, capitals, quotes)
  or by where it stands (a leaf of JSON).
- Linear: a text is split once, JSON is parsed once by the C parser. No pattern may backtrack over a long run.
- A value is given exactly as it stands in its source, so it can be passed to a tool again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

MOST = 120
"""Characters of the longest value that is kept whole; longer strings are read as text."""

_EDGES = ".,;:!?()[]{}<>\"'`*|=\\~^&"
_DIGIT = re.compile(r"[0-9]")
_INSIDE = re.compile(r"[^\W_][_@/#\\.:+~-]+[^\W_]|://|^[~.]{0,2}/[^\W_]|[a-z][A-Z]")
_SPLIT = re.compile(r"[^\s\"',;{}\[\]()<>=|`]+")
_RUNS = re.compile(r"[!-~]+|[^\W!-~]+")
_QUOTED = re.compile(r"\"([^\"\n\\]{3,60})\"|`([^`\n]{2,60})`|“([^”\n]{2,60})”|«([^»\n]{2,60})»|「([^」\n]{1,60})」")
_NUMBER = re.compile(r"[$€£¥+\-−]?\d[\d.,:%]*(?:st|nd|rd|th)?")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?(?:[T ].*)?|\d\d?[./]\d\d?[./]\d{2,4}")
_UNIT = re.compile(
    r"(?:[kKMGTmµn]?(?:[gsmlWVAJBNbF]|Hz|bytes|bit|bps|ol)|[kMGT]i?B(?:/s)?|km/h|mph|min(?:ute)?s?|h|hrs?|hours?|days?|weeks?"
    r"|months?|years?|sec(?:ond)?s?|dpi|px|pt|em|rem|in|ft|lbs?|oz|%|percent|USD|EUR|GBP|CHF|JPY|tokens?|°[CF])"
)
_TIME = re.compile(r"[\d:.]+(?:[+-]\d+|Z|am|pm)?", re.IGNORECASE)
_WORD = re.compile(r"[a-z][a-z ]*")

ID, PLAIN, NAME, NUMBER, COMMON = 0, 1, 2, 3, 4
"""Kinds of a value, most telling first: an identifier (id, path, URL, e-mail, hash, date); a string of JSON; a name or
a quoted text; a number; a common word or flag."""

Emit = Callable[[str, str, int], None]
"""Takes a value, the key it stands under ("" for text) and its kind."""


def kind_of_value(value: str) -> int:
    """Tell the kind of a short value by its form."""
    if _DIGIT.search(value):
        if _DATE.fullmatch(value):
            return ID
        if _NUMBER.fullmatch(value):
            return ID if len(value) >= 6 and value.isdigit() else NUMBER
        return PLAIN if " " in value else NUMBER if _TIME.fullmatch(value) else ID
    if " " not in value and _INSIDE.search(value):
        return ID
    if value.isupper() and len(value) > 1:
        return NAME
    if _WORD.fullmatch(value):
        return COMMON
    return NAME if value[:1].isupper() else PLAIN


def from_json(value: Any, emit: Emit, key: str = "") -> None:
    """Emit the leaves of decoded JSON, each under its nearest key, and keys that are identifiers themselves."""
    kind = type(value)
    if kind is dict:
        for name, item in value.items():
            if item is None or item is True or item is False or item == "":
                continue
            if type(name) is str and _DIGIT.search(name):
                emit(name, key, ID)
                from_json(item, emit, key)
            else:
                from_json(item, emit, str(name))
    elif kind is list:
        for item in value:
            from_json(item, emit, key)
    elif kind is str:
        if len(value) <= MOST and "\n" not in value:
            if value.strip():
                emit(value, key, kind_of_value(value))
        else:
            from_text(value, emit)
    elif kind is int or kind is float:
        text = repr(value)
        emit(text, key, ID if kind is int and len(text) >= 6 else NUMBER)


def decode(text: str) -> Any:
    """Decode a text that is a JSON object or list; None for any other text."""
    if text[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if type(value) in (dict, list) else None


def from_text(text: str, emit: Emit, *, names: bool = True) -> None:
    """Emit the values of free text, in order. ``names`` False: only identifiers and numbers (code, logs)."""
    if names and ('"' in text or "`" in text or not text.isascii()):
        for match in _QUOTED.finditer(text):
            emit(match.group(match.lastindex or 0), "", NAME)
    tokens = text.split() if text.isascii() else _RUNS.findall(text)
    before = ""
    pending = ""
    for token in tokens:
        if len(token) > 48 and "://" not in token:
            for piece in _SPLIT.findall(token):
                _token(piece, "", emit, False)
            before = ""
            continue
        pending = _token(token, before, emit, names, pending)
        before = token


def _token(token: str, before: str, emit: Emit, names: bool, pending: str = "") -> str:
    """Emit a token that is a value; gives a number that may take the next token as its unit."""
    word = token.strip(_EDGES)
    if pending and _UNIT.fullmatch(word):
        emit(f"{pending} {word}", "", NUMBER)
    if len(word) < 2 or len(word) > MOST:
        return ""
    if _DIGIT.search(word):
        if _NUMBER.fullmatch(word) and not _DATE.fullmatch(word):
            if before[:1].isupper() and before.isalpha():
                emit(f"{before} {word}", "", NUMBER)
            else:
                emit(word, "", NUMBER)
            return word if token[-1:] not in ".;:!?" else ""
        emit(word, "", ID)
    elif _INSIDE.search(word):
        emit(word, "", ID)
    elif (
        names
        and word[0].isupper()
        and "'" not in word
        and "’" not in word
        and (word.isupper() or (before and before[-1] not in ".!?:\n*-#"))
    ):
        emit(word, "", NAME)
    return ""


def sentences(text: str) -> Iterator[str]:
    """Split a text into sentences and lines, white space folded."""
    for piece in _SENTENCE.split(text):
        folded = " ".join(piece.split())
        if folded:
            yield folded


_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
