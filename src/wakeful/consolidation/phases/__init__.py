"""The phases of a cycle, one a module, and the rosters of the cadences."""

from __future__ import annotations

from wakeful.consolidation.phase import Phase
from wakeful.consolidation.phases.cooccurrence import COOCCURRENCE
from wakeful.consolidation.phases.decay import DECAY
from wakeful.consolidation.phases.entity_links import ENTITY_LINKS
from wakeful.consolidation.phases.episodic_summary import EPISODIC_SUMMARY
from wakeful.consolidation.phases.expire import EXPIRE
from wakeful.consolidation.phases.merge import MERGE
from wakeful.consolidation.phases.meta_nodes import META_NODES
from wakeful.consolidation.phases.pending_edges import PENDING_EDGES
from wakeful.consolidation.phases.profile import PROFILE
from wakeful.consolidation.phases.promote import PROMOTE
from wakeful.consolidation.phases.prune import PRUNE
from wakeful.consolidation.phases.strengthen import STRENGTHEN
from wakeful.consolidation.phases.supersede import SUPERSEDE
from wakeful.consolidation.report import Cadence

FULL: tuple[Phase, ...] = (
    STRENGTHEN,
    COOCCURRENCE,
    ENTITY_LINKS,
    PENDING_EDGES,
    SUPERSEDE,
    MERGE,
    DECAY,
    EXPIRE,
    EPISODIC_SUMMARY,
    META_NODES,
    PROMOTE,
    PROFILE,
    PRUNE,
)
LIGHT: tuple[Phase, ...] = (STRENGTHEN, COOCCURRENCE, PENDING_EDGES, SUPERSEDE, EXPIRE)

ROSTERS: dict[Cadence, tuple[Phase, ...]] = {"quick_nap": LIGHT, "nightly": FULL, "deep_sleep": FULL}
"""Phases by cadence, in the order in which they run: later ones see what earlier ones changed."""
