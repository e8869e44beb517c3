"""Draw bars, gauges and line charts with plain characters, as wide as asked and never wider."""

from __future__ import annotations

from collections.abc import Sequence

BLOCKS = " ▏▎▍▌▋▊▉█"
LEVELS = " ▁▂▃▄▅▆▇█"


def bar(share: float, width: int) -> str:
    """A horizontal bar that fills ``share`` (0 to 1) of ``width`` characters, in eighths."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (BLOCKS[rest] if rest else "")).ljust(width)


def stacked(parts: Sequence[tuple[str, float]], width: int) -> str:
    """One line of ``width`` characters divided by share; each part is drawn with its own character.

    ``parts`` are (character, share) with shares of the whole (0 to 1); what they leave is drawn as dots.
    """
    out, used = [], 0.0
    for character, share in parts:
        start = round(used * width)
        used = min(1.0, used + max(0.0, share))
        out.append(character * (round(used * width) - start))
    return "".join(out).ljust(width, "·")[:width]


def columns(values: Sequence[float], height: int, width: int, *, top: float | None = None) -> list[str]:
    """A column chart of ``height`` lines; values are averaged down to ``width`` columns. ``top`` is the full height."""
    if not values:
        return [" " * width] * height
    sampled = _resample(values, width)
    scale = top if top is not None else max(sampled)
    eighths = [0 if scale <= 0 else round(min(1.0, value / scale) * height * 8) for value in sampled]
    lines = []
    for row in range(height - 1, -1, -1):
        lines.append("".join(LEVELS[max(0, min(8, level - row * 8))] for level in eighths))
    return lines


def _resample(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    out = []
    for column in range(width):
        start = column * len(values) // width
        stop = max(start + 1, (column + 1) * len(values) // width)
        out.append(max(values[start:stop]))
    return out


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Lines of a table; the first row is its head. Columns in ``right`` are aligned to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
        if number == 0:
            lines.append("  ".join("─" * width for width in widths))
    return lines
