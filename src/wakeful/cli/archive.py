"""``wakeful restore`` and ``wakeful validate``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from wakeful.errors import InputError


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    restore = commands.add_parser("restore", help="give back what a compaction put into the archive")
    restore.add_argument("db", metavar="DB", help="the archive, a SQLite file made by compact --archive")
    restore.add_argument("id", metavar="ID", nargs="?", help="an archive id; without one, the ids are listed")
    restore.add_argument("--json", action="store_true", help="print the record as JSON")
    restore.set_defaults(run=run_restore)

    validate = commands.add_parser("validate", help="check a conversation by the rules of its format")
    validate.add_argument("file", metavar="FILE")
    add_reading(validate)
    validate.add_argument("--thinking", action="store_true", help="the next request has thinking on")
    validate.add_argument("--json", action="store_true", help="print the problems as JSON")
    validate.set_defaults(run=run_validate)


def add_reading(command: argparse.ArgumentParser) -> None:
    """Add the options of every command that reads a conversation."""
    command.add_argument("--format", metavar="NAME", help="the dialect; guessed when not given")
    command.add_argument("--index", type=int, default=0, help="which conversation of a file that holds several")


def run_restore(arguments: argparse.Namespace) -> int:
    """Print an archived span, or list the archive's ids."""
    from wakeful import restore
    from wakeful.stores.archive_sqlite import SqliteArchive

    if not Path(arguments.db).is_file():
        raise InputError(f"no such archive: {arguments.db}")
    archive = SqliteArchive(arguments.db, make=False)
    try:
        if arguments.id is None:
            for entry in archive.list():
                print(f"{entry.id}\t{entry.position}\t{entry.tokens} tokens\t{entry.what}")
            return 0
        span = restore(archive, arguments.id)
        if arguments.json:
            print(json.dumps({"id": span.id, "position": span.position, "messages": span.messages}, ensure_ascii=False))
        else:
            for message in span.messages:
                print(json.dumps(message, ensure_ascii=False, indent=2))
    finally:
        archive.close()
    return 0


def run_validate(arguments: argparse.Namespace) -> int:
    """Print the problems; exit code 1 when there is one."""
    from wakeful.cli.files import read_conversation
    from wakeful.dialects import get, guess

    found = read_conversation(arguments.file, index=arguments.index)
    dialect = get(arguments.format) if arguments.format else guess(found.messages)
    problems = dialect.validate(found.messages, thinking=arguments.thinking)
    if arguments.json:
        rows = [{"code": p.code, "index": p.index, "message": p.message} for p in problems]
        print(json.dumps({"file": found.name, "format": dialect.name, "valid": not rows, "problems": rows}))
    else:
        for problem in problems:
            print(f"{problem.code}  message {problem.index}: {problem.message}")
        if not problems:
            print(f"{found.name}: {len(found.messages)} messages, valid {dialect.name}", file=sys.stderr)
    return 1 if problems else 0
