"""Compare short statements without a model: their words, and what makes two of them different facts."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from wakeful.terms import index_terms

_NUMBER = re.compile(r"\d+(?:[.,:/\-]\d+)*")
_WORD_NUMBERS = frozenset(
    "zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand".split()
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NEGATIONS = frozenset(
    """not no never none nobody nothing neither nor without cannot nicht kein keine keinen nie niemals ohne pas jamais
    sans aucun nunca sin ningún nem mai senza non не нет никогда без hardly stopped quit""".split()
)
_NEGATION_SIGNS = ("不", "没", "沒", "無", "ない", "ません", "안 ", "없")
_NAME = re.compile(r"[A-ZÀ-ÖØ-Þ][\w’'-]+")
_DATE_WORDS = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december""".split()
)
_FILLERS = frozenset(
    """user person speaker i my me we our you your he she they his her their really very just also actually please
    currently now""".split()
)


@dataclass(frozen=True, slots=True)
class Wording:
    """A statement, ready to be compared."""

    plain: str
    """NFKC, case-folded, one space between words, no punctuation at the ends."""
    terms: frozenset[str]
    numbers: frozenset[str]
    negated: bool
    names: frozenset[str]
    dates: frozenset[str]

    def same_particulars(self, other: Wording) -> bool:
        """Whether numbers, dates, negation and names are equal: only then may two statements be one."""
        return (self.numbers, self.negated, self.names, self.dates) == (
            *(other.numbers, other.negated),
            *(other.names, other.dates),
        )


@lru_cache(maxsize=4096)
def wording(text: str) -> Wording:
    """Read a statement for comparison."""
    folded = unicodedata.normalize("NFKC", text)
    lower = folded.casefold()
    words = _WORD.findall(lower)
    numbers = frozenset(_NUMBER.findall(lower)) | (_WORD_NUMBERS & frozenset(words))
    negated = any(word in _NEGATIONS or word.endswith(("n't", "n’t")) for word in words)
    first = _WORD.search(folded)
    names = frozenset(
        match.group().casefold().removesuffix("'s").removesuffix("’s")
        for match in _NAME.finditer(folded)
        if first is None or match.start() != first.start()
    )
    return Wording(
        plain=" ".join(re.findall(r"\w+(?:[.:,/'+#-]\w+)*[+#]*", lower)),
        terms=frozenset(index_terms(text)),
        numbers=numbers,
        negated=negated or any(sign in folded for sign in _NEGATION_SIGNS),
        names=names - _DATE_WORDS - _FILLERS,
        dates=_DATE_WORDS & frozenset(words),
    )


def overlap(left: Wording, right: Wording) -> float:
    """Share of terms in common (Jaccard index), 0 to 1."""
    union = len(left.terms | right.terms)
    return len(left.terms & right.terms) / union if union else 1.0
