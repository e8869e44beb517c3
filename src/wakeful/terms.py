"""Turn text into the terms that full-text indexes keep and queries ask for.

One analysis for every store and every query, in any language:

- Unicode is folded (NFKC, case folding, accents of Latin letters, invisible marks), so NFC and NFD, full width and
  half width, ``İ`` and ``i`` meet. The text itself is never changed, only what is looked up.
- Words of scripts with spaces are stemmed by the English rules; a few function words are left out.
- Scripts without spaces (Han, Kana, Hangul, Thai, Lao, Khmer, Burmese) give overlapping pairs of characters; an index
  keeps the single characters too, so a query of one character finds its text.
- Identifiers and numbers with signs inside (``node.js``, ``CN-A10293``, ``3:30``, ``2024-03-01``, ``max_tokens``,
  ``C++``) are kept whole and in parts.

A term holds no white space and no double quotes. Tokens are cached, so the cost is that of words not met before.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import chain

from wakeful.stems import english_stem

STOP_WORDS = frozenset(
    """a an and are as at be been but by did do does for from had has have he her him his i if in is it its me my of on
    or our she so than that the their them then there these they this to us was we were what when which who will with
    would you your""".split()
)
"""English function words that neither the index nor a query keeps: they stand in most texts and tell none apart."""

MAX_TERM = 64
"""Characters. A longer run of letters (encoded data) is cut, so one text can't bloat the index with one term."""

_INVISIBLE = re.compile(
    "[\u00ad\u0300-\u036f\u0610-\u061a\u0640\u064b-\u065f\u0670\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
_ACCENT = re.compile("([a-zα-ω])[\u0300-\u036f]+")
_LETTERS = str.maketrans(
    {"ı": "i", "ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ς": "σ", "’": "'", "ʼ": "'", "‐": "-", "‑": "-"}
)

_NO_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
_SYMBOLS = "\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_TOKEN = re.compile(
    rf"[{_NO_SPACES}]+|[^\W{_NO_SPACES}]+(?:[.\-_:@'&/][^\W{_NO_SPACES}]+)*(?:\+\+|#(?!\w))?|[{_SYMBOLS}]"
)
_ASCII_TOKEN = re.compile(r"[a-z0-9_]+(?:[.\-:@'&/][a-z0-9_]+)*(?:\+\+|#(?!\w))?")
_PARTS = re.compile(r"[^\W_]+")
_SIGN = re.compile(r"[^\w]|_")
_DIGIT = re.compile(r"\d")
_SPACELESS = re.compile(rf"[{_NO_SPACES}]")
_CAMEL = re.compile(r"[A-Z](?<=[a-z].)")
_CAMEL_WORD = re.compile(r"\w*[a-z][A-Z]\w*")
_CAMEL_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def fold(text: str) -> str:
    """Fold a text for matching: what looks or reads the same becomes the same."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold()
    text = unicodedata.normalize("NFKD", text)
    text = unicodedata.normalize("NFC", _ACCENT.sub(r"\1", text))
    return _INVISIBLE.sub("", text.translate(_LETTERS))


def index_terms(text: str) -> list[str]:
    """Give the terms of a text for an index, in order and with repetitions."""
    return _terms(text, _index_token)


def query_terms(text: str) -> list[str]:
    """Give the terms that a query asks for, each once, in order. Empty for a text of function words alone."""
    return list(dict.fromkeys(_terms(text, _query_token)))


def _terms(text: str, terms_of: Callable[[str], tuple[str, ...]]) -> list[str]:
    folded = fold(text)
    pattern = _ASCII_TOKEN if folded.isascii() else _TOKEN
    out = list(chain.from_iterable(map(terms_of, pattern.findall(folded))))
    if folded != text and _CAMEL.search(text):
        out += _camel_parts(text)
    return out


@lru_cache(maxsize=65536)
def _index_token(token: str) -> tuple[str, ...]:
    return _token_terms(token, True)


@lru_cache(maxsize=16384)
def _query_token(token: str) -> tuple[str, ...]:
    return _token_terms(token, False)


def _token_terms(token: str, singles: bool) -> tuple[str, ...]:
    """Terms of one folded token: a word, an identifier, or a run of a script without spaces."""
    if _SPACELESS.match(token):
        return _pairs(token, singles)
    if token.isalpha():
        return () if token in STOP_WORDS else (english_stem(token[:MAX_TERM]),)
    if not _SIGN.search(token):
        return (token[:MAX_TERM],)
    parts = _PARTS.findall(token)
    if not parts:
        return (token,)
    if "'" in token and len(parts) == 2 and len(parts[1]) <= 2:
        # ana's, don't, we'll: the word without its ending; n't joins its word so that it stays one.
        parts = [parts[0] + parts[1]] if parts[1] == "t" else parts[:1]
        token = ""
    terms = [] if not token or not _is_identifier(token) else [token[:MAX_TERM]]
    for part in parts:
        if part not in STOP_WORDS:
            terms.append(english_stem(part[:MAX_TERM]) if part.isalpha() else part[:MAX_TERM])
    return tuple(terms)


def _is_identifier(token: str) -> bool:
    """Whether a token with signs inside is looked up whole: not ``well-known`` or ``and/or``."""
    return "/" not in token and (_DIGIT.search(token) is not None or re.search(r"[._@#+:&]", token) is not None)


def _pairs(run: str, singles: bool) -> tuple[str, ...]:
    """Overlapping pairs of a run; a run of one character is itself."""
    if len(run) == 1:
        return (run,)
    pairs = tuple(run[place : place + 2] for place in range(len(run) - 1))
    return pairs + tuple(run) if singles else pairs


def _camel_parts(text: str) -> list[str]:
    """Parts of ``camelCase`` words, beside the whole that the folded text gives."""
    out: list[str] = []
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    for word in _CAMEL_WORD.findall(text):
        for part in _CAMEL_PART.findall(word):
            out += _token_terms(part.lower(), False)
    return out
