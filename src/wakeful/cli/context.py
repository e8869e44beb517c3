"""``wakeful context``: the assembled context of a turn, with a picture of its strata."""

from __future__ import annotations

import argparse
import asyncio
import json
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.cli.chart import bar
from wakeful.cli.opening import add_embedder, add_place, opened, scope_of
from wakeful.errors import InputError

if TYPE_CHECKING:
    from wakeful.assembly.context import AssembledContext
    from wakeful.needs import ToolSpec
    from wakeful.records import MemoryScope

LAST = "cli:context"
"""Key of the scope's state under which the last rendering is kept."""


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    command = commands.add_parser("context", help="show what a model would see on a turn")
    command.add_argument("query", metavar="QUERY")
    add_place(command)
    add_embedder(command)
    command.add_argument("--strategy", choices=("jit", "stratified"), default="stratified")
    command.add_argument("--template", metavar="FILE", help="the tenant's template, a TOML file")
    command.add_argument("--budget", type=int, default=6_000, metavar="N", help="most tokens of the prompt")
    command.add_argument("--memory-most", type=int, default=2_000, metavar="N", help="most tokens of the memories")
    command.add_argument("--tool", action="append", default=[], metavar="NAME=TEXT", help="a tool, repeatable")
    command.add_argument("--diff", action="store_true", help="show the first byte that moved since the last one")
    command.add_argument("--json", action="store_true", help="print everything as JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Assemble, and print; with ``--diff`` say where the first byte moved."""
    from wakeful.assembly.context import ContextConfig
    from wakeful.assembly.hydrate import due_lines
    from wakeful.assembly.template import Template
    from wakeful.engine.context_parts import make_context_manager
    from wakeful.ops import GetState, PutState

    config = ContextConfig(
        context_strategy=arguments.strategy, budget=arguments.budget, memory_most=arguments.memory_most
    )
    template = Template.from_toml(_text(arguments.template)) if arguments.template else Template()
    tools = tuple(_tool(text) for text in arguments.tool)
    scope = scope_of(arguments)
    with opened(arguments) as memory:

        async def looked_at(scope: MemoryScope, query: str) -> str:
            """Reminders as a turn would be given them; a look claims none."""
            return "\n".join(due_lines(memory.due(scope, query=query, claim=False)))

        manager = make_context_manager(
            config, memory=memory, template=template, tools=tools, read_prospective=looked_at
        )
        made = asyncio.run(manager.assemble(query=arguments.query, scope=scope, intent_verdict=None))
        text = made.system_prompt or ""
        before, _ = memory.store.execute((GetState(scope, LAST), PutState(scope, LAST, text)))
    moved = first_moved(before, text) if arguments.diff and isinstance(before, str) else None
    stable = len(text.encode()) - len((made.turn_block or "").encode())
    if arguments.json:
        print(json.dumps(_data(made, moved, stable), ensure_ascii=False))
        return 0
    print("\n".join(picture(made, arguments.budget)))
    if arguments.diff:
        print(_difference(moved, stable))
    if moved is not None and moved >= 0:
        print(f"  was: {_around(before, moved)}\n  is:  {_around(text, moved)}")
    return 0


def first_moved(before: str, after: str) -> int:
    """Index of the first byte that differs; -1 for none."""
    old, new = before.encode(), after.encode()
    if old == new:
        return -1
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def picture(made: AssembledContext, budget: int) -> list[str]:
    """The context as lines of text: the strata with their tokens, what was left out, and the prompt."""
    lines = []
    for section in made.sections:
        if section.tokens or section.left_out:
            share = bar(section.tokens / max(1, budget), 40)
            lines.append(f"{section.stratum}  {section.name:<13} {share} {section.tokens:>6,} tokens")
        lines += [f"      left out: {name[:60]} ({why})" for name, why in section.left_out[:5]]
    hits = made.memory_context.nodes if made.memory_context else ()
    for hit in hits:
        lines.append(f"      {hit.score:.2f}  {hit.node.id}  {'; '.join(map(str, hit.reasons))[:80]}")
    facts = made.metadata
    lines.append(
        f"{facts['strategy_name']}, {facts['entries_count']} memories, {facts['latency_ms']:.1f} ms"
        + (f", hash {made.state_overrides['system_prompt_hash']}" if made.state_overrides else "")
    )
    return [*lines, "", made.system_prompt or "(no prompt)"]


def _difference(moved: int | None, stable: int) -> str:
    if moved is None:
        return "\nno earlier context of this scope to compare with"
    if moved < 0:
        return "\nthe same bytes as the last time"
    where = "before the last breakpoint: the cache is lost" if moved < stable else "behind the last breakpoint"
    return f"\nthe first byte that moved is {moved:,}, {where}"


def _around(text: str, byte: int, width: int = 60) -> str:
    """The text from a little before a byte on, on one line."""
    raw = text.encode()
    cut = raw[max(0, byte - 20) : byte + width].decode(errors="ignore")
    return repr(cut)[1:-1]


def _data(made: AssembledContext, moved: int | None, stable: int) -> dict[str, Any]:
    memory = made.memory_context
    return {
        "system_prompt": made.system_prompt,
        "system_blocks": list(made.system_blocks),
        "turn_block": made.turn_block,
        "metadata": made.metadata,
        "state_overrides": made.state_overrides,
        "sections": [
            {
                "name": section.name,
                "stratum": section.stratum,
                "tokens": section.tokens,
                "shown": list(section.shown),
                "left_out": [list(each) for each in section.left_out],
            }
            for section in made.sections
        ],
        "hits": [
            {"id": hit.node.id, "score": hit.score, "reasons": list(map(str, hit.reasons))}
            for hit in (memory.nodes if memory else ())
        ],
        "first_byte_moved": moved,
        "stable_bytes": stable,
    }


def _tool(text: str) -> ToolSpec:
    from wakeful.needs import ToolSpec

    name, equals, description = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--tool {text!r} is not NAME=TEXT, such as lookup_order='Find an order'")
    return ToolSpec(name.strip(), description.strip())


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't read {path}: {error}") from None
