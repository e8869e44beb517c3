"""Write a replay as one self-contained HTML page: no script, no network, readable on a phone and in the dark."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeful.engine.replay import Replay, Step

COLOURS = ("#3b6fb6", "#b5562c", "#3f8f5b", "#8a5aa8", "#b08a1e", "#4f8f95", "#a5456f")
WIDTH, HEIGHT = 900, 220

STYLE = """
:root { color-scheme: light dark; --ink: #1d1f23; --soft: #667; --line: #d5d8de; --ground: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e9ec; --soft: #9aa0ab; --line: #3a3e46; --ground: #15171b; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 60rem;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .3rem; } p { color: var(--soft); }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } svg { width: 100%; height: auto; display: block; }
.axis { stroke: var(--line); } .window { stroke: #c33; stroke-dasharray: 5 4; } text { fill: var(--soft); font-size: 12px; }
.dot { display: inline-block; width: .7rem; height: .7rem; border-radius: 50%; margin-right: .4rem; }
"""


def replay_page(name: str, played: list[Replay]) -> str:
    """The page of a replay."""
    window = played[0].window
    top = max(window, max((step.tokens for replay in played for step in replay.done), default=1))
    head = ["policy", "compactions", "largest", "over", "invalid", "input tokens", "cached", "cost", "user kept"]
    rows = []
    for number, replay in enumerate(played):
        each = replay.summary()
        cells = [
            f'<span class="dot" style="background:{COLOURS[number % len(COLOURS)]}"></span>{escape(each.policy)}',
            str(each.compactions), f"{each.largest:,}", str(each.over), str(each.invalid), f"{each.input_tokens:,}",
            f"{each.cache_share:.0%}", f"{each.cost:.4f}", f"{each.kept_users:.0%}",
        ]  # fmt: skip
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    charts = "".join(
        f"<h2>{escape(replay.policy)}</h2>{_chart(replay.done, top, window, COLOURS[number % len(COLOURS)])}"
        for number, replay in enumerate(played)
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Replay of {escape(name)}</title><style>{STYLE}</style></head><body>
<h1>Replay of {escape(name)}</h1>
<p>{len(played[0].messages)} messages, {len(played[0].points())} model calls, a window of {window:,} tokens. Cost in
{escape(played[0].unit)}; cached is the share of the input that an ideal prompt cache holds.</p>
<div class="wide"><table><thead><tr>{"".join(f"<th>{escape(title)}</th>" for title in head)}</tr></thead>
<tbody>{"".join(rows)}</tbody></table></div>
{charts}
<p>Each column is one request: the lower part came from the cache, the upper part was written to it. A triangle marks a
compaction, the dashed line the window.</p>
</body></html>
"""


def _chart(steps: list[Step], top: int, window: int, colour: str) -> str:
    if not steps:
        return "<p>No model call.</p>"
    step_width = WIDTH / len(steps)
    bars = []
    for number, step in enumerate(steps):
        left, full = number * step_width, step.tokens / top * HEIGHT
        cached = step.cached / top * HEIGHT
        title = f"call {number + 1}: {step.tokens:,} tokens, {step.cached:,} cached"
        bars.append(
            f'<g><title>{title}</title><rect x="{left:.2f}" y="{HEIGHT - full:.2f}" width="{step_width:.2f}" '
            f'height="{full:.2f}" fill="{colour}"/><rect x="{left:.2f}" y="{HEIGHT - cached:.2f}" '
            f'width="{step_width:.2f}" height="{cached:.2f}" fill="{colour}" fill-opacity=".45" stroke="none"/></g>'
        )
        if step.compacted:
            middle = left + step_width / 2
            bars.append(f'<path d="M{middle - 5:.2f} {HEIGHT + 14} h10 l-5 -9 z" fill="{colour}"/>')
    line = HEIGHT - window / top * HEIGHT
    return (
        f'<svg viewBox="0 -14 {WIDTH} {HEIGHT + 32}" role="img" aria-label="tokens of each request">{"".join(bars)}'
        f'<line class="axis" x1="0" x2="{WIDTH}" y1="{HEIGHT}" y2="{HEIGHT}"/>'
        f'<line class="window" x1="0" x2="{WIDTH}" y1="{line:.2f}" y2="{line:.2f}"/>'
        f'<text x="4" y="{line - 4:.2f}">window {window:,}</text></svg>'
    )
