"""Read what a short statement claims: of whom, which attribute, which value, since or until when.

Two facts can contradict each other only when they claim an *exclusive* attribute (one value at a time) of the same
subject; everything else stands side by side. Reading is by patterns, in English; a statement in other words or another
language claims nothing here, and so retires nothing.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime

SELF = "user"
"""Subject of a first-person statement whose speaker is not known."""

_SUBJECT = r"(?P<subject>I|we|the user|user|[A-ZÀ-ÖØ-Þ][\w’'-]*(?: [A-ZÀ-ÖØ-Þ][\w’'-]*)?)"
_VALUE = r"(?P<value>[^.,;!?\n]{1,120})"
_SHORTEST = r"(?P<value>[^.,;!?\n]{1,120}?)"
_NOW = r"(?:(?:now|currently|still|just|recently|always|really|also|actually) )*"
_HAVE = r"(?:have |has |’ve |'ve )?"
_BE = r"(?:am|is|are|'m|'s|'re|’m|’s|’re)"
_NOT = r"(?P<not>(?:do|does|did|would)(?:n't|n’t| not) |(?:no longer|never) )?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a statement claims."""

    subject: str
    """Folded; ``user`` for a first person whose name is not known."""
    attribute: str
    value: str
    exclusive: bool = False
    """One value at a time: another one retires it."""
    kind: str = "fact"
    """identity, contact, preference, decision, fact."""
    negated: bool = False
    until: datetime | None = None
    """It ended then, as the statement itself says."""
    past: bool = False
    """It says that something was so, and no longer is."""

    def rivals(self, other: Claim) -> bool:
        """Whether the two can't both hold: another value of an exclusive attribute, or a taste and its denial."""
        if (self.subject, self.attribute) != (other.subject, other.attribute):
            return False
        if self.exclusive and other.exclusive:
            return fold(self.value) != fold(other.value)
        return self.kind == "preference" and fold(self.value) == fold(other.value) and self.negated != other.negated

    def agrees(self, other: Claim) -> bool:
        """Whether the two claim the very same."""
        return (self.subject, self.attribute, fold(self.value), self.negated) == (
            *(other.subject, other.attribute),
            *(fold(other.value), other.negated),
        )


# (attribute, kind, exclusive, pattern). ``{key}`` in an attribute is the pattern's own group.
_PATTERNS: tuple[tuple[str, str, bool, re.Pattern[str]], ...] = tuple(
    (attribute, kind, exclusive, re.compile(pattern))
    for attribute, kind, exclusive, pattern in (
        ("residence", "identity", True, rf"(?:{_SUBJECT} )?{_NOW}(?:was|were|used to live|lived) (?:in|at) {_SHORTEST}(?P<past> (?:until|till) (?P<until>[^.,;!?\n]+))$"),  # noqa: E501
        ("residence", "identity", True, rf"(?:{_SUBJECT} )?{_NOW}(?P<past>used to live|lived) (?:in|at) {_VALUE}"),
        ("residence", "identity", True, rf"(?:{_SUBJECT}(?: |(?=['’]))?)?{_HAVE}{_NOW}(?:(?:lives?|resides?|(?:{_BE} )?{_NOW}(?:living|based|located)) (?:in|at)|(?:moved|relocated|(?:{_BE} )?moving)(?: from [^.,;!?\n]+?)? to) {_VALUE}"),  # noqa: E501
        ("employer", "identity", True, rf"(?:{_SUBJECT}(?: |(?=['’]))?)?{_NOW}(?:works? (?:at|for)|(?:started|joined)(?: working)?(?: at| for)?|(?:{_BE} )?{_NOW}(?:working|employed) (?:at|for|by)) (?P<value>[A-ZÀ-ÖØ-Þ][^.,;!?\n]{{0,80}})"),  # noqa: E501
        ("occupation", "identity", True, rf"(?:{_SUBJECT}(?: |(?=['’]))?)?{_NOW}(?:works? as|(?:{_BE} )?{_NOW}(?:working|employed) as) {_VALUE}"),  # noqa: E501
        ("name", "identity", True, r"(?:[Mm]y name is|[Cc]all me|(?:I am|I'm|I’m) called) (?P<value>[A-ZÀ-ÖØ-Þ][\w’'-]*(?: [A-ZÀ-ÖØ-Þ][\w’'-]*){0,2})"),  # noqa: E501
        ("birthday", "identity", True, rf"(?:{_SUBJECT} was|I was|was) born (?:on|in) {_VALUE}"),
        ("age", "identity", True, rf"(?:{_SUBJECT}(?: |(?=['’]))?){_BE} (?P<value>\d{{1,3}}) years old"),
        ("allergy", "identity", False, rf"(?:{_SUBJECT}(?: |(?=['’]))?)?{_BE} {_NOW}allergic to {_VALUE}"),
        ("diet", "identity", True, rf"(?:{_SUBJECT}(?: |(?=['’]))?)?{_BE} {_NOW}(?:an? )?(?P<value>vegan|vegetarian|pescatarian)\b"),  # noqa: E501
        ("favourite {key}", "preference", True, rf"(?:[Mm]y|(?P<subject>[A-ZÀ-ÖØ-Þ][\w-]*)['’]s) (?:favou?rite|preferred) (?P<key>[\w -]{{2,40}}?) (?:is|are|was) {_VALUE}"),  # noqa: E501
        ("{key}", "fact", True, rf"(?:[Mm]y|(?P<subject>[A-ZÀ-ÖØ-Þ][\w-]*)['’]s) (?P<key>[\w -]{{2,40}}?) (?:is|are)(?P<not> not|n't|n’t)? (?:now )?{_VALUE}"),  # noqa: E501
        ("likes", "preference", False, rf"(?:{_SUBJECT} )?{_NOW}{_NOT}{_NOW}(?:likes?|loves?|enjoys?|adores?) {_VALUE}"),
        ("likes", "preference", False, rf"(?:{_SUBJECT} )?{_NOW}(?P<dislike>hates?|dislikes?|can't stand|can’t stand|detests?) {_VALUE}"),  # noqa: E501
        ("prefers", "preference", False, rf"(?:{_SUBJECT}(?:'d|’d)? )?{_NOW}{_NOT}prefers? {_VALUE}"),
        ("decision", "decision", False, rf"(?:(?:[Ww]e|I)(?: have|'ve|’ve)? (?:decided|agreed|chose|settled) (?:to|on|that|for)?|[Ll]et's go with|[Ll]et’s go with|[Dd]ecision:) ?{_VALUE}"),  # noqa: E501
    )
)  # fmt: skip

_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PHONE = re.compile(r"(?<![\w.])\+?\d[\d ()/-]{7,18}\d(?![\w.])")
_CONTACT = re.compile(r"\b(?:my|our|reach|call|phone|mail|e-?mail|contact|number|mobile)\b", re.IGNORECASE)
_WHO_ELSE = frozenset(
    ("he", "she", "they", "it", "this", "that", "there", "what", "who", "which", "where", "when", "how")
)
_NOT_KEYS = frozenset(
    ("point", "question", "idea", "guess", "understanding", "problem", "issue", "plan", "goal", "bad")
)
"""``my point is ...``: what follows is no lasting fact."""
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_TAIL = re.compile(r"\s+(?:now|currently|too|as well|these days|at the moment|anymore|any more|very much|a lot)$")


def fold(text: str) -> str:
    """A value for comparison: NFKC, case-folded, single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def claim_of(sentence: str, *, speaker: str | None = None, at: datetime | None = None) -> Claim | None:
    """Read the claim of one sentence; None when it claims nothing that is known, or asks.

    ``speaker`` is the subject of a first person; ``at`` the time it was said, for a date without a year.
    """
    sentence = sentence.strip().rstrip(".!。！ ")
    if not sentence or sentence.endswith(("?", "？")) or len(sentence) > 400:
        return None
    if (contact := _contact(sentence, speaker)) is not None:
        return contact
    for attribute, kind, exclusive, pattern in _PATTERNS:
        match = pattern.match(sentence)
        if match is not None and (claim := _claim(match, attribute, kind, exclusive, speaker, at)) is not None:
            return claim
    return None


def _claim(
    match: re.Match[str], attribute: str, kind: str, exclusive: bool, speaker: str | None, at: datetime | None
) -> Claim | None:
    groups = match.groupdict()
    value = _TAIL.sub("", (groups.get("value") or "").strip())
    subject = _subject(groups.get("subject"), speaker)
    if not value or subject is None:
        return None
    key = groups.get("key")
    if key is not None:
        key = fold(key)
        if key in _NOT_KEYS or key.split()[-1] in _NOT_KEYS:
            return None
        attribute = attribute.format(key=key)
    negated = bool(groups.get("not") or groups.get("dislike"))
    past = groups.get("past") is not None
    until = read_date(groups["until"], at) if groups.get("until") else at if past else None
    if negated and exclusive:
        return None
    return Claim(
        subject=subject,
        attribute=attribute,
        value=value,
        exclusive=exclusive,
        kind=kind,
        negated=negated,
        until=until,
        past=past,
    )


def _subject(named: str | None, speaker: str | None) -> str | None:
    if named is None or named in ("I", "we", "the user", "user"):
        return fold(speaker) if speaker else SELF
    folded = fold(named)
    if folded in _WHO_ELSE:
        return None
    return folded.removesuffix("'s").removesuffix("’s")


def _contact(sentence: str, speaker: str | None) -> Claim | None:
    subject = fold(speaker) if speaker else SELF
    if not _CONTACT.search(sentence):
        return None
    if match := _MAIL.search(sentence):
        return Claim(subject=subject, attribute="e-mail", value=match[0], kind="contact")
    if match := _PHONE.search(sentence):
        return Claim(subject=subject, attribute="phone", value=match[0].strip(), kind="contact")
    return None


def read_date(text: str, at: datetime | None) -> datetime | None:
    """Read a date such as ``Feb``, ``February 2023``, ``2023-02-01``, ``2021``: its first moment, UTC.

    A month without a year is the last one up to ``at``. None when it can't be read.
    """
    text = text.strip().casefold()
    try:
        if match := re.match(r"(\d{4})-(\d{1,2})(?:-(\d{1,2}))?", text):
            return datetime(int(match[1]), int(match[2]), int(match[3] or 1), tzinfo=UTC)
        if match := re.match(r"(?:(\d{1,2})\.? )?([a-z]{3})[a-z]*\.?(?: (\d{1,2})(?!\d))?(?:,? (\d{4}))?", text):
            month = _MONTHS.index(match[2]) + 1
            day = int(match[1] or match[3] or 1)
            year = int(match[4]) if match[4] else at.year - (month > at.month) if at is not None else None
            return datetime(year, month, day, tzinfo=UTC) if year is not None else None
        if match := re.match(r"((?:19|20)\d\d)\b", text):
            return datetime(int(match[1]), 1, 1, tzinfo=UTC)
    except ValueError:
        return None
    return None
