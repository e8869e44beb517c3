"""The ledger as text, and back: one row a source, values grouped by key, in at most so many tokens.

A row: ``#12 get_order: outcome; order_id: A-17 A-18; ADDRESS``; a quote: ``#4 user: “...”``. A value with a space stands
in double quotes. ``#12`` is the number of the message that it came from.

What is chosen, until the limit is full: what people said and decided (up to a share; what brings values first, of equal
worth the newest), then values by worth, of equal worth the newest first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from wakeful.compaction.ledger import FOLDED, QUOTE, Fact, Ledger, Line, Reader, Said, clip
from wakeful.compaction.values import kind_of_value
from wakeful.dialects.protocol import Count

SAID_SHARE = 0.25
"""Share of the limit that quotes may take."""

TELLING = 3
"""Values from which on a quote counts as telling as any other."""

MISSES = 48
"""Values in a row that do not fit any more before the choice ends."""

_ROW = re.compile(r"#(\d+) ([^:]*): (.*)")
_CELL = re.compile(r"\"([^\"]*)\"|(\S+)")


def lay_out(ledger: Ledger, max_tokens: int, count: Count, *, quotes: bool = True) -> str:
    """Write the ledger in at most ``max_tokens``; "" when nothing of it fits."""
    facts = sorted(ledger.facts.values(), key=_by_worth)
    chars = max_tokens * 4
    best = ""
    for _ in range(5):
        text = _write(facts, ledger.said if quotes else (), chars, ledger.unread)
        tokens = count(text, "text")
        if tokens <= max_tokens:
            best = text if len(text) > len(best) else best
            if tokens >= max_tokens * 0.93 or len(text) < chars * 0.85:
                break
            chars = int(chars * max_tokens / max(1, tokens))
        else:
            chars = int(min(chars, len(text)) * max_tokens / tokens * 0.98) - 4
        if chars < 20:
            break
    return best


def fold(text: str, reader: Reader) -> None:
    """Read the body of an earlier summary: rows as rows, other text as something said."""
    for row in reversed(text.split("\n")):
        found = _ROW.fullmatch(row)
        if found is None:
            if row.strip():
                reader.say(Said(clip(row, QUOTE * 2), -1, "", 0))
                reader.open(-1, "before", FOLDED)
                reader.text(row, names=True)
            continue
        source, head, content = int(found[1]), found[2], found[3]
        if content[:1] == "“":
            reader.say(Said(content[1:].rstrip("”"), source, head, 0 if head == "user" else 1))
            reader.open(source, head, FOLDED)
            reader.text(content, names=False)
            continue
        reader.open(source, head, FOLDED)
        for key, value in _cells(content):
            reader.add(value, key, kind_of_value(value))


def _by_worth(fact: Fact) -> int:
    return -fact.worth


def _write(facts: Sequence[Fact], said: Sequence[Said], chars: int, unread: int | None) -> str:
    """Choose what fits in ``chars`` and write it, oldest first."""
    chosen = _Choice(chars)
    if unread is not None:
        chosen.open(unread)
    limit = int(chars * SAID_SHARE)
    brought = Counter(fact.line.source for fact in facts)
    for item in sorted(said, key=lambda item: (item.kind, -min(brought[item.source], TELLING))):
        if len(item.text) < limit:
            limit -= chosen.quote(item)
    misses = 0
    for fact in facts:
        misses = 0 if chosen.fact(fact) else misses + 1
        if chosen.left < 3 or misses > MISSES:
            break
    return chosen.written()


class _Choice:
    """What is taken so far, and the characters that are left."""

    def __init__(self, chars: int) -> None:
        self.left = chars
        self._lines: dict[Line, set[str]] = {}
        self._keys: set[tuple[Line, str]] = set()
        self._said: list[Said] = []
        self._quoted = ""
        self._opening = ""

    def open(self, unread: int) -> None:
        """Say first what was not read."""
        self._opening = f"(of what stands before #{unread + 1}, people's words alone; the rest is in the archive)"
        self.left -= len(self._opening) + 1

    def fact(self, fact: Fact) -> bool:
        """Take a value when there is room; True for one that stands in a quote already."""
        line, value, key = fact.line, fact.value, fact.key
        if len(value) > 2 and value in self._quoted:
            return True
        cost = len(value) + (3 if " " in value else 1)
        taken = self._lines.get(line)
        if taken is None:
            cost += len(line.head) + len(line.note) + 8
        if key and (line, key) not in self._keys:
            cost += len(key) + 3
        if cost > self.left:
            return False
        self.left -= cost
        if taken is None:
            taken = self._lines[line] = set()
        taken.add(value)
        if key:
            self._keys.add((line, key))
        return True

    def quote(self, said: Said) -> int:
        """Take a quote when there is room; gives what it cost."""
        cost = len(said.text) + len(said.role) + 10
        if cost > self.left:
            return 0
        self.left -= cost
        self._said.append(said)
        self._quoted += said.text + "\n"
        return cost

    def written(self) -> str:
        """Write it, oldest first."""
        rows: list[tuple[int, int, str]] = []
        for said in self._said:
            text = f"#{said.source} {said.role}: “{said.text}”" if said.role else said.text
            rows.append((said.source, 0, text))
        for line, taken in self._lines.items():
            rows.append((line.source, 1, _row(line, [fact for value, fact in line.facts.items() if value in taken])))
        rows.sort(key=lambda row: row[:2])
        return "\n".join([*([self._opening] if self._opening else []), *[row[2] for row in rows]])


def _row(line: Line, facts: Sequence[Fact]) -> str:
    groups: dict[str, list[str]] = {}
    for fact in facts:
        groups.setdefault(fact.key, []).append(f'"{fact.value}"' if " " in fact.value else fact.value)
    parts = [line.note] if line.note else []
    parts += [f"{key}: {' '.join(found)}" if key else " ".join(found) for key, found in groups.items()]
    return f"#{line.source} {line.head}: {'; '.join(parts)}"


def _cells(content: str) -> Iterator[tuple[str, str]]:
    """Read a row's groups back: the reverse of ``_row``, but for outcomes, which are read as values."""
    for group in content.split("; "):
        key, colon, found = group.partition(": ")
        if not colon or " " in key:
            key, found = "", group
        for quoted, plain in _CELL.findall(found):
            yield key, quoted or plain
