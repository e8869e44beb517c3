"""``wakeful remember`` and ``wakeful recall``."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

from wakeful.cli.opening import LAYERS, add_embedder, add_place, moment, opened, scope_of, whole
from wakeful.cli.rows import node_data, shown, text_of
from wakeful.errors import InputError

if TYPE_CHECKING:
    from wakeful.engine.memory import Memory
    from wakeful.memory.receipts import Remembered
    from wakeful.records import MemoryScope
    from wakeful.retrieval.hits import Recall, Spread


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    remember = commands.add_parser("remember", help="keep something in long-term memory")
    remember.add_argument("text", metavar="TEXT", help="what to remember; - reads standard input")
    add_place(remember)
    remember.add_argument("--layer", choices=LAYERS, help="default: semantic, a fact")
    remember.add_argument("--label", default="", metavar="L", help="a short name, for exact lookup")
    remember.add_argument("--at", type=moment, metavar="TIME", help="when it was said; default: now")
    remember.add_argument("--session", metavar="ID", help="the conversation it comes from")
    remember.add_argument("--speaker", metavar="NAME", help="who said it")
    remember.add_argument("--ref", metavar="ID", help="your own id of it")
    remember.add_argument("--importance", type=float, metavar="N", help="1 (trivial) to 10 (vital)")
    remember.add_argument("--no-extract", action="store_true", help="take no facts from it")
    add_embedder(remember)
    remember.add_argument("--json", action="store_true", help="print the receipt as JSON")
    remember.set_defaults(run=run_remember)

    recall = commands.add_parser("recall", help="find what matters for a query")
    recall.add_argument("query", metavar="QUERY")
    add_place(recall)
    recall.add_argument("-k", type=whole, default=10, metavar="N", help="most memories to give (10)")
    recall.add_argument("--layer", choices=LAYERS, action="append", help="only this layer; may be repeated")
    recall.add_argument("--as-of", type=moment, metavar="TIME", help="what was true in the world then")
    recall.add_argument("--budget", type=int, metavar="N", help="most tokens of the text")
    recall.add_argument(
        "--explain", nargs="?", const="", metavar="ID", help="draw seeds, paths and scores; with ID: why it came or not"
    )
    add_embedder(recall)
    recall.add_argument("--json", action="store_true", help="print hits, reasons and activation as JSON")
    recall.set_defaults(run=run_recall)


def run_remember(arguments: argparse.Namespace) -> int:
    """Remember a text and print the receipt."""
    scope = scope_of(arguments)
    text = sys.stdin.read() if arguments.text == "-" else arguments.text
    if not text.strip():
        raise InputError("there is nothing to remember: the text is empty")
    if arguments.importance is not None and not 1 <= arguments.importance <= 10:
        raise InputError(f"--importance is 1 to 10, not {arguments.importance:g}")
    with opened(arguments, make=True) as memory:
        receipt = memory.remember(
            scope,
            text.strip(),
            layer=arguments.layer,
            label=arguments.label,
            at=arguments.at,
            session=arguments.session,
            speaker=arguments.speaker,
            ref=arguments.ref,
            importance=arguments.importance,
            extract=not arguments.no_extract,
        )
    if arguments.json:
        print(json.dumps(receipt_data(receipt), ensure_ascii=False))
    else:
        print("\n".join(receipt_lines(receipt)))
    return 0


def receipt_data(receipt: Remembered) -> dict[str, Any]:
    """A receipt as JSON data."""
    return {
        "scope": receipt.scope.path,
        "written": [
            {"action": each.action, "reason": each.reason, "retired": list(each.retired), **node_data(each.node)}
            for each in receipt.written
        ],
        "scrubbed": receipt.scrubbed,
        "quarantined": list(receipt.quarantined),
        "parked": list(receipt.parked),
        "notes": list(receipt.notes),
    }


def receipt_lines(receipt: Remembered) -> list[str]:
    """A receipt as lines."""
    lines = []
    for each in receipt.written:
        why = f"  ({shown(each.reason, 100)})" if each.reason else ""
        lines.append(f"{each.action:<9} {each.node.id}  {each.node.layer}  {shown(text_of(each.node), 80)}{why}")
        lines += [f"          replaces {old}" for old in each.retired]
    if receipt.scrubbed:
        lines.append(f"{receipt.scrubbed} secrets were removed before anything was stored")
    lines += [f"waits for approval: {each} (wakeful memory approve {each})" for each in receipt.quarantined]
    lines += [f"put off: {each}" for each in receipt.parked]
    lines += [f"note: {each}" for each in receipt.notes]
    return lines


def run_recall(arguments: argparse.Namespace) -> int:
    """Print the hits; exit code 1 when there is none."""
    scope = scope_of(arguments)
    if not arguments.query.strip():
        raise InputError("there is nothing to recall by: the query is empty")
    if arguments.budget is not None and arguments.budget < 0:
        raise InputError(f"--budget is 0 or more tokens, not {arguments.budget}")
    with opened(arguments) as memory:
        if arguments.explain:
            return _explain(memory, scope, arguments)
        found = memory.recall(
            scope,
            arguments.query,
            arguments.k,
            layers=arguments.layer,
            as_of=arguments.as_of,
            budget=arguments.budget,
        )
        if arguments.json:
            print(json.dumps(recall_data(found), ensure_ascii=False))
        elif arguments.explain is not None:
            from wakeful.cli.recall_picture import picture

            width = shutil.get_terminal_size((100, 24)).columns
            print("\n".join(picture(found, _names(memory, scope, found), width)))
        else:
            _print_hits(found)
    return 0 if found.hits else 1


def _print_hits(found: Recall) -> None:
    width = max(60, shutil.get_terminal_size((100, 24)).columns)
    for hit in found.hits:
        who = f"{shown(hit.node.source.speaker, 24)}: " if hit.node.source.speaker else ""
        head = f"{hit.score:.2f}  {hit.node.id}  {hit.node.asserted_at:%Y-%m-%d}  "
        print(head + shown(f"{who}{text_of(hit.node)}", max(24, width - len(head))))
    if not found.hits:
        print("nothing is remembered about this", file=sys.stderr)
    for node_id, why in found.left_out:
        print(f"left out: {node_id} ({why})", file=sys.stderr)
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)


def recall_data(found: Recall) -> dict[str, Any]:
    """A recall as JSON data."""
    log = found.activation_log
    return {
        "query": found.query,
        "scope": found.scope.path,
        "hits": [
            {
                "score": round(hit.score, 6),
                "reasons": list(hit.reasons),
                "parts": {name: round(value, 6) for name, value in hit.parts},
                "also": list(hit.also),
                "path": [_step(step) for step in log.path_to(hit.node.id)],
                "node": node_data(hit.node),
            }
            for hit in found.hits
        ],
        "seeds": [[node_id, round(amount, 6)] for node_id, amount in log.seeds],
        "brought_in": list(log.brought_in),
        "text": found.text,
        "left_out": [list(each) for each in found.left_out],
        "candidates": found.candidates,
        "notes": list(found.notes),
    }


def _step(step: Spread) -> dict[str, Any]:
    return {
        "source": step.source,
        "target": step.target,
        "relation": step.relation,
        "hop": step.hop,
        "amount": round(step.amount, 6),
        "fan": step.fan,
    }


def _explain(memory: Memory, scope: MemoryScope, arguments: argparse.Namespace) -> int:
    why = memory.explain(
        scope, arguments.query, arguments.explain, k=arguments.k, layers=arguments.layer, as_of=arguments.as_of
    )
    if arguments.json:
        data = {
            "id": why.id,
            "recalled": why.recalled,
            "place": why.place,
            "score": round(why.hit.score, 6) if why.hit is not None else None,
            "reasons": list(why.reasons),
            "path": [_step(step) for step in why.path],
        }
        print(json.dumps(data, ensure_ascii=False))
    else:
        from wakeful.cli.recall_picture import explanation

        ends = {end for step in why.path for end in (step.source, step.target)} | {why.id}
        print("\n".join(explanation(why, names_of(memory, scope, ends))))
    return 0 if why.recalled else 1


def _names(memory: Memory, scope: MemoryScope, found: Recall) -> dict[str, str]:
    log = found.activation_log
    wanted = {node_id for node_id, _ in log.seeds} | {end for step in log.steps for end in (step.source, step.target)}
    return names_of(memory, scope, wanted | {hit.node.id for hit in found.hits})


def names_of(memory: Memory, scope: MemoryScope, ids: set[str]) -> dict[str, str]:
    """What the memories of these ids say, as far as the scope sees them."""
    from wakeful.ops import GetNodes

    (nodes,) = memory.store.execute((GetNodes(scope, tuple(sorted(ids))),))
    return {node.id: text_of(node) for node in nodes}
