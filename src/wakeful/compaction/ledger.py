"""The extractive ledger: what a stretch of conversation decided, did and named, found without a model.

``extract`` reads the messages newest first and stops when it has several times what the limit can hold, so its cost
follows the limit and not the length of the source. ``lay_out`` chooses and writes.

What is chosen, until the limit is full:

1. values that the agent passed to tools, or that a person gave (newest first);
2. what people said, decisions, open items;
3. values from results that came up again elsewhere, then identifiers, names, numbers, words (newest first).

Every line names its source as ``#index``, the message's place in the history it was taken from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from wakeful.compaction import values
from wakeful.compaction.archive import placeholder_id
from wakeful.dialects.protocol import Count, Dialect, Media, Opaque, Text, ToolResult, ToolUse, View

OVERSAMPLE = 6
"""Characters of values that are collected for each character of the limit, before the scan stops."""

QUOTE = 160
"""Characters of what one message said, at most."""

SAID_SHARE = 0.3
"""Share of the limit that quotes may take before values from results get their turn."""

_DECIDED = re.compile(
    r"\b(?:decid|agree|confirm|approv|chose|choos|will (?:use|keep|go)|go(?:ing)? with|instead of|must|never|always"
    r"|prefer|do not|don't|only|resolved|fixed|root cause|because|turns out|found that|the (?:issue|problem|cause) is)",
    re.IGNORECASE,
)
"""Words that announce a decision, a rule or a finding (English; other languages are kept by place, not by word)."""

_OPEN = re.compile(
    r"\b(?:todo|fixme|next(?: step)?|pending|remaining|still (?:need|have|has|open|fail)|not yet|waiting|blocked|follow[- ]up"
    r"|need(?:s)? to|have to)\b|\?$",
    re.IGNORECASE,
)
"""Words that announce an open item."""


@dataclass(slots=True, eq=False)
class Line:
    """What one message brought."""

    source: int
    head: str
    """``user``, ``assistant``, or the call with its name."""
    facts: dict[str, Fact] = field(default_factory=dict)
    note: str = ""
    """The outcome of a call in a few words: an error, or a short result."""


@dataclass(slots=True, eq=False)
class Fact:
    """A value, where it stands, and how much it matters."""

    value: str
    key: str
    score: int
    line: Line
    seen: Line | None = None
    """The last message that it was met in."""
    hits: int = 0
    """Further messages that hold it."""


@dataclass(slots=True)
class Said:
    """Something that a person or the agent said."""

    text: str
    source: int
    role: str
    kind: int
    """0 goal or request, 1 decision or rule, 2 open item."""


@dataclass(slots=True)
class Ledger:
    """What was found, newest first."""

    lines: list[Line] = field(default_factory=list)
    facts: dict[str, Fact] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)
    complete: bool = True
    """False: the scan stopped before the oldest message."""

    def without(self, text: str) -> Ledger:
        """Give the ledger without the values that stand in a text, and without what was said."""
        left = {value: fact for value, fact in self.facts.items() if value not in text}
        return Ledger(self.lines, left, [], self.complete)


def extract(
    dialect: Dialect,
    messages: Sequence[Any],
    *,
    room: int,
    numbers: Sequence[int] | None = None,
    folded: str = "",
) -> Ledger:
    """Read messages, newest first, into a ledger, and then the body of an earlier summary.

    ``room``: characters that it will be laid out in; ``numbers``: of each message, as sources are told.
    """
    reader = _Reader()
    enough = room * OVERSAMPLE
    read = dialect.read
    numbers = range(len(messages)) if numbers is None else numbers
    for index in range(len(messages) - 1, -1, -1):
        reader.take(read(messages[index]), numbers[index])
        if reader.size > enough:
            reader.ledger.complete = index == 0
            break
    if folded:
        reader.fold(folded)
    return reader.ledger


class _Reader:
    def __init__(self) -> None:
        self.ledger = Ledger()
        self.size = 0
        self._waiting: dict[str, Line] = {}
        self._line = Line(0, "")
        self._scores = _RESULT
        self._text_seen: set[int] = set()

    def take(self, view: View, source: int) -> None:
        for block in reversed(view.blocks):
            match block:
                case ToolUse():
                    self._call(block, source)
                case ToolResult():
                    self._result(block, source)
                case Text(text):
                    self._said(text, view.role, source)
                case Media():
                    self._open(source, view.role).note = f"{block.kind} {block.media_type}".strip()
                case Opaque():
                    self._open(source, view.role).note = block.kind
                case _:
                    pass

    def fold(self, text: str) -> None:
        """Take in the body of an earlier summary: rows of a ledger as rows, other text as something said."""
        rest: list[str] = []
        for row in reversed(text.splitlines()):
            found = _ROW.fullmatch(row)
            if found is None:
                if row.strip():
                    rest.append(row.strip())
                continue
            source, head, content = int(found[1]), found[2], found[3]
            if content[:1] == "“":
                kind = 0 if head == "user" else 1
                self.ledger.said.append(Said(content[1:].rstrip("”"), source, head, kind))
                continue
            self._open(source, head)
            self._scores = _FOLDED
            for key, value in _cells(content):
                self._fact(value, key, _FOLDED[values.kind_of_value(value)])
        for row in rest:
            self.ledger.said.append(Said(_clip(row, QUOTE * 2), -1, "", 0))
            self._open(-1, "before")
            self._scores = _FOLDED
            values.from_text(row, self._add)

    def _open(self, source: int, head: str) -> Line:
        line = self._line = Line(source, head)
        self.ledger.lines.append(line)
        return line

    def _call(self, call: ToolUse, source: int) -> None:
        line = self._waiting.pop(call.id, None)
        if line is None:
            line = self._open(source, "")
        else:
            self._line = line
        line.head = call.name
        own, line.facts = line.facts, {}
        if isinstance(call.arguments, str):
            values.from_text(call.arguments, self._add, names=False)
        else:
            values.from_json(call.arguments, self._add_argument)
        line.facts |= own

    def _result(self, result: ToolResult, source: int) -> None:
        line = self._open(source, result.name or "result")
        self._waiting[result.call_id] = line
        text = result.text
        if placeholder_id(text) is not None:
            line.note = text
            return
        mark = hash(text)
        if mark in self._text_seen:
            return
        self._text_seen.add(mark)
        if result.error:
            line.note = "failed: " + _clip(text, 100)
        elif len(text) <= 40:
            line.note = " ".join(text.split())
        self._scores = _RESULT
        decoded = values.decode(text)
        if decoded is None:
            values.from_text(text, self._add, names=len(text) < 2_000)
        else:
            values.from_json(decoded, self._add)

    def _said(self, text: str, role: str, source: int) -> None:
        mark = hash(text)
        if not text or mark in self._text_seen:
            return
        self._text_seen.add(mark)
        self._open(source, role)
        person = role == "user"
        self._scores = _MODEL if not person else _PERSON if len(text) < 2_000 else _RESULT
        values.from_text(text, self._add, names=len(text) < 4_000)
        if person:
            self._quote(text, role, source)
        elif len(text) < 4_000:
            self._remarks(text, role, source)

    def _quote(self, text: str, role: str, source: int) -> None:
        folded = " ".join(text[: QUOTE * 8].split())
        if len(folded) > QUOTE:
            picked = [s for s in values.sentences(text[: QUOTE * 8]) if _DECIDED.search(s)]
            folded = _clip(" ".join([_clip(folded, QUOTE // 2), *picked]), QUOTE)
        if len(folded) > 3:
            self.ledger.said.append(Said(folded, source, role, 0))
            self.size += len(folded)

    def _remarks(self, text: str, role: str, source: int) -> None:
        for sentence in values.sentences(text):
            if len(sentence) > 240:
                continue
            kind = 2 if _OPEN.search(sentence) else 1 if _DECIDED.search(sentence) else None
            if kind is not None:
                self.ledger.said.append(Said(_clip(sentence, QUOTE), source, role, kind))
                self.size += len(sentence)

    def _add_argument(self, value: str, key: str, kind: int) -> None:
        self._fact(value, key, ARGUMENT)

    def _add(self, value: str, key: str, kind: int) -> None:
        self._fact(value, key, self._scores[kind] if key or kind != values.NAME else self._scores[5])

    def _fact(self, value: str, key: str, score: int) -> None:
        facts = self.ledger.facts
        known = facts.get(value)
        line = self._line
        if known is None:
            facts[value] = fact = Fact(value, key, score, line)
            line.facts[value] = fact
            self.size += len(value) + 2
            return
        if known.seen is line:
            return
        known.seen = line
        known.hits += 1
        if score > known.score:
            known.score = score
        if key and not known.key:
            # A value first met in prose belongs beside its neighbours in the result that it came from.
            known.key = key
            known.line.facts.pop(value, None)
            known.line = line
            line.facts[value] = known


ARGUMENT = 7
"""Score of a value that was passed to a tool."""

_PERSON = (7, 6, 5, 5, 2, 4)
_RESULT = (5, 4, 4, 2, 1, 2)
_MODEL = (4, 3, 1, 2, 0, 0)
"""Scores of a value by who brought it (a person, a result, the model's prose) and its kind (``values.ID`` ...
``values.COMMON``, and a name in prose). Each further message that holds the value adds one, up to ``HITS``."""

_FOLDED = (6, 5, 5, 3, 2, 3)
"""The same for a value of an earlier summary: it was chosen once already."""

HITS = 3

_ROW = re.compile(r"#(\d+) ([^:]*): (.*)")
_CELL = re.compile(r"\"([^\"]*)\"|(\S+)")


def _cells(content: str) -> Iterator[tuple[str, str]]:
    """Read a row's groups back: ``key: a b "c d"; key: ...`` (the reverse of ``_row``)."""
    for group in content.split("; "):
        key, colon, found = group.partition(": ")
        if not colon or " " in key:
            key, found = "", group
        for quoted, plain in _CELL.findall(found):
            yield key, quoted or plain


def _clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def needed(ledger: Ledger, max_tokens: int) -> list[str]:
    """Give the values that a digest of this size must carry: the most telling ones, in an eighth of its characters."""
    room = max_tokens // 2
    out: list[str] = []
    for fact in sorted(ledger.facts.values(), key=_worth):
        room -= len(fact.value) + 1
        if room < 0 or fact.score < ARGUMENT - 1:
            break
        out.append(fact.value)
    return out


def lay_out(ledger: Ledger, max_tokens: int, count: Count, *, quotes: bool = True) -> str:
    """Write the ledger in at most ``max_tokens``; "" when nothing of it fits."""
    chars = max_tokens * 4
    best = ""
    for _ in range(6):
        text = _write(ledger, chars, quotes)
        tokens = count(text, "text")
        if tokens <= max_tokens:
            best = text if len(text) > len(best) else best
            if tokens >= max_tokens * 0.93 or len(text) < chars * 0.9:
                break
            chars = int(chars * max_tokens / max(1, tokens))
        else:
            chars = int(chars * max_tokens / tokens * 0.98) - 4
        if chars < 20:
            break
    return best


def _write(ledger: Ledger, chars: int, quotes: bool) -> str:
    """Choose what fits in ``chars`` and write it, oldest first."""
    chosen = _Choice(chars)
    facts = sorted(ledger.facts.values(), key=_worth)
    limit = int(chars * SAID_SHARE) if quotes else 0
    for kind in (0, 1, 2):
        for item in ledger.said:
            if item.kind == kind and len(item.text) < limit:
                limit -= chosen.quote(item)
    for fact in facts:
        chosen.fact(fact)
        if chosen.left < 3:
            break
    return chosen.written()


def _worth(fact: Fact) -> int:
    return -fact.score - min(fact.hits, HITS)


class _Choice:
    """What is taken so far, and the characters that are left."""

    def __init__(self, chars: int) -> None:
        self.left = chars
        self._lines: dict[Line, list[Fact]] = {}
        self._keys: set[tuple[int, str]] = set()
        self._said: list[Said] = []
        self._quoted = ""

    def fact(self, fact: Fact) -> None:
        line = fact.line
        if len(fact.value) > 2 and fact.value in self._quoted:
            return
        cost = len(fact.value) + 1
        taken = self._lines.get(line)
        if taken is None:
            cost += len(line.head) + len(str(line.source)) + 4 + len(line.note)
        if fact.key and (id(line), fact.key) not in self._keys:
            cost += len(fact.key) + 2
        if cost > self.left:
            return
        self.left -= cost
        if taken is None:
            self._lines[line] = [fact]
        else:
            taken.append(fact)
        if fact.key:
            self._keys.add((id(line), fact.key))

    def quote(self, said: Said) -> int:
        cost = len(said.text) + len(str(said.source)) + len(said.role) + 6
        if cost > self.left:
            return 0
        self.left -= cost
        self._said.append(said)
        self._quoted += said.text + "\n"
        return cost

    def written(self) -> str:
        rows: list[tuple[int, int, str]] = []
        for said in self._said:
            rows.append((said.source, 0, f"#{said.source} {said.role}: “{said.text}”" if said.role else said.text))
        for line, facts in self._lines.items():
            chosen = set(map(id, facts))
            rows.append((line.source, 1, _row(line, [fact for fact in line.facts.values() if id(fact) in chosen])))
        rows.sort(key=lambda row: row[:2])
        return "\n".join(row[2] for row in rows)


def _row(line: Line, facts: Sequence[Fact]) -> str:
    parts = [f"#{line.source} {line.head}"]
    if line.note:
        parts.append(line.note)
    groups: dict[str, list[str]] = {}
    for fact in facts:
        groups.setdefault(fact.key, []).append(fact.value)
    for key, found in groups.items():
        shown = " ".join([f'"{value}"' if " " in value else value for value in found])
        parts.append(f"{key}: {shown}" if key else shown)
    return parts[0] + ": " + "; ".join(parts[1:]) if len(parts) > 1 else parts[0]
