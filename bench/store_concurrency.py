"""What eight processes that write at once lose in SQLite: nothing acknowledged, though one is killed and another reads.

    python bench/store_concurrency.py --writers 8 --writes 200

Each writer puts one node a transaction and prints its id once ``execute`` has come back; one more writes on until it is
killed with -9. A reader searches all the while. ``lost``: acknowledged ids that a store opened afterwards does not give.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import parse, save
from memories import START, VISIBLE
from wakeful import ops as op
from wakeful.records import MemoryNode, MemoryScope
from wakeful.stores.sqlite import SqliteStore

SCOPE = MemoryScope.parse("org:acme/user:ana")


def write(path: str, name: str, count: int) -> None:
    """Write nodes, one a transaction, and acknowledge each."""
    store = SqliteStore(path)
    for number in range(count):
        node = MemoryNode.new(
            scope=SCOPE, layer="episodic", id=f"{name}-{number}", content=f"word {name} number {number}", at=START
        )
        store.execute((op.PutNodes(SCOPE, (node,)),))
        print(node.id, flush=True)
    store.close()


def start(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    """Start a writer."""
    command = [sys.executable, __file__, "--write", str(path), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(folder: Path, writers: int, writes: int) -> dict[str, Any]:
    """Write, read, kill, and compare."""
    path = folder / "store.db"
    store = SqliteStore(str(path))
    search = op.SearchText(scope=SCOPE, terms=("word",), visibility=VISIBLE, limit=100_000)
    begun = time.perf_counter()
    running = [start(path, f"w{number}", writes) for number in range(writers)]
    victim = start(path, "victim", 10**9)
    assert victim.stdout is not None
    acknowledged = {victim.stdout.readline().strip() for _ in range(20)}
    reads, errors = 0, []
    while any(each.poll() is None for each in running):
        store.execute((search,))
        reads += 1
        if reads == 5:
            victim.kill()
    victim.kill()
    seconds = time.perf_counter() - begun
    for each in (*running, victim):
        out, failed = each.communicate()
        acknowledged |= {line for line in out.split("\n")[:-1] if line}
        errors += [failed.strip().splitlines()[-1]] if failed else []
    store.close()
    again = SqliteStore(str(path))
    held = {hit.node.id for hit in again.execute((search,))[0]}
    again.close()
    return {
        "of the killed": sum(each.startswith("victim") for each in acknowledged),
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged - held),
        "held": len(held),
        "errors": errors,
        "reads meanwhile": reads,
        "writes a second": round(len(acknowledged) / seconds),
    }


def main() -> None:
    """Run and save."""
    parser = parse(__doc__)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--writes", type=int, default=200)
    parser.add_argument("--write", nargs=3, help="be a writer: file, name, count")
    given = parser.parse_args()
    if given.write:
        write(given.write[0], given.write[1], int(given.write[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), given.writers, given.writes)
    print(result, file=sys.stderr)
    print(save("store_concurrency", result, inputs=[given.writers, given.writes], out=given.out))


if __name__ == "__main__":
    main()
