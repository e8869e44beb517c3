"""Score candidates by meaning: the cosine between the query's vector and a text's, brought to 0 to 1.

Cosines of one model crowd into a narrow band, so only their place between the least and the best of the candidates
found by vector says something. A candidate that was found by words alone counts 0 here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def spread_out(scores: Sequence[float]) -> list[float]:
    """Bring scores to 0 to 1 by their least and greatest (min-max); equal scores become 0."""
    if not scores:
        return []
    least, most = min(scores), max(scores)
    if most <= least:
        return [0.0] * len(scores)
    return [(score - least) / (most - least) for score in scores]


def closeness(cosines: Mapping[str, float]) -> dict[str, float]:
    """Bring the cosines of what was found by vector to 0 to 1, by node id. A single one counts in full."""
    if len(cosines) == 1:
        return dict.fromkeys(cosines, 1.0)
    return dict(zip(cosines, spread_out(list(cosines.values())), strict=True))
