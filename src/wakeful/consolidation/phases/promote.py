"""What repeats is kept in another layer: statements become facts, successful patterns of tool use become draft skills.

A statement counts when episodes of at least two sessions say it in the same words, ``promote_repeats`` times in all. A
pattern is one tool used right before another in a session, both successful (episodes with ``properties["tool"]`` and
``properties["ok"]``, as results of tools have). Skills are drafts: they rule nothing until they are approved, and are made
of the tools' names alone, never of what was returned. Any other low-trust episode promotes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from wakeful.consolidation.phase import Cycle, Outcome, Phase
from wakeful.consolidation.wording import folded
from wakeful.ids import content_id
from wakeful.needs import Flow, run
from wakeful.ops import GetNodes, PutEdges, PutNodes
from wakeful.records import MemoryEdge, MemoryLayer, MemoryNode, Source

RELATION = "FROM"
"""From what is promoted to the episodes that it was taken from, as from any fact to its turn."""


def promote(cycle: Cycle) -> Flow[Outcome]:
    """Promote what the window's episodes repeat."""
    episodes = cycle.layer(MemoryLayer.EPISODIC)
    trusted = [node for node in episodes if node.source.trust != "low"]
    used = [node for node in episodes if node.source.trust != "low" or node.source.by == "tool"]
    made = {node.id: node for node in (*_facts(cycle, trusted), *_skills(cycle, used))}
    if not made:
        return Outcome(rows_read=len(episodes))
    (known,) = yield from run(GetNodes(cycle.scope, tuple(made)))
    fresh = tuple(node for key, node in made.items() if key not in {each.id for each in known})
    links = tuple(
        MemoryEdge.new(
            scope=cycle.scope,
            source_id=node.id,
            target_id=entry,
            relation=RELATION,
            at=cycle.started_at,
            provenance="consolidation",
        )
        for node in fresh
        for entry in node.source.entries
    )
    return Outcome(
        batches=((PutNodes(cycle.scope, fresh), PutEdges(cycle.scope, links)),) if fresh else (),
        changed=len(fresh),
        rows_read=len(episodes) + len(known),
        notes=tuple(f"{node.layer}: {node.content[:80]}" for node in fresh[:20]),
    )


def _facts(cycle: Cycle, episodes: list[MemoryNode]) -> list[MemoryNode]:
    groups: dict[str, list[MemoryNode]] = defaultdict(list)
    for node in episodes:
        words = folded(node.content)
        if len(words.split()) >= 3 and "tool" not in node.properties and not node.content.rstrip().endswith("?"):
            groups[words].append(node)
    facts = []
    for words, group in groups.items():
        if len(group) < cycle.settings.promote_repeats or len({node.source.session for node in group}) < 2:
            continue
        first = min(group, key=lambda node: (node.asserted_at, node.id))
        facts.append(
            MemoryNode.new(
                id=content_id(cycle.scope.path, "fact", words, prefix="fa-"),
                scope=cycle.scope,
                layer=MemoryLayer.SEMANTIC,
                label="fact",
                content=first.content,
                at=max(node.asserted_at for node in group),
                importance=min(10.0, 5.0 + len(group) / 2),
                source=Source(
                    by="consolidation", entries=tuple(sorted(node.id for node in group)), ref=first.source.ref
                ),
            )
        )
    return facts


def _skills(cycle: Cycle, episodes: list[MemoryNode]) -> list[MemoryNode]:
    runs: dict[str, list[MemoryNode]] = defaultdict(list)
    for node in sorted(episodes, key=lambda node: (node.asserted_at, node.id)):
        if isinstance(node.properties.get("tool"), str):
            runs[node.source.session or ""].append(node)
    seen: dict[tuple[str, str], list[MemoryNode]] = defaultdict(list)
    for steps in runs.values():
        for before, after in pairwise(steps):
            pair = before.properties["tool"], after.properties["tool"]
            if before.properties.get("ok") is True and after.properties.get("ok") is True and pair[0] != pair[1]:
                seen[pair].append(after)
    skills = []
    for (first, then), group in sorted(seen.items()):
        if len(group) < cycle.settings.promote_repeats or len({node.source.session for node in group}) < 2:
            continue
        skills.append(
            MemoryNode.new(
                id=content_id(cycle.scope.path, "skill", first, then, prefix="sk-"),
                scope=cycle.scope,
                layer=MemoryLayer.PROCEDURAL,
                label=then,
                content=f"{first} was used before {then} and worked, {len(group)} times.",
                at=max(node.asserted_at for node in group),
                status="draft",
                properties={"tool": then, "preconditions": [first]},
                source=Source(by="consolidation", entries=tuple(sorted(node.id for node in group))),
            )
        )
    return skills


PROMOTE = Phase(
    name="promote", reads=("content", "properties"), writes=("nodes:semantic", "nodes:procedural"), run=promote
)
