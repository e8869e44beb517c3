"""Draw a recall: where activation started, how it flowed, and what each hit's score is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from wakeful.cli.chart import bar
from wakeful.cli.rows import line_of, marks, shown, text_of

if TYPE_CHECKING:
    from wakeful.retrieval.hits import ActivationLog, Explanation, Hit, Recall, Spread

SEEDS = 8
BRANCHES = 4
"""Steps drawn below a seed."""


def picture(found: Recall, names: Mapping[str, str], width: int) -> list[str]:
    """The recall as lines of text. ``names``: what the memories say, by id."""
    width = max(60, min(width, 120))
    log = found.activation_log
    lines = [
        f'"{shown(found.query, width - 40)}" in {found.scope.path}: {len(found.hits)} of {found.candidates} weighed'
    ]
    if log.seeds:
        lines += ["", "seeds and where activation went:"]
        lines += _tree(log, names, width)
    lines += ["", "hits:"] if found.hits else ["", "nothing is remembered about this"]
    brought = set(log.brought_in)
    for place, hit in enumerate(found.hits, 1):
        lines += _hit(place, hit, log, names, width, brought=hit.node.id in brought)
    lines += [f"left out: {node_id} ({why})" for node_id, why in found.left_out]
    lines += [f"note: {note}" for note in found.notes]
    return lines


def _tree(log: ActivationLog, names: Mapping[str, str], width: int) -> Iterator[str]:
    most = max((amount for _, amount in log.seeds), default=1.0) or 1.0
    for node_id, amount in log.seeds[:SEEDS]:
        yield f"  ● {bar(amount / most, 8)} {amount:5.2f}  {shown(names.get(node_id, node_id), width - 22)}"
        steps = sorted((s for s in log.steps if s.source == node_id), key=lambda s: -s.amount)
        for number, step in enumerate(steps[:BRANCHES]):
            last = number == min(len(steps), BRANCHES) - 1
            yield f"    {'└' if last else '├'}─{step.relation}→ {step.amount:.2f}  " + shown(
                names.get(step.target, step.target), max(20, width - len(step.relation) - 16)
            )
        if len(steps) > BRANCHES:
            yield f"      ... and {len(steps) - BRANCHES} more"
    if len(log.seeds) > SEEDS:
        yield f"  ... and {len(log.seeds) - SEEDS} more seeds"


def _hit(
    place: int, hit: Hit, log: ActivationLog, names: Mapping[str, str], width: int, *, brought: bool
) -> Iterator[str]:
    node = hit.node
    yield f"{place:>3}. {hit.score:.2f} [{bar(hit.score, 12)}] {shown(text_of(node), width - 26)}{marks(node)}"
    yield f"       {node.id}, {node.layer}, {node.asserted_at:%Y-%m-%d}" + (
        ", brought in by activation" if brought else ""
    )
    if hit.parts:
        scale = max((abs(value) for _, value in hit.parts), default=1.0) or 1.0
        for name, value in hit.parts:
            yield f"       {shown(name, 14):<14} {bar(abs(value) / scale, 10)} {value:+.3f}"
    for step in log.path_to(node.id):
        yield "       " + way(step, names)
    for reason in hit.reasons:
        yield f"       · {shown(reason, width - 9)}"
    if hit.also:
        yield f"       says the same: {', '.join(hit.also[:4])}"


def way(step: Spread, names: Mapping[str, str]) -> str:
    """One step of a path."""
    source = shown(names.get(step.source, step.source), 32)
    target = shown(names.get(step.target, step.target), 32)
    return f'"{source}" ─{step.relation}→ "{target}"  {step.amount:.2f}, shared by {step.fan}'


def explanation(why: Explanation, names: Mapping[str, str]) -> list[str]:
    """Why one memory came or not, as lines."""
    head = f"{why.id}: recalled at place {why.place}" if why.recalled else f"{why.id}: not recalled"
    lines = [head]
    if why.hit is not None:
        lines.append("  " + line_of(why.hit.node, 100))
        lines += [f"  {shown(name, 14):<14} {value:+.3f}" for name, value in why.hit.parts]
    elif why.id in names:
        lines.append("  " + shown(names[why.id], 100))
    lines += ["  " + way(step, names) for step in why.path]
    lines += [f"  · {shown(reason)}" for reason in why.reasons]
    return lines
