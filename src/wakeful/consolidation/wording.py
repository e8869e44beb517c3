"""Compare short statements without a model: their words, and the parts that make two of them different facts."""

from __future__ import annotations

import re
import unicodedata

from wakeful.terms import STOP_WORDS

_TOKEN = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
NEGATIONS = frozenset(
    """not no never none without cannot can't don't doesn't didn't isn't aren't wasn't won't nor
    nicht kein keine nie ohne pas jamais sans aucun nunca sin ningún não nem mai senza non
    не нет никогда без ні ніколи""".split()
)
NEGATION_PARTS = tuple("不 没 無 ない ません 안 없".split())
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-ZÀ-ÖØ-ÞА-ЯІЇЄ][\w'’-]+", re.MULTILINE)


def folded(text: str) -> str:
    """The text for comparison: NFKC, case-folded, punctuation and runs of white space dropped."""
    return " ".join(_TOKEN.findall(unicodedata.normalize("NFKC", text).casefold()))


FILLERS = frozenset("a an the that really very just also actually please currently now quite so then".split())
"""Words that may be missing without another fact being stated. No prepositions and no verbs: ``to`` and ``from``, ``is``
and ``was`` make two facts."""


def gist(text: str) -> tuple[str, ...]:
    """The words in their order, without fillers and without the ``s`` at a word's end: equal ones state one fact."""
    kept = (word for word in folded(text).split() if word not in FILLERS)
    return tuple(word[:-1] if len(word) > 3 and word.endswith("s") and word.isalpha() else word for word in kept)


def words(text: str) -> frozenset[str]:
    """Words and numbers of a text, folded."""
    return frozenset(folded(text).split())


def overlap(left: frozenset[str], right: frozenset[str]) -> float:
    """Jaccard index, 0 to 1."""
    union = len(left | right)
    return len(left & right) / union if union else 1.0


def signature(text: str) -> tuple[frozenset[str], bool, frozenset[str]]:
    """What must be equal before two statements may be one: numbers and dates, negation, names in mid-sentence."""
    plain = unicodedata.normalize("NFKC", text)
    tokens = folded(text).split()
    numbers = frozenset(token for token in tokens if any(character.isdigit() for character in token))
    negated = any(token in NEGATIONS or token.endswith("n't") for token in tokens)
    negated = negated or any(part in plain for part in NEGATION_PARTS)
    names = frozenset(name.casefold() for name in _NAME.findall(plain))
    return numbers, negated, names


def entities(text: str) -> tuple[str, ...]:
    """Names, mail addresses and codes that a text mentions, in order, each once.

    A name is a run of capitalised words in mid-sentence (or at its start when it has two words or more), without a
    function word at its beginning; a code is a
    token of letters and digits. Scripts without capitals give codes and addresses only.
    """
    found: dict[str, None] = {}
    for match in re.finditer(r"[\w.+-]+@[\w-]+\.[\w.-]+\w", text):
        found[match.group()] = None
    for match in re.finditer(r"\b(?=\w*\d)(?=\w*[A-Za-z])[\w-]{3,}\b", text):
        found[match.group()] = None
    run = r"[A-ZÀ-ÖØ-ÞА-ЯІЇЄ][\w'’-]+"
    for match in re.finditer(rf"{run}(?:\s+{run})+", text):
        words_ = match.group().split()
        while words_ and words_[0].casefold() in STOP_WORDS:
            del words_[0]
        if words_ and (len(words_) > 1 or words_[0].lower() not in _COMMON):
            found[" ".join(words_)] = None
    for match in _NAME.finditer(text):
        name = match.group()
        if name.lower() not in _COMMON and not any(name in longer for longer in found):
            found[name] = None
    return tuple(found)


_COMMON = frozenset(
    "i i'm i'll i've i'd monday tuesday wednesday thursday friday saturday sunday ok okay yes no".split()
)
