"""Read a query: its terms, what it asks for, whom it names, which time it means."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from wakeful.terms import query_terms

_WHEN = re.compile(
    r"^\W*(?:when|how long|since when|until (?:when|what)|by when|(?:on |in )?(?:what|which) (?:date|day|year|month|time)\b"
    r"|wann|quand|cuándo|quando|когда|什么时候|何时|いつ|언제)",
    re.IGNORECASE,
)
_BROAD = re.compile(
    r"\b(?:everything|all (?:about|of|the)|summari[sz]e|summary|overview|list (?:all|every)|both|in common|"
    r"compare|relat(?:ed|ion|ionship)|connect(?:ed|ion)|alles|tout|todo)\b|全部|所有|すべて",
    re.IGNORECASE,
)
_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = re.compile(
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?({'|'.join(_MONTHS)})(?:\s+(\d{{1,2}})(?:st|nd|rd|th)?\b)?,?"
    r"(?:\s+(?:of\s+)?(\d{4}))?\b",
    re.IGNORECASE,
)
_ISO = re.compile(r"\b(\d{4})-(\d{2})(?:-(\d{2}))?\b")
_YEAR = re.compile(r"\bin ((?:19|20)\d\d)\b")
_AGO = re.compile(r"\b(\d+|a|an|one|two|three|four|five|six)\s+(day|week|month|year)s?\s+ago\b", re.IGNORECASE)
_RELATIVE = re.compile(r"\b(yesterday|today|(?:last|this|past) (?:week|month|year))\b", re.IGNORECASE)
_COUNT = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time, ``start`` inclusive, ``end`` exclusive, UTC."""

    start: datetime
    end: datetime

    def holds(self, moment: datetime) -> bool:
        """Whether the moment lies in it."""
        return self.start <= moment < self.end


@dataclass(frozen=True, slots=True)
class Query:
    """What a query is made of."""

    text: str
    terms: tuple[str, ...]
    """Analysed as the store's index is, each once. Empty: function words alone, or nothing."""
    asks_when: bool = False
    broad: bool = False
    """It asks for several things at once, so activation may reach further."""
    period: Period | None = None


def read_query(text: str, at: datetime) -> Query:
    """Read a query; ``at`` is the reader's present, for "last week" and the like."""
    return Query(
        text=text,
        terms=tuple(query_terms(text)),
        asks_when=_WHEN.match(text) is not None,
        broad=_BROAD.search(text) is not None,
        period=period_of(text, at),
    )


def period_of(text: str, at: datetime) -> Period | None:
    """Find the time that a text means: a date, a month, a year, or a distance from ``at``. None: it names none.

    A year or a month alone is the whole of it, never its first day.
    """
    if match := _ISO.search(text):
        return _date(int(match[1]), int(match[2]), int(match[3]) if match[3] else None)
    if match := _MONTH.search(text):
        month = _MONTHS.index(match[2].lower()) + 1
        day = match[1] or match[3]
        if match[4]:
            return _date(int(match[4]), month, int(day) if day else None)
    if match := _YEAR.search(text):
        return _date(int(match[1]), None, None)
    today = datetime(at.year, at.month, at.day, tzinfo=UTC)
    if match := _AGO.search(text):
        unit = _DAYS[match[2].lower()]
        days = (_COUNT.get(match[1].lower()) or int(match[1][:4])) * unit
        slack = timedelta(days=max(1, unit // 2))
        centre = _back(today, days)
        return Period(centre - (slack if unit > 1 else timedelta(0)), centre + slack) if centre else None
    if match := _RELATIVE.search(text):
        return _relative(match[1].lower(), today)
    return None


def _back(today: datetime, days: int) -> datetime | None:
    try:
        return today - timedelta(days=days)
    except OverflowError:
        return None


def _date(year: int, month: int | None, day: int | None) -> Period | None:
    try:
        if month is None:
            return Period(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))
        start = datetime(year, month, day or 1, tzinfo=UTC)
    except ValueError:
        return None
    return Period(start, start + timedelta(days=1 if day else monthrange(year, month)[1]))


def _relative(words: str, today: datetime) -> Period:
    day = timedelta(days=1)
    if words == "today":
        return Period(today, today + day)
    if words == "yesterday":
        return Period(today - day, today)
    which, unit = words.split()
    if which == "past":
        return Period(today - timedelta(days=_DAYS[unit]), today + day)
    if unit == "week":
        monday = today - timedelta(days=today.weekday())
        return Period(monday - 7 * day, monday) if which == "last" else Period(monday, monday + 7 * day)
    if unit == "month":
        first = today.replace(day=1)
        if which == "last":
            return Period((first - day).replace(day=1), first)
        return Period(first, first + timedelta(days=monthrange(first.year, first.month)[1]))
    year = today.year - (which == "last")
    return Period(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))
