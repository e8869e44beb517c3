"""Open the memory that a command names: its place, its scope, its embedder, its times.

The only place of the memory commands that reads the environment: ``WAKEFUL_DB`` and ``WAKEFUL_SCOPE``.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from wakeful.errors import InputError

if TYPE_CHECKING:
    from wakeful.engine.memory import Memory
    from wakeful.records import MemoryScope

DEFAULT_DB = "sqlite:///wakeful.db"
EMBEDDERS = ("static", "minilm", "multilingual", "none")
LAYERS = ("semantic", "episodic", "procedural", "prospective", "working")
_AHEAD = re.compile(r"^\+(\d+)([smhdw])$")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def add_place(command: argparse.ArgumentParser, *, scope: bool = True) -> None:
    """Add ``--db`` and, when wanted, ``--scope``."""
    command.add_argument(
        "--db", metavar="URL", help=f"the store, a URL or a SQLite file; default: $WAKEFUL_DB, else {DEFAULT_DB}"
    )
    if scope:
        command.add_argument(
            "--scope", metavar="S", help="who owns the memory, such as org:acme/user:ana; default: $WAKEFUL_SCOPE"
        )


def add_embedder(command: argparse.ArgumentParser) -> None:
    """Add ``--embedder``."""
    command.add_argument(
        "--embedder",
        choices=EMBEDDERS,
        help="what compares meanings; default: the one that the store was made with, else static where installed",
    )


def place(arguments: argparse.Namespace) -> str:
    """Give the store's URL."""
    if arguments.db == "":
        raise InputError("--db is empty; give a SQLite file or a store's URL, or leave it out")
    given = arguments.db or os.environ.get("WAKEFUL_DB") or DEFAULT_DB
    return given if "://" in given else "sqlite:///" + quote(given, safe="/")


def scope_of(arguments: argparse.Namespace, default: str | None = None) -> MemoryScope:
    """Give the scope. Raises ``InputError`` when none is named."""
    from wakeful.records import MemoryScope

    if arguments.scope == "":
        raise InputError("--scope is empty; give it such as org:acme/user:ana, or leave it out")
    given = arguments.scope or os.environ.get("WAKEFUL_SCOPE") or default
    if not given:
        raise InputError("whose memory? give --scope org:acme/user:ana, or set WAKEFUL_SCOPE")
    return MemoryScope.parse(given)


def scope_if_named(arguments: argparse.Namespace) -> MemoryScope | None:
    """Give the scope; None when none is named."""
    return scope_of(arguments) if arguments.scope is not None or os.environ.get("WAKEFUL_SCOPE") else None


def file_of(url: str) -> Path | None:
    """Give the file of a SQLite URL; None for other stores."""
    from wakeful.stores.opening import sqlite_path

    return Path(sqlite_path(url)) if url.startswith("sqlite://") else None


def must_exist(url: str) -> None:
    """Raise ``InputError`` for a SQLite file that is not there: looking at a memory never makes one."""
    file = file_of(url)
    if file is not None and not file.is_file():
        raise InputError(f"no memory at {file}; wakeful remember and wakeful ingest make one, --db names another")


def check_folder(url: str) -> None:
    """Raise ``InputError`` when the folder of a SQLite file is not there."""
    file = file_of(url)
    if file is not None and not file.absolute().parent.is_dir():
        raise InputError(f"no such folder: {file.absolute().parent}")
    if file is not None and file.is_dir():
        raise InputError(f"{file} is a folder; give a file")


@contextmanager
def opened(
    arguments: argparse.Namespace, *, make: bool = False, vectors: bool = True, adopt: bool = False
) -> Iterator[Memory]:
    """Open the memory and close it afterwards.

    ``make``: make it when it is not there. ``vectors`` False: no embedder is loaded, for commands that compare nothing.
    """
    from wakeful.engine.memory import Memory

    url = place(arguments)
    if make:
        check_folder(url)
    else:
        must_exist(url)
    chosen = embedder_for(url, getattr(arguments, "embedder", None)) if vectors else False
    with Memory.open(url, embedder=chosen, adopt=adopt) as memory:
        yield memory


def embedder_for(url: str, name: str | None) -> Any:
    """Give what ``Memory.open(embedder=)`` takes; without a name, the embedder that the store was made with."""
    if name is not None:
        return False if name == "none" else name
    file = file_of(url)
    if url.startswith("memory://") or (file is not None and not file.is_file()):
        return None
    from wakeful.stores import open_store

    store = open_store(url)
    try:
        held = store.embedding
    finally:
        store.close()
    if held is None:
        return None
    from wakeful.models.embed import MiniLMEmbedder, MultilingualEmbedder, StaticEmbedder

    known = {
        StaticEmbedder.model_id: "static",
        MiniLMEmbedder.model_id: "minilm",
        MultilingualEmbedder.model_id: "multilingual",
    }
    if held.model in known:
        return known[held.model]
    print(f"wakeful: the store's vectors are of {held.model}; words alone are compared", file=sys.stderr)
    return False


def moment(text: str) -> datetime:
    """Read a time for argparse: ISO 8601 (without an offset: this machine's time zone), or ``+30m``, ``+2h``, ``+3d``."""
    ahead = _AHEAD.match(text)
    try:
        if ahead is not None:
            return datetime.now(UTC) + timedelta(seconds=int(ahead[1]) * _SECONDS[ahead[2]])
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time; write 2026-03-01, 2026-03-01T09:30, 2026-03-01T09:30+01:00 or +2h"
        ) from None


moment.__name__ = "time"


def whole(text: str) -> int:
    """Read a number of at least 1 for argparse."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)
