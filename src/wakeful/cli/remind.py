"""``wakeful remind`` and ``wakeful due``."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from wakeful.cli.opening import add_place, moment, opened, scope_of, whole
from wakeful.cli.rows import node_data, shown
from wakeful.errors import InputError, NotFound

if TYPE_CHECKING:
    from wakeful.engine.memory import Memory
    from wakeful.records import MemoryNode, MemoryScope


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    remind = commands.add_parser("remind", help="set a reminder")
    remind.add_argument("text", metavar="TEXT")
    add_place(remind)
    remind.add_argument("--at", type=moment, metavar="TIME", help="when; with --every the first time")
    remind.add_argument("--every", metavar="PERIOD", help="again and again: daily, weekly, '2 weeks', '30 minutes'")
    remind.add_argument("--event", metavar="NAME", help="when this event happens (wakeful due --event NAME)")
    remind.add_argument("--when", metavar="WORDS", help="when a query holds these words")
    remind.add_argument("--zone", metavar="NAME", help="time zone whose clock a series keeps, such as Europe/Oslo")
    remind.add_argument("--json", action="store_true", help="print the reminder as JSON")
    remind.set_defaults(run=run_remind)

    due = commands.add_parser("due", help="claim the reminders that are due; each is given once")
    add_place(due)
    due.add_argument("--event", metavar="NAME", help="what waits for this event")
    due.add_argument("--query", metavar="TEXT", help="also what waits for such a query")
    due.add_argument("--limit", type=whole, default=50, metavar="N", help="most reminders to claim (50)")
    settling = due.add_mutually_exclusive_group()
    settling.add_argument(
        "--ack", action="store_true", help="settle what is given; otherwise it comes again in a minute"
    )
    settling.add_argument("--settle", metavar="ID", help="settle this one, claimed before, and claim nothing")
    due.add_argument("--json", action="store_true", help="print them as JSON")
    due.set_defaults(run=run_due)


def run_remind(arguments: argparse.Namespace) -> int:
    """Set the reminder."""
    scope = scope_of(arguments)
    ways = (arguments.at is not None or arguments.every is not None, arguments.event is not None, arguments.when)
    if sum(map(bool, ways)) != 1:
        raise InputError("say when: exactly one of --at (or --every), --event, --when")
    if not arguments.text.strip():
        raise InputError("a reminder needs a text")
    if arguments.every is not None or arguments.zone is not None:
        from wakeful.memory.reminders import Schedule

        Schedule.read(arguments.every or "daily", arguments.zone)
    with opened(arguments, make=True, vectors=False) as memory:
        node = memory.remind(
            scope,
            arguments.text.strip(),
            at=arguments.at,
            every=arguments.every,
            event=arguments.event,
            when=arguments.when,
            zone=arguments.zone,
        )
    if arguments.json:
        print(json.dumps(node_data(node), ensure_ascii=False))
    else:
        print(f"{node.id}  {when_of(node)}  {shown(node.content, 80)}")
        if node.status == "draft":
            print(f"waits for approval (wakeful memory approve {node.id})", file=sys.stderr)
    return 0


def when_of(node: MemoryNode) -> str:
    """When a reminder fires, in words."""
    properties = node.properties
    if "when" in properties:
        return f"when a query holds {shown(str(properties['when']))!r}"
    if "due_at" not in properties:
        return f"on the event {shown(str(properties.get('event')))!r}"
    every = properties.get("every")
    again = f", then every {every['count']} {every['unit']}(s)" if isinstance(every, dict) else ""
    return f"at {properties['due_at']}{again}"


def run_due(arguments: argparse.Namespace) -> int:
    """Claim what is due and print it; exit code 1 when nothing is."""
    scope = scope_of(arguments)
    with opened(arguments, vectors=False) as memory:
        if arguments.settle is not None:
            return _settle(memory, scope, arguments)
        claimed = memory.due(scope, event=arguments.event, query=arguments.query, limit=arguments.limit)
        settled = {each.id: memory.ack(scope, each) for each in claimed} if arguments.ack else {}
    if arguments.json:
        rows: list[dict[str, Any]] = [
            {
                "id": each.id,
                "text": each.text,
                "occurrence": each.occurrence,
                "late": each.late,
                "settled": settled.get(each.id, False),
            }
            for each in claimed
        ]
        print(json.dumps({"scope": scope.path, "due": rows}, ensure_ascii=False))
    else:
        for each in claimed:
            late = " (late)" if each.late else ""
            print(f"{each.id}  {each.occurrence}{late}  {shown(each.text, 80)}")
        if not claimed:
            print("nothing is due", file=sys.stderr)
        elif not arguments.ack:
            print("settle them with --ack or --settle ID; otherwise they come again", file=sys.stderr)
    return 0 if claimed else 1


def _settle(memory: Memory, scope: MemoryScope, arguments: argparse.Namespace) -> int:
    try:
        done = memory.ack(scope, arguments.settle)
    except NotFound as error:
        print(f"wakeful: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps({"id": arguments.settle, "settled": done}))
    else:
        print("settled" if done else "it was settled already")
    return 0 if done else 1
