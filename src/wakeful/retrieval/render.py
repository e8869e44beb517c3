"""Write recalled memories as text within a token budget, counted on the text as it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wakeful.errors import ConfigError
from wakeful.records import MemoryNode
from wakeful.retrieval.hits import Hit

CUT = " …[cut]"
"""Marks a text that was shortened."""

Tokens = Callable[[str], int]


def line_of(node: MemoryNode) -> str:
    """One line for a memory: when, who, what; a low trust is said."""
    date = node.asserted_at.strftime("%Y-%m-%d")
    who = f"{node.source.speaker}: " if node.source.speaker else ""
    doubt = "(untrusted) " if node.source.trust == "low" else ""
    return f"- [{date}] {doubt}{who}{' '.join((node.content or node.label).split())}"


def render(
    hits: Sequence[Hit], budget: int | None, tokens: Tokens
) -> tuple[tuple[Hit, ...], str, tuple[tuple[str, str], ...]]:
    """Write the hits, best first, a line each; gives the hits shown, the text, and what was left out and why.

    A line that does not fit is passed over and the next is tried. When none fits, the best is shortened, and marked.
    ``budget`` None: all are written. Raises ``ConfigError`` for a negative budget.
    """
    if budget is None:
        return tuple(hits), "\n".join(line_of(hit.node) for hit in hits), ()
    if budget < 0:
        raise ConfigError(f"a token budget is 0 or more, not {budget}")
    shown: list[Hit] = []
    text = ""
    left_out: list[tuple[str, str]] = []
    for hit in hits:
        line = line_of(hit.node)
        longer = f"{text}\n{line}" if text else line
        if tokens(longer) <= budget:
            shown.append(hit)
            text = longer
        else:
            left_out.append((hit.node.id, f"its {tokens(line)} tokens do not fit into the budget of {budget}"))
    if not shown and hits:
        text = _shortened(line_of(hits[0].node), budget, tokens)
        if text:
            shown.append(hits[0])
            left_out[0] = (hits[0].node.id, f"cut to fit into the budget of {budget} tokens")
    return tuple(shown), text, tuple(left_out)


def _shortened(line: str, budget: int, tokens: Tokens) -> str:
    """The longest start of the line that fits with its mark; empty when not even a word does."""
    words = line.split(" ")
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if tokens(" ".join(words[:middle]) + CUT) <= budget:
            low = middle
        else:
            high = middle - 1
    if low > 3:
        return " ".join(words[:low]) + CUT
    # Scripts without spaces: cut by characters.
    low, high = 0, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        if tokens(line[:middle] + CUT) <= budget:
            low = middle
        else:
            high = middle - 1
    return line[:low] + CUT if low > len("- [2024-01-01] ") else ""
