"""Record the sample conversation: a real tool loop over this project's own files, in two wire formats.

The tools really run: they list, outline, search and read the files under ``src/wakeful`` and write notes into a
temporary folder. The part of the model is played by a fixed auditing procedure, so a recording needs no key and the
same files give the same conversation. Several calls are made in parallel in most rounds.

Run it with ``python samples/record.py``; it writes ``audit.anthropic.json`` and ``audit.openai.json`` beside itself.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent / "src" / "wakeful"
SYSTEM = (
    "You are a careful code auditor. You inspect a Python package with tools, write one note a module, and never "
    "change the package itself. Numbers in a report are always taken from a tool's result."
)
MOST_MODULES = 48

TASK = (
    "I'm Mara Lindqvist, release manager for Wakeful. Please audit the package for the release of 2026-03-12 "
    "(ticket REL-4471, budget 1,250.00 EUR). For each module: its size, its longest function, and what it raises. "
    "Standing rules: never touch anything under vendor/, write one note a module into notes/, give sizes in lines, "
    "and send the final table to mara.lindqvist@wakeful.example. Call the tools in parallel where you can."
)


@dataclass
class Tools:
    """The tools of the loop; each returns text, as a model would get it."""

    notes: Path
    log: list[str] = field(default_factory=list)

    def list_files(self, folder: str) -> str:
        """Files of a folder with their sizes, as JSON."""
        paths = sorted((ROOT / folder).glob("*.py"))
        return json.dumps([{"path": self._name(p), "bytes": p.stat().st_size} for p in paths])

    def outline(self, path: str) -> str:
        """Classes and functions of a module with their line ranges, as JSON."""
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        rows = [
            {"kind": type(node).__name__, "name": node.name, "first": node.lineno, "last": node.end_lineno}
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
        return json.dumps({"path": path, "items": sorted(rows, key=lambda row: row["first"])[:40]})

    def stat(self, path: str) -> str:
        """Lines, bytes and SHA-256 of a file."""
        raw = (ROOT / path).read_bytes()
        return json.dumps({"path": path, "lines": raw.count(b"\n"), "sha256": hashlib.sha256(raw).hexdigest()})

    def search(self, pattern: str, path: str) -> str:
        """Lines of a file that match a regular expression."""
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        hits = [f"{path}:{number}: {line.strip()}" for number, line in enumerate(lines, 1) if re.search(pattern, line)]
        return "\n".join(hits[:30]) or f"no line of {path} matches {pattern}"

    def read_file(self, path: str, first: int, last: int) -> str:
        """Lines of a file, numbered."""
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()[first - 1 : last]
        return "\n".join(f"{first + offset:4} {line}" for offset, line in enumerate(lines))

    def write_note(self, name: str, text: str) -> str:
        """Write a note; its path and checksum come back."""
        path = self.notes / name
        path.write_text(text, encoding="utf-8")
        return json.dumps({"note": f"notes/{name}", "checksum": hashlib.sha256(text.encode()).hexdigest()[:12]})

    @staticmethod
    def _name(path: Path) -> str:
        return path.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Say:
    """A user's or the assistant's text."""

    role: str
    text: str


@dataclass(frozen=True)
class Round:
    """Parallel calls with their results; ``text`` is what the assistant says first."""

    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...]


class Audit:
    """The auditing procedure: it decides the next step from what the tools really returned."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}
        self.steps: list[tuple[Say | Round, tuple[str, ...]]] = []

    def run(self, tools: Tools) -> None:
        """Play the whole conversation."""
        for step in self._script():
            results = (
                tuple(self._call(tools, name, args) for name, args in step.calls) if isinstance(step, Round) else ()
            )
            self.steps.append((step, results))

    @staticmethod
    def _call(tools: Tools, name: str, args: dict[str, Any]) -> str:
        tool: Callable[..., str] = getattr(tools, name)
        try:
            return tool(**args)
        except OSError as error:
            return f"error: {type(error).__name__}: {args.get('path')} can't be read"

    def _last(self) -> tuple[str, ...]:
        return self.steps[-1][1]

    def _script(self) -> Iterator[Say | Round]:
        yield Say("user", TASK)
        folders = (".", "dialects", "compaction", "retrieval", "memory", "engine", "models", "stores")
        yield Round("I start with the folders.", tuple(("list_files", {"folder": folder}) for folder in folders))
        modules = [item["path"] for listing in self._last() for item in json.loads(listing)][:MOST_MODULES]
        for number, path in enumerate(modules, 1):
            yield from self._module(number, path)
            if number == 8:
                yield Say(
                    "user", "Good. By the way, I moved: results go to Kungsgatan 12, 411 19 Gothenburg, room B-207."
                )
                yield Say(
                    "assistant", "Noted: Kungsgatan 12, 411 19 Gothenburg, room B-207. I go on with the next module."
                )
            if number == 16:
                yield Say("user", "Which module had the longest function so far? And keep the table sorted by lines.")
                worst = max(self.found.values(), key=lambda row: row["longest"])
                yield Say(
                    "assistant", f"{worst['path']}: {worst['name']} with {worst['longest']} lines. I keep that order."
                )
        yield Say("user", "Now read every function over 30 lines in parts of 40 lines and check its docstring.")
        yield from self._long_functions()
        yield Say("user", "Please finish: write the final table and tell me the checksum of each note.")
        rows = sorted(self.found.values(), key=lambda row: -row["lines"])
        table = "\n".join(
            f"{row['path']}\t{row['lines']}\t{row['name']} ({row['longest']})\t{row['note']}" for row in rows
        )
        yield Round("I write the table.", (("write_note", {"name": "table.tsv", "text": table}),))
        total = sum(row["lines"] for row in rows)
        yield Say(
            "assistant",
            f"Done for REL-4471: {len(rows)} modules, {total} lines. The table is {json.loads(self._last()[0])['note']}; "
            "it is ready to be sent to mara.lindqvist@wakeful.example. Nothing under vendor/ was touched.",
        )

    def _module(self, number: int, path: str) -> Iterator[Say | Round]:
        yield Round(
            f"Module {number}: {path}.",
            (
                ("stat", {"path": path}),
                ("outline", {"path": path}),
                ("search", {"pattern": r"\braise\b", "path": path}),
            ),
        )
        stat, outline, raised = self._last()
        items = [row for row in json.loads(outline)["items"] if row["kind"] != "ClassDef"]
        longest = max(items, key=lambda row: row["last"] - row["first"], default=None)
        size = longest["last"] - longest["first"] + 1 if longest else 0
        name = longest["name"] if longest else "(no function)"
        if longest and size > 15:
            last = min(longest["last"], longest["first"] + 39)
            yield Round(
                f"The longest function is {name}; I read it.",
                (("read_file", {"path": path, "first": longest["first"], "last": last}),),
            )
        errors = sorted(set(re.findall(r"raise (\w+)", raised)))
        facts = json.loads(stat)
        text = f"{path}: {facts['lines']} lines, longest {name} ({size}), raises {', '.join(errors) or 'nothing'}"
        note = f"{number:02}-{path.replace('/', '-').removesuffix('.py')}.md"
        yield Round("", (("write_note", {"name": note, "text": f"{text}\nsha256 {facts['sha256']}\n"}),))
        written = json.loads(self._last()[0])
        self.found[path] = {
            "path": path, "lines": facts["lines"], "longest": size, "name": name, "note": written["note"],
            "checksum": written["checksum"], "first": longest["first"] if longest else 1,
        }  # fmt: skip

    def _long_functions(self) -> Iterator[Say | Round]:
        for row in [row for row in self.found.values() if row["longest"] > 30]:
            parts = range(row["first"], row["first"] + row["longest"], 40)
            yield Round(
                f"{row['path']}: {row['name']}, {row['longest']} lines, note {row['checksum']}.",
                tuple(
                    (
                        "read_file",
                        {"path": row["path"], "first": at, "last": min(at + 39, row["first"] + row["longest"] - 1)},
                    )
                    for at in parts
                ),
            )
            yield Round("", (("search", {"pattern": '"""', "path": row["path"]}), ("stat", {"path": row["path"]})))
            yield Say("assistant", f"{row['name']} has its docstring; {row['note']} stays as it is.")
            yield Say("user", f"Fine. Go on after {row['path']}.")


def anthropic(steps: list[tuple[Say | Round, tuple[str, ...]]]) -> list[dict[str, Any]]:
    """The conversation as Anthropic messages."""
    messages: list[dict[str, Any]] = []
    serial = 0
    for step, results in steps:
        if isinstance(step, Say):
            messages.append({"role": step.role, "content": step.text})
            continue
        blocks: list[dict[str, Any]] = [{"type": "text", "text": step.text}] if step.text else []
        answers = []
        for (name, args), result in zip(step.calls, results, strict=True):
            serial += 1
            call_id = f"toolu_{serial:04}{hashlib.sha256(name.encode()).hexdigest()[:12]}"
            blocks.append({"type": "tool_use", "id": call_id, "name": name, "input": args})
            answers.append({"type": "tool_result", "tool_use_id": call_id, "content": result})
        messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": answers}]
    return messages


def openai_chat(steps: list[tuple[Say | Round, tuple[str, ...]]]) -> list[dict[str, Any]]:
    """The conversation as OpenAI Chat messages."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
    serial = 0
    for step, results in steps:
        if isinstance(step, Say):
            messages.append({"role": step.role, "content": step.text})
            continue
        calls, answers = [], []
        for (name, args), result in zip(step.calls, results, strict=True):
            serial += 1
            call_id = f"call_{serial:04}{hashlib.sha256(name.encode()).hexdigest()[:12]}"
            calls.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}})
            answers.append({"role": "tool", "tool_call_id": call_id, "content": result})
        messages += [{"role": "assistant", "content": step.text or None, "tool_calls": calls}, *answers]
    return messages


def main() -> None:
    """Record both files."""
    with tempfile.TemporaryDirectory() as folder:
        audit = Audit()
        audit.run(Tools(Path(folder)))
    for name, messages in (("anthropic", anthropic(audit.steps)), ("openai", openai_chat(audit.steps))):
        path = HERE / f"audit.{name}.json"
        path.write_text(json.dumps({"messages": messages}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        print(f"{path.name}: {len(messages)} messages, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
