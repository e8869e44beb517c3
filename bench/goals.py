"""What each figure is to reach, and what others reach: the table at the head of ``RESULTS.md``.

A goal reads its figure out of a kept result; one without a result is shown as not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Results = dict[str, dict[str, Any]]
"""The ``result`` of each benchmark, by its name."""


@dataclass(frozen=True)
class Goal:
    """One figure."""

    figure: str
    bench: str
    read: Callable[[Any], float]
    """Gives the figure from the benchmark's result. A ``LookupError``: it was not measured."""
    goal: float
    unit: str = ""
    least: bool = False
    """True: the goal is a least value; False: a most value."""
    peer: str = ""
    """What is known of others, and by whom it was measured."""

    def met(self, value: float) -> bool:
        """Whether a value reaches the goal."""
        return value >= self.goal if self.least else value <= self.goal


def _row(rows: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    for row in rows:
        if all(row.get(name) == value for name, value in wanted.items()):
            return row
    raise LookupError(wanted)


def _cold(way: str) -> Callable[[Any], float]:
    return lambda result: max(row[f"{way} ratio"] for row in result["cold"] if row["messages"] == 5_000)


def _recall(size: int) -> Callable[[Any], float]:
    return lambda result: result[str(size)]["p95 ms"]


def _assembly(size: int, field: str) -> Callable[[Any], float]:
    return lambda result: _row(result["latency"], nodes=size)[field]


def _flat(result: Any) -> float:
    return _assembly(50_000, "stratified_p95_ms")(result) / _assembly(1_000, "stratified_p95_ms")(result)


def _naps(result: Any) -> float:
    small, large = (_row(result["quick_nap"], graph=graph)["seconds"] for graph in (10_000, 500_000))
    return max(small, large) / min(small, large)


def _merge_growth(result: Any) -> float:
    return _row(result["merge"], nodes=5_000)["seconds"] / _row(result["merge"], nodes=1_250)["seconds"] / 4


def _costs(figure: str) -> Callable[[Any], float]:
    def read(result: Any) -> float:
        worst = 0.0
        for rows in result.values():
            whole = next(row[figure] for name, row in rows.items() if name.endswith(", without extraction"))
            worst = max(worst, *(row[figure] - whole for name, row in rows.items() if name.startswith("without ")))
        return worst

    return read


_SYMFONIC = "symfonic-core 9.12, published"

GOALS: tuple[Goal, ...] = (
    Goal("invalid histories in the sweep", "compaction_sweep", lambda r: r["broken"], 0,
         peer="each fails one of the nine adversarial inputs"),
    Goal("tool arguments to come still in context, 25 %, default settings", "compaction_facts",
         lambda r: r["tau_bench, target 25%, default"]["in_context"], 0.93, least=True, peer="0.59"),
    Goal("the same, recoverable", "compaction_facts", lambda r: r["tau_bench, target 25%, default"]["recoverable"], 1.0,
         least=True, peer="none"),
    *(Goal(f"cold {name} of 5,000 messages, share of LangChain's time", "compaction_speed", _cold(way), 0.125)
      for name, way in (("oldest_first", "oldest_first"), ("clear", "clear"),
                        ("ladder with the extractive digest", "ladder (extractive)"))),
    Goal("a window that gets 2 new messages after 5,000, share of LangChain's time", "compaction_speed",
         lambda r: _row(r["window"], messages=5_000)["ratio"], 0.005),
    Goal("the same, growth", "compaction_speed", lambda r: r["growth_ns_a_message"], 40, "ns a message"),
    Goal("the same, memory beside the messages", "compaction_speed",
         lambda r: max(row["bytes a message"] for row in r["window"]), 1_200, "bytes a message"),
    Goal("cost against the best fixed policy", "compaction_cost", lambda r: 1 + r["against_best_single"], 0.9),
    Goal("LoCoMo recall@10, light embedder", "recall-static",
         lambda r: r["locomo"]["wakeful, static"]["recall@10"], 82, "%", least=True,
         peer="79.9 tuned, 74.6 with one setting"),
    Goal("LoCoMo nDCG@10, light embedder", "recall-static",
         lambda r: r["locomo"]["wakeful, static"]["ndcg@10"], 62, "%", least=True, peer="60.9 tuned"),
    Goal("LoCoMo recall@10, no embedder", "recall-static",
         lambda r: r["locomo"]["wakeful, no embedder"]["recall@10"], 77, "%", least=True, peer="75.9 tuned"),
    *(Goal(f"most that an ingredient costs, {figure} on either set", "recall-static-without", _costs(figure), 0.5,
           "points") for figure in ("recall@10", "ndcg@10")),
    Goal("LoCoMo recall@10, MiniLM", "recall-minilm", lambda r: r["locomo"]["wakeful, minilm"]["recall@10"], 84, "%",
         least=True),
    Goal("LoCoMo nDCG@10, MiniLM", "recall-minilm", lambda r: r["locomo"]["wakeful, minilm"]["ndcg@10"], 64, "%",
         least=True),
    *(Goal(f"recall p95, {size:,} nodes, SQLite", "recall_latency", _recall(size), most, "ms CPU", peer=peer)
      for size, most, peer in ((1_000, 3, "2.9"), (10_000, 4, "31.7"), (50_000, 6, "156"), (200_000, 12, ""))),
    Goal("recall p95, 200,000 nodes, PostgreSQL", "postgres_latency",
         lambda r: r["one scope"]["200000"]["recall"]["p95"], 12, "ms"),
    Goal("recall in one of many scopes, against alone", "store_latency",
         lambda r: next(row["ratio p50"] for name, row in r.items() if name.endswith("scopes")), 1.5, "x"),
    Goal("raw turns remembered", "store_ingest_remember", lambda r: min(each["by CPU"] for each in r["tenths"]), 8_000,
         "a CPU second", least=True, peer="mem0 with faiss 315, falling to 39"),
    Goal("bytes on disk, against text and vector", "store_ingest_remember", lambda r: r["disk ratio"], 4, "x"),
    Goal("acknowledged writes lost, 8 writers, one killed", "store_concurrency", lambda r: r["lost"], 0,
         peer="several lose some"),
    Goal("bytes found after erasure", "store_erase", lambda r: r["hits after"], 0),
    Goal("assembly p95, 50,000 nodes, stratified", "assembly", _assembly(50_000, "stratified_p95_ms"), 15, "ms CPU",
         peer=f"427 ({_SYMFONIC})"),
    Goal("the same, 200,000 nodes", "assembly", _assembly(200_000, "stratified_p95_ms"), 25, "ms CPU"),
    Goal("the same, 50,000 against 1,000 nodes", "assembly", _flat, 2, "x", peer="grows with the graph"),
    Goal("JIT assembly p95, 50,000 nodes", "assembly", _assembly(50_000, "jit_p95_ms"), 0.2, "ms CPU",
         peer="0.10 to 0.14"),
    Goal("quick nap, graph of 500,000 against 10,000", "consolidation", _naps, 1.3, "x",
         peer=f"5 from 10,000 to 50,000 ({_SYMFONIC})"),
    Goal("full cycle, 10,000 nodes, 5 % touched", "consolidation",
         lambda r: _row(r["full_cycle"], graph=10_000)["seconds"], 0.5, "s CPU", peer=f"10 ({_SYMFONIC})"),
    Goal("full cycle, 50,000 nodes, 5 % touched", "consolidation",
         lambda r: _row(r["full_cycle"], graph=50_000)["seconds"], 2, "s CPU", peer=f"not done in 420 ({_SYMFONIC})"),
    Goal("co-occurrence, burst of 4,000", "consolidation", lambda r: _row(r["burst"], nodes=4_000)["seconds"], 0.2,
         "s CPU", peer=f"31.6 ({_SYMFONIC})"),
    Goal("merge scan, 5,000 against 1,250, over linear", "consolidation", _merge_growth, 1.5, "x", peer="quadratic"),
    Goal("a night of 1,000 tenants, a worker killed: done twice or lost", "workers",
         lambda r: r["twice"] + r["lost"], 0),
    Goal("recall p95 while a nap runs elsewhere, against idle", "recall_during_nap_sqlite",
         lambda r: r["rows"]["process"]["ratio_p95"], 1.5, "x"),
    Goal("overhead of a turn, 5,000 messages, p50", "turn_overhead", lambda r: r["plain"]["5000"]["p50_ms"], 1, "ms"),
    Goal("the same, above 200 messages", "turn_overhead", lambda r: r["plain"]["growth_ms"], 0.3, "ms"),
    Goal("the same with a memory of 50,000 nodes", "turn_overhead",
         lambda r: r["memory of 50000 nodes"]["200"]["p50_ms"], 20, "ms"),
    Goal("rounds of a long agent for one compaction", "long_agent_anthropic", lambda r: r["rounds_per_compaction"], 60,
         least=True),
    Goal("requests of the long agent that were refused", "long_agent_anthropic", lambda r: r["requests_refused"], 0),
    Goal("kill -9 of a durable session: lost messages, tools run twice", "durable_kill",
         lambda r: r["acknowledged_lost"] + r["tool_runs_twice"] + r["problems"], 0),
)  # fmt: skip


def table(results: Results) -> list[str]:
    """The goals as a table: figure, value, goal, others."""
    lines = ["| figure | measured | goal | | others |", "|---|---|---|---|---|"]
    for each in GOALS:
        sign = "at least" if each.least else "at most"
        goal = f"{sign} {each.goal:g} {each.unit}".strip()
        try:
            value = each.read(results[each.bench])
        except (LookupError, TypeError, StopIteration):
            lines.append(f"| {each.figure} | not measured | {goal} | | {each.peer} |")
            continue
        mark = "reached" if each.met(value) else "**short**"
        shown = f"{value:,.0f}" if value >= 1_000 else f"{value:.4g}"
        lines.append(f"| {each.figure} | {shown} {each.unit} | {goal} | {mark} | {each.peer} |".replace("  ", " "))
    return lines
