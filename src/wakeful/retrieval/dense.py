"""Score candidates by meaning: the cosine between the query's vector and a text's, brought to 0 to 1.

Cosines of one model crowd into a narrow band, so only their place between the least and the best of the candidates
found by vector says something. A candidate that was found by words alone counts 0 here.
"""

from __future__ import annotations

from collections.abc import Sequence


def spread_out(scores: Sequence[float]) -> list[float]:
    """Bring scores to 0 to 1 by their least and greatest (min-max); equal scores become 0."""
    if not scores:
        return []
    least, most = min(scores), max(scores)
    if most <= least:
        return [0.0] * len(scores)
    return [(score - least) / (most - least) for score in scores]


def closeness(cosines: Sequence[float | None]) -> list[float]:
    """Bring the cosines of what was found by vector to 0 to 1; None becomes 0. A single one counts in full."""
    held = [cosine for cosine in cosines if cosine is not None]
    if len(held) == 1:
        return [0.0 if cosine is None else 1.0 for cosine in cosines]
    spread = iter(spread_out(held))
    return [0.0 if cosine is None else next(spread) for cosine in cosines]
