"""Tell by a text's terms whether it tells a time: "yesterday", "in May", "2023", 昨天, 5月3日.

Judged term by term, so an index can keep the answer beside its rows and no text is read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from wakeful.terms import index_terms

TELLS = 1
"""The term tells a time by itself."""
UNIT = 2
"""The term is a unit that tells a time beside a number."""
NUMBER = 4

_WORDS = frozenset(
    term
    for word in (
        "yesterday today tonight tomorrow ago last next recently since just weekend week month year "
        "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
        "september october november december gestern heute morgen woche monat jahr hier demain semaine "
        "ayer mañana semana mes año"
    ).split()
    for term in index_terms(word)
) | frozenset(
    "昨天 今天 明天 前天 去天 昨日 今日 明日 上周 下周 上月 下月 个月 去年 今年 明年 先週 来週 先月 来月".split()
)
"""Terms as the index has them. Scripts without spaces are indexed by pairs."""
_UNITS = frozenset("年月日")


@lru_cache(maxsize=65536)
def time_class(term: str) -> int:
    """What a term says of time: 0, or some of ``TELLS``, ``UNIT``, ``NUMBER``."""
    if term in _WORDS:
        return TELLS
    if term in _UNITS:
        return UNIT
    if term.isdecimal():
        return NUMBER | (TELLS if len(term) == 4 and term[:2] in ("19", "20") else 0)
    return 0


def time_classes(terms: Iterable[str]) -> list[int]:
    """What each term says of time, those left out that say nothing."""
    return [kind for kind in map(time_class, terms) if kind]


def tell(classes: Iterable[int]) -> bool:
    """Whether terms of these classes together tell a time."""
    found = 0
    for kind in classes:
        found |= kind
    return bool(found & TELLS) or found & (UNIT | NUMBER) == UNIT | NUMBER


def tells_time(terms: Iterable[str]) -> bool:
    """Whether a text of these terms tells a time."""
    return tell(time_classes(terms))
