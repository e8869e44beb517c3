"""How many of the newest rounds a digest leaves alone, when the caller did not say.

They stay verbatim as long as there is room. When there is not, they yield, oldest first, to the digest: in a small window
the exact values of everything that left are worth more than a few more rounds word for word. A number that the caller
gave is kept to.
"""

from __future__ import annotations

from collections.abc import Sequence

from wakeful.compaction.draft import Draft
from wakeful.compaction.policy import digest_most
from wakeful.compaction.rounds import Round

LEAST_KEPT = 1
"""Newest rounds that never yield."""

SHARE = 0.5
"""Share of what it stands for that a digest wants; less is enough for a source that holds few values."""


def to_keep(draft: Draft) -> int:
    """Give the number of newest rounds to leave alone, so that a digest of the others has the room that it wants."""
    keep = draft.policy.keep_recent
    if not draft.policy.yields:
        return keep
    while keep > LEAST_KEPT and _left(draft, old := draft.old(keep)) < wanted(draft, old):
        keep -= 1
    return keep


def summary_tokens(draft: Draft) -> int:
    """Tokens of the summaries of earlier compactions, which a new one takes the place of."""
    return sum([draft.weights[old.place][1] for old in draft.summaries if old.block is None])


def _left(draft: Draft, old: Sequence[Round]) -> int:
    """Tokens that are left for a digest below the target."""
    return draft.goal - (draft.tokens - draft.weight_of_all(old) - summary_tokens(draft))


def wanted(draft: Draft, old: Sequence[Round]) -> int:
    """Tokens that a digest of these rounds should have."""
    source = draft.weight_of_all(old) + summary_tokens(draft)
    return min(digest_most(draft.goal), int(source * SHARE)) if old else 0
