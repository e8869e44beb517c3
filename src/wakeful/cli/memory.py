"""``wakeful memory``: look at what is kept, correct it, move it, erase it."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

from wakeful.cli.chart import bar
from wakeful.cli.opening import LAYERS, add_embedder, add_place, opened, scope_if_named, scope_of, whole
from wakeful.cli.rows import card, edge_data, line_of, node_data, shown
from wakeful.errors import InputError, NotFound

if TYPE_CHECKING:
    from wakeful.engine.memory import Memory
    from wakeful.records import MemoryEdge, MemoryNode, MemoryScope

STATUSES = ("active", "draft", "retracted")


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    group = commands.add_parser("memory", help="look at what is kept, correct it, move it, erase it")
    inner = group.add_subparsers(dest="what", metavar="WHAT", required=True)

    ls = _add(inner, "ls", "list memories, newest first", run_ls)
    ls.add_argument("--layer", choices=LAYERS, action="append", help="only this layer; may be repeated")
    ls.add_argument("--label", metavar="L", help="only memories of this label")
    ls.add_argument("--session", metavar="ID", help="only memories of this conversation")
    ls.add_argument("--status", choices=STATUSES, action="append", help="default: active")
    ls.add_argument("--owned", action="store_true", help="without what is inherited from the scopes above")
    ls.add_argument("--all", action="store_true", help="superseded and expired ones and every status too")
    ls.add_argument("--limit", type=whole, default=50, metavar="N", help="most memories to list (50)")

    for name, text, run in (
        ("show", "show everything about one memory", run_show),
        ("history", "show every version of a memory and of what it replaced", run_history),
        ("forget", "delete a memory for good, with what was taken from it alone", run_forget),
        ("approve", "make a draft active", run_approve),
    ):
        _add(inner, name, text, run).add_argument("id", metavar="ID")

    export = _add(inner, "export", "write the scope and all below it as JSON Lines", run_export)
    export.add_argument("file", metavar="FILE", nargs="?", default="-", help="default: standard output")
    export.add_argument("--no-vectors", action="store_true", help="leave the vectors out")

    load = _add(inner, "import", "read an export; twice is as good as once", run_import)
    load.add_argument("file", metavar="FILE", help="- reads standard input")
    load.add_argument(
        "--from", dest="source", metavar="SCOPE", help="the exported scope, to put its rows under --scope"
    )

    erase = _add(inner, "erase", "erase the scope and all below it, and prove it", run_erase)
    erase.add_argument("--yes", action="store_true", help="do it; without this nothing is erased")

    _add(inner, "stats", "count what the scope owns and sees", run_stats)
    reembed = _add(inner, "reembed", "give every memory a vector of another embedder", run_reembed)
    add_embedder(reembed)
    reembed.add_argument("--limit", type=whole, metavar="N", help="most memories of this run")


def _add(inner: Any, name: str, text: str, run: Any) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = inner.add_parser(name, help=text)
    add_place(command)
    command.add_argument("--json", action="store_true", help="print it as JSON")
    command.set_defaults(run=run)
    return command


def _print(data: Any) -> None:
    print(json.dumps(data, ensure_ascii=False))


def run_ls(arguments: argparse.Namespace) -> int:
    """List memories; exit code 1 when there is none."""
    from wakeful.engine.drive import utc_now
    from wakeful.ops import QueryNodes, Visibility
    from wakeful.records import MemoryLayer

    scope = scope_of(arguments)
    visibility = Visibility(
        at=utc_now(),
        layers=tuple(MemoryLayer(name) for name in arguments.layer) if arguments.layer else None,
        statuses=tuple(STATUSES) if arguments.all else tuple(arguments.status or ("active",)),  # type: ignore[arg-type]  # argparse checked them
        superseded=arguments.all,
        expired=arguments.all,
    )
    query = QueryNodes(
        scope=scope,
        visibility=visibility,
        label=arguments.label,
        session=arguments.session,
        owned_only=arguments.owned,
        limit=arguments.limit + 1,
    )
    with opened(arguments, vectors=False) as memory:
        (nodes,) = memory.store.execute((query,))
    more, nodes = len(nodes) > arguments.limit, nodes[: arguments.limit]
    if arguments.json:
        _print({"scope": scope.path, "nodes": [node_data(node) for node in nodes], "more": more})
    else:
        width = shutil.get_terminal_size((100, 24)).columns
        for node in nodes:
            print(line_of(node, width))
        if more:
            print(f"... and more; --limit {arguments.limit * 4} lists them", file=sys.stderr)
        if not nodes:
            print(f"nothing is kept in {scope.path}", file=sys.stderr)
    return 0 if nodes else 1


def one(memory: Memory, scope: MemoryScope, node_id: str) -> tuple[MemoryNode, tuple[MemoryEdge, ...]]:
    """A memory and its relations. Raises ``NotFound``."""
    from wakeful.ops import GetEdges, GetNodes

    nodes, edges = memory.store.execute((GetNodes(scope, (node_id,)), GetEdges(scope, (node_id,))))
    if not nodes:
        raise NotFound(f"no memory {node_id!r} is visible in {scope.path}")
    return nodes[0], tuple(edges)


def _missing(error: NotFound) -> int:
    print(f"wakeful: {error}", file=sys.stderr)
    return 1


def run_show(arguments: argparse.Namespace) -> int:
    """Show one memory; exit code 1 when it is not there."""
    from wakeful.cli.remember import names_of

    scope = scope_of(arguments)
    with opened(arguments, vectors=False) as memory:
        try:
            node, edges = one(memory, scope, arguments.id)
        except NotFound as error:
            return _missing(error)
        names = names_of(memory, scope, {end for edge in edges for end in (edge.source_id, edge.target_id)})
    if arguments.json:
        _print({**node_data(node), "edges": [edge_data(edge) for edge in edges]})
    else:
        print("\n".join(card(node, edges, names)))
    return 0


def run_history(arguments: argparse.Namespace) -> int:
    """Show the versions of a memory; exit code 1 when it is not there."""
    scope = scope_of(arguments)
    with opened(arguments, vectors=False) as memory:
        try:
            changes = memory.history(scope, arguments.id)
        except NotFound as error:
            return _missing(error)
    if arguments.json:
        rows = [
            {"at": c.at.isoformat(), "action": c.action, "reason": c.reason, "node": node_data(c.node)} for c in changes
        ]
        _print({"id": arguments.id, "changes": rows})
    else:
        for change in changes:
            why = f"  ({shown(change.reason, 80)})" if change.reason else ""
            text = shown(change.node.content or change.node.label, 80)
            print(f"{change.at:%Y-%m-%d %H:%M:%S}  {change.action:<9}  {change.node.id}  {text}{why}")
    return 0


def run_forget(arguments: argparse.Namespace) -> int:
    """Forget one memory; exit code 1 when the scope owns none of this id."""
    scope = scope_of(arguments)
    with opened(arguments, vectors=False) as memory:
        gone = memory.forget(scope, arguments.id)
    if arguments.json:
        _print({"found": gone.found, "ids": list(gone.ids), "edges": gone.edges, "kept": list(gone.kept)})
    elif gone.found:
        print(f"forgotten: {', '.join(gone.ids)}; {gone.edges} relations")
        for each in gone.kept:
            print(f"kept, since it has other sources: {each}")
    else:
        print(f"wakeful: {scope.path} owns no memory {arguments.id!r}", file=sys.stderr)
    return 0 if gone.found else 1


def run_approve(arguments: argparse.Namespace) -> int:
    """Approve a draft; exit code 1 when the scope owns none of this id."""
    scope = scope_of(arguments)
    with opened(arguments, vectors=False) as memory:
        try:
            node = memory.approve(scope, arguments.id)
        except NotFound as error:
            return _missing(error)
    if arguments.json:
        _print(node_data(node))
    else:
        print(f"active: {line_of(node, 100)}")
    return 0


def run_export(arguments: argparse.Namespace) -> int:
    """Write the export."""
    from wakeful.cli.compact import write_text

    scope = scope_of(arguments)
    with opened(arguments, vectors=False) as memory:
        data = memory.export(scope, vectors=not arguments.no_vectors)
    if arguments.file == "-":
        print(data)
        return 0
    write_text(arguments.file, f"{data}\n")
    counts = {
        kind: sum(record.get("kind") == name for record in data)
        for kind, name in (("nodes", "node"), ("edges", "edge"), ("changes", "change"))
    }
    if arguments.json:
        _print({"file": arguments.file, "scope": scope.path, **counts})
    else:
        print(
            f"{arguments.file}: {counts['nodes']} memories, {counts['edges']} relations, {counts['changes']} versions"
        )
    return 0


def run_import(arguments: argparse.Namespace) -> int:
    """Read an export into the scope; exit code 1 when a row of it was refused."""
    from pathlib import Path

    from wakeful.memory.export import Export
    from wakeful.records import MemoryScope

    scope = scope_of(arguments)
    source = MemoryScope.parse(arguments.source) if arguments.source else None
    try:
        text = sys.stdin.read() if arguments.file == "-" else Path(arguments.file).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"no such file: {arguments.file}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't read {arguments.file}: {error}") from None
    data = Export.read(text)
    if not data or data[0].get("kind") != "format":
        raise InputError(f"{arguments.file} is no export; wakeful memory export writes one")
    for rows in (data.nodes(), data.edges(), data.changes()):
        for _ in rows:  # every record is read before anything is written
            pass
    with opened(arguments, make=True, vectors=False) as memory:
        done = memory.import_(scope, data, source=source)
    if arguments.json:
        fields = {name: getattr(done, name) for name in ("nodes", "edges", "changes", "unchanged")}
        _print({**fields, "refused": [list(each) for each in done.refused]})
    else:
        print(
            f"imported {done.nodes} memories, {done.edges} relations, {done.changes} versions; "
            f"{done.unchanged} were there already"
        )
        for node_id, why in done.refused:
            print(f"refused: {node_id} ({why})", file=sys.stderr)
    return 1 if done.refused else 0


def run_erase(arguments: argparse.Namespace) -> int:
    """Erase the scope; exit code 1 when there was nothing, or when the scan afterwards still found a row."""
    scope = scope_of(arguments)
    with opened(arguments, vectors=False) as memory:
        if not arguments.yes:
            counts = memory.erase(scope, dry_run=True).counts
            raise InputError(
                f"this erases {scope.path} and every scope below it for good: {counts['nodes']} memories, "
                f"{counts['edges']} relations, {counts['history']} versions in {counts['scopes']} scopes; "
                "nothing was erased: say --yes to do it"
            )
        receipt = memory.erase(scope)
    if arguments.json:
        _print(
            {
                "scope": scope.path,
                "at": receipt.at.isoformat(),
                "counts": dict(receipt.counts),
                "pending": list(receipt.pending),
                "remaining": receipt.remaining,
                "verified": receipt.verified,
                "complete": receipt.complete,
            }
        )
    else:
        removed = ", ".join(f"{count} {name}" for name, count in receipt.counts.items() if count) or "nothing was there"
        print(f"{scope.path} erased at {receipt.at:%Y-%m-%d %H:%M:%S} UTC: {removed}")
        print("a scan found nothing left" if not receipt.remaining else f"STILL THERE: {receipt.remaining} rows")
        if receipt.pending:
            print(f"pending: {', '.join(receipt.pending)}; until then bytes may lie in the store's own files")
    return 0 if receipt.found and receipt.verified else 1


def run_stats(arguments: argparse.Namespace) -> int:
    """Print the counts."""
    scope = scope_of(arguments)
    with opened(arguments, vectors=False) as memory:
        counts = memory.stats(scope)
        held = memory.store.embedding
    if arguments.json:
        _print({"scope": scope.path, **counts, "embedder": held.model if held is not None else None})
        return 0
    print(f"{scope.path}: {counts['nodes']:,} memories, {counts['edges']:,} relations, {counts['history']:,} versions")
    print(f"  visible with the scopes above: {counts['visible']:,}; superseded: {counts['superseded']:,}")
    print(f"  with vectors: {counts['embedded']:,} ({held.model if held is not None else 'no embedder'})")
    total = max(1, counts["nodes"])
    for name, count in sorted(counts["layers"].items(), key=lambda item: -item[1]):
        print(f"  {name:<12} {bar(count / total, 30)} {count:>9,}")
    for name, count in sorted(counts["statuses"].items()):
        if name != "active":
            print(f"  {name}: {count:,}")
    return 0


def run_reembed(arguments: argparse.Namespace) -> int:
    """Re-embed the scope, or the whole store when none is named; exit code 1 when memories are left."""
    if arguments.embedder == "none":
        raise InputError("reembed needs an embedder: --embedder static, minilm or multilingual")
    scope = scope_if_named(arguments)
    with opened(arguments, adopt=True) as memory:
        done = memory.reembed(scope, limit=arguments.limit)
    if arguments.json:
        _print({"model": done.model, "done": done.done, "remaining": done.remaining})
    else:
        print(f"{done.done:,} memories have a vector of {done.model} now; {done.remaining:,} are left")
    return 1 if done.remaining else 0
