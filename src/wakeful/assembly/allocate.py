"""Share a token budget among sections: each gets its least, then they grow by priority up to their most.

Rules of the file:

- A piece is shown whole or left out; a piece that does not fit is passed over and the next one is tried.
- The count is of the final text with its wrappers, and never above the budget. Since a count of joined text may differ
  from the sum of its parts, the result is checked at the end, and the least wanted pieces go until it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wakeful.assembly.context import Piece, SectionReport, Stratum

JOINT = "\n\n"
"""Between sections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the prompt, before it is known what fits."""

    name: str
    stratum: Stratum
    pieces: tuple[Piece, ...]
    head: str = ""
    """First line, shown when a piece is."""
    foot: str = ""
    priority: int = 5
    """0 grows first."""
    least: int = 0
    """Tokens that are its own before others grow."""
    most: int | None = None
    """Most tokens; None: no limit but the budget."""
    required: bool = False
    """True: all of it goes in, whatever the budget says; the caller is told when that is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What fits."""

    texts: tuple[tuple[Section, str], ...]
    """Each section that is not empty with its final text, in the order given."""
    reports: tuple[SectionReport, ...]
    tokens: int
    over_budget: int = 0
    """Tokens that required sections alone exceed the budget by."""


Tokens = Callable[[str], int]


def render(section: Section, pieces: Sequence[Piece]) -> str:
    """The text of a section with these pieces; empty for none."""
    if not pieces:
        return ""
    return "\n".join(part for part in (section.head, *(piece.text for piece in pieces), section.foot) if part)


def allocate(sections: Sequence[Section], budget: int, tokens: Tokens) -> Allocation:
    """Choose the pieces of each section. Sections keep their order, and pieces keep theirs within a section."""
    chosen: dict[int, set[int]] = {index: set() for index in range(len(sections))}
    joint = tokens(JOINT)
    spent = 0
    for index, section in enumerate(sections):
        if section.required and section.pieces:
            chosen[index] = set(range(len(section.pieces)))
            spent += tokens(render(section, section.pieces)) + joint
    free = sorted(
        (index for index, section in enumerate(sections) if not section.required),
        key=lambda index: (sections[index].priority, index),
    )
    used = dict.fromkeys(free, 0)
    for least_only in (True, False):
        for index in free:
            section = sections[index]
            cap = section.least if least_only else section.most
            room = budget - spent - _reserved(sections, free, used, index, least_only)
            limit = room + used[index] if cap is None else min(cap, room + used[index])
            grown = _fill(section, chosen[index], used[index], limit, tokens, joint)
            spent += grown - used[index]
            used[index] = grown
    while True:
        allocation = _finish(sections, chosen, tokens)
        if allocation.tokens <= budget or not _drop_last(sections, free, chosen):
            over = max(0, allocation.tokens - budget)
            return Allocation(
                texts=allocation.texts, reports=allocation.reports, tokens=allocation.tokens, over_budget=over
            )


def _reserved(sections: Sequence[Section], free: Sequence[int], used: dict[int, int], index: int, least: bool) -> int:
    """Tokens still kept for the least of other sections that come later in the first pass."""
    if not least:
        return 0
    later = free[free.index(index) + 1 :]
    return sum(min(sections[i].least, 1 << 30) for i in later if sections[i].pieces and not used[i])


def _fill(section: Section, chosen: set[int], used: int, limit: int, tokens: Tokens, joint: int) -> int:
    """Add pieces, best first, while the section stays within ``limit``; returns the tokens that it then uses."""
    total = used or tokens(render(section, ()) or "\n".join(filter(None, (section.head, section.foot)))) + joint + 1
    order = sorted(range(len(section.pieces)), key=lambda at: (-section.pieces[at].score, at))
    for at in order:
        if at in chosen:
            continue
        cost = tokens(section.pieces[at].text + "\n")
        if total + cost <= limit:
            chosen.add(at)
            total += cost
    return total if chosen else 0


def _finish(sections: Sequence[Section], chosen: dict[int, set[int]], tokens: Tokens) -> Allocation:
    texts, reports = [], []
    for index, section in enumerate(sections):
        shown = [piece for at, piece in enumerate(section.pieces) if at in chosen[index]]
        text = render(section, shown)
        if text:
            texts.append((section, text))
        reports.append(
            SectionReport(
                name=section.name,
                stratum=section.stratum,
                tokens=tokens(text) if text else 0,
                shown=tuple(piece.id or piece.text for piece in shown),
                left_out=tuple(
                    (piece.id or piece.text, f"{tokens(piece.text)} tokens do not fit")
                    for at, piece in enumerate(section.pieces)
                    if at not in chosen[index]
                ),
            )
        )
    total = tokens(JOINT.join(text for _, text in texts)) if texts else 0
    return Allocation(texts=tuple(texts), reports=tuple(reports), tokens=total)


def _drop_last(sections: Sequence[Section], free: Sequence[int], chosen: dict[int, set[int]]) -> bool:
    """Take the least wanted piece of the least wanted section out; False when there is none."""
    for index in reversed(free):
        if chosen[index]:
            worst = min(chosen[index], key=lambda at: (sections[index].pieces[at].score, -at))
            chosen[index].discard(worst)
            return True
    return False
