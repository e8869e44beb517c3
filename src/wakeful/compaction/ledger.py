"""The extractive ledger: what a stretch of conversation wanted, decided, did and named, found without a model.

``Reader`` fills it; ``extract`` says which messages are read, ``layout`` chooses from it and writes.

A value's worth is told by who brought it (a person or an argument of a call before a result, a result before the model's
prose), by its form, and by how many messages hold it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from wakeful.compaction import values
from wakeful.compaction.archive import placeholder_id
from wakeful.dialects.protocol import Block, Media, Opaque, Text, ToolResult, ToolUse

QUOTE = 160
"""Characters of what one message said, at most."""

LONG = 4_000
"""Characters above which a text is taken as data (a file, a log) and not as something said."""

ARGUMENT = 7
"""Score of a value that was passed to a tool."""

PERSON = (7, 6, 5, 5, 2, 2)
RESULT = (5, 4, 4, 2, 1, 2)
MODEL = (4, 3, 1, 2, 0, 0)
FOLDED = (6, 5, 5, 3, 2, 3)
"""Scores of a value by who brought it (a person, a result, the model's prose, an earlier summary) and its kind
(``values.ID`` ... ``values.WORD``)."""

HITS = 3
"""Most that further messages with the value add to its score, one each."""

_DECIDED = re.compile(
    r"\b(?:decid|agree|confirm|approv|chose|choos|will (?:use|keep|go)|go(?:ing)? with|instead of|must|never|always"
    r"|prefer|do not|don't|only|resolved|fixed|root cause|because|turns out|found that|the (?:issue|problem|cause) is)",
    re.IGNORECASE,
)
"""Words that announce a decision, a rule or a finding (English; in other languages what people said is kept whole, and
the model's prose gives values only)."""

_OPEN = re.compile(
    r"\b(?:todo|fixme|next step|pending|remaining|still (?:need|have|has|open|fail)|not yet|waiting|blocked|follow[- ]up"
    r"|needs? to|have to)\b",
    re.IGNORECASE,
)
"""Words that announce an open item."""


@dataclass(slots=True, eq=False)
class Line:
    """What one message brought."""

    source: int
    head: str
    """``user``, ``assistant``, or the name of the tool that was called."""
    facts: dict[str, Fact] = field(default_factory=dict)
    note: str = ""
    """The outcome of a call in a few words: an error, or a short result."""


@dataclass(slots=True, eq=False)
class Fact:
    """A value, where it stands, and how much it matters."""

    value: str
    key: str
    """Key that it stood under in JSON; "" in prose."""
    kind: int
    score: int
    line: Line
    seen: Line
    """The last message that it was met in."""
    hits: int = 0
    """Further messages that hold it."""

    @property
    def worth(self) -> int:
        """How much it matters; higher is more."""
        return self.score + min(self.hits, HITS)


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

    facts: dict[str, Fact] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)
    unread: int | None = None
    """Number of the newest message that was not read; None: all were."""

    def without(self, text: str) -> Ledger:
        """Give the ledger without the values that stand in a text, and without what was said."""
        return Ledger({value: fact for value, fact in self.facts.items() if value not in text}, [], self.unread)

    def needed(self, max_tokens: int) -> list[str]:
        """Give the values that a digest of this size must carry: the most telling, in an eighth of its characters."""
        room = max_tokens // 2
        out: list[str] = []
        for fact in sorted(self.facts.values(), key=lambda fact: -fact.worth):
            room -= len(fact.value) + 1
            if room < 0 or fact.worth < ARGUMENT:
                break
            out.append(fact.value)
        return out


class Reader:
    """Reads blocks, newest first, into a ledger."""

    def __init__(self, room: int) -> None:
        self.ledger = Ledger()
        self.size = 0
        """Characters of values found so far."""
        self._facts = self.ledger.facts
        self._quotes_left = room
        self._waiting: dict[str, Line] = {}
        self._line = Line(0, "")
        self._scores: tuple[int, ...] = RESULT
        self._texts: set[int] = set()
        self._shapes: dict[str, values.Shape | None] = {}

    def take(self, block: Block, role: str, source: int) -> None:
        """Read a block of a message of this role and number."""
        kind = type(block)
        if kind is ToolUse:
            self._call(block, source)  # type: ignore[arg-type]  # told by its type
        elif kind is ToolResult:
            self._result(block, source)  # type: ignore[arg-type]
        elif kind is Text:
            self._said(block.text, role, source)  # type: ignore[union-attr]
        elif isinstance(block, Media | Opaque):
            self.open(source, role).note = block.kind

    def open(self, source: int, head: str, scores: tuple[int, ...] = RESULT) -> Line:
        """Begin a line; what is added next stands in it and is scored so."""
        self._line = line = Line(source, head)
        self._scores = scores
        return line

    def say(self, said: Said) -> None:
        """Keep something said, while there is room for quotes."""
        if self._quotes_left > 0:
            self._quotes_left -= len(said.text)
            self.ledger.said.append(said)

    def _call(self, call: ToolUse, source: int) -> None:
        line = self._waiting.pop(call.id, None)
        if line is None:
            line = self.open(source, call.name)
        self._line = line
        line.head = call.name
        results, line.facts = line.facts, {}
        self._scores = _ARGUMENTS
        if isinstance(call.arguments, str):
            self.text(call.arguments, names=False)
        else:
            self.json(call.arguments, "")
        line.facts |= results

    def _result(self, result: ToolResult, source: int) -> None:
        line = self.open(source, result.name or "result")
        self._waiting[result.call_id] = line
        text = result.text
        if result.error:
            line.note = "failed: " + clip(text, 100)
        elif len(text) <= 40:
            line.note = " ".join(text.split())
        if text[:1] == "[" and placeholder_id(text) is not None:
            line.note = ""
            self.text(text, names=False)
        elif self._is_fresh(text):
            decoded = values.decode(text)
            if decoded is None:
                self.text(text, names=len(text) < LONG)
            else:
                self.json(decoded, "")

    def _said(self, text: str, role: str, source: int) -> None:
        if not self._is_fresh(text):
            return
        if role != "user":
            self.open(source, role, MODEL)
            self.text(text, names=len(text) < LONG)
            if self._quotes_left > 0 and len(text) < LONG:
                self._remarks(text, role, source)
            return
        data = len(text) >= LONG // 2
        self.open(source, role, RESULT if data else PERSON)
        self.text(text, names=len(text) < LONG)
        if self._quotes_left > 0:
            self._quote(text, role, source)

    def _is_fresh(self, text: str) -> bool:
        """Say whether a text was not read before; the same text again says nothing."""
        mark = hash(text)
        if not text or mark in self._texts:
            return False
        self._texts.add(mark)
        return True

    def _quote(self, text: str, role: str, source: int) -> None:
        head = text[: QUOTE * 8]
        folded = " ".join(head.split())
        if len(folded) > QUOTE:
            picked = [s for s in values.sentences(head) if _DECIDED.search(s)]
            folded = clip(" ".join([clip(folded, QUOTE // 2), *picked]), QUOTE)
        if len(folded) > 3:
            self.say(Said(folded, source, role, 0))

    def _remarks(self, text: str, role: str, source: int) -> None:
        for sentence in values.sentences(text):
            if len(sentence) <= 240:
                kind = 2 if _OPEN.search(sentence) else 1 if _DECIDED.search(sentence) else None
                if kind is not None:
                    self.say(Said(clip(sentence, QUOTE), source, role, kind))

    def json(self, value: Any, key: str) -> None:
        """Add the leaves of decoded JSON, each under its nearest key, and keys that are identifiers themselves."""
        kind = type(value)
        if kind is dict:
            for name, item in value.items():
                if item is None or item is True or item is False or item == "":
                    continue
                if type(name) is str and values.has_digit(name):
                    self.add(name, key, values.ID)
                    self.json(item, key)
                else:
                    self.json(item, str(name))
        elif kind is str:
            if len(value) > values.MOST or "\n" in value:
                self.text(value, names=len(value) < LONG)
            elif value in self._facts:
                self._again(self._facts[value], key)
            elif value.strip():
                self.add(value, key, values.kind_of_value(value))
        elif kind is list:
            for item in value:
                self.json(item, key)
        elif kind is int or kind is float:
            text = repr(value)
            self.add(text, key, values.ID if kind is int and len(text) >= 6 else values.NUMBER)

    def text(self, text: str, *, names: bool) -> None:
        """Add the values of free text. ``names`` False: identifiers and numbers alone (code, logs)."""
        if names:
            for value in values.quoted(text):
                self.add(value, "", values.NAME)
        shapes, facts, line = self._shapes, self._facts, self._line
        before, run, number = ".", "", ""
        for token in values.tokens_of(text):
            try:
                shape = shapes[token]
            except KeyError:
                shape = shapes[token] = values.shape_of(token)
            if shape is None:
                if number:
                    if token.rstrip(".,;:)") in values.UNITS:
                        self.add(f"{number} {token.rstrip('.,;:)')}", "", values.NUMBER)
                    number = ""
                run = ""
                before = token
                continue
            word, kind = shape
            number = ""
            if kind == _WORD:
                if names and (run or before[-1] not in ".!?:*-#>"):
                    run = self._name(run, word, token)
            else:
                if kind == _NUMBER:
                    number = word
                    if run:
                        word = f"{run} {word}"
                if names or kind != _NAME:
                    known = facts.get(word)
                    if known is None or known.seen is not line:
                        self.add(word, "", kind)
                run = ""
            before = token

    def _name(self, run: str, word: str, token: str) -> str:
        """Add a capitalised word, joined with those before it; gives the run that a next one may join."""
        name = f"{run} {word}" if run else word
        if run and run in self._facts and self._facts[run].line is self._line and not self._facts[run].hits:
            del self._facts[run]
            self._line.facts.pop(run, None)
        self.add(name, "", values.WORD)
        return name if token[-1:].isalpha() and len(name) < 40 else ""

    def add(self, value: str, key: str, kind: int) -> None:
        """Add a value, or note that it came up again."""
        known = self._facts.get(value)
        if known is not None:
            self._again(known, key)
            return
        line = self._line
        score = self._scores[kind]
        if key and kind <= values.PLAIN and values.NAMING_KEY.search(key):
            score += 1
        self._facts[value] = line.facts[value] = Fact(value, key, kind, score, line, line)
        self.size += len(value) + 2

    def _again(self, known: Fact, key: str) -> None:
        line = self._line
        if known.seen is line:
            return
        known.seen = line
        known.hits += 1
        score = self._scores[known.kind]
        if score > known.score:
            known.score = score
        if key and not known.key:
            # A value first met in prose belongs beside its neighbours in the result that it came from.
            known.key = key
            known.line.facts.pop(known.value, None)
            known.line = line
            line.facts[known.value] = known


_ARGUMENTS = (ARGUMENT,) * 6
_NAME, _NUMBER, _WORD = values.NAME, values.NUMBER, values.WORD


def clip(text: str, most: int) -> str:
    """Give a text in at most so many characters, on one line."""
    folded = " ".join(text[: most * 4].split())
    return folded if len(folded) <= most and len(text) <= most * 4 else folded[: most - 1].rstrip() + "…"
