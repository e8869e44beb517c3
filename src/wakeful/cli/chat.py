"""``wakeful chat``: talk to a model in the terminal; it keeps inside its window and remembers across runs."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.cli.chart import bar
from wakeful.cli.opening import add_embedder, add_place, opened, scope_of
from wakeful.errors import ConfigError, WakefulError

if TYPE_CHECKING:
    from wakeful.engine.agent import Agent
    from wakeful.engine.memory import Memory
    from wakeful.records import MemoryScope

HELP = """/context        what fills the window
/compact FOCUS  compact now; FOCUS is what the digest should dwell on
/undo           take the last compaction back
/memory QUERY   what is remembered (without a query: the newest)
/forget ID      delete a memory
/nap            tend the memory
/help, /quit"""

NO_MODEL = (
    "no model to talk to: name one with --model anthropic/MODEL or openai/MODEL and set ANTHROPIC_API_KEY or "
    "OPENAI_API_KEY, or give a GGUF file with --model local:FILE (pip install 'wakeful[local]'; "
    "check the file's sha256 against its model page)"
)
KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "openai-responses": "OPENAI_API_KEY"}
DEFAULTS = {"anthropic": "anthropic/claude-sonnet-5", "openai": "openai/gpt-5"}


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    command = commands.add_parser("chat", help="talk to a model that remembers")
    command.add_argument("--model", metavar="M", help="anthropic/MODEL, openai/MODEL, or local:FILE.gguf")
    add_place(command)
    add_embedder(command)
    command.add_argument("--session", default="main", metavar="ID", help="which conversation to go on with")
    command.add_argument("--window", type=int, metavar="N", help="tokens of the window (default: the catalogue's)")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read lines until the end of the input or /quit."""
    from wakeful import Agent, WindowManager

    model = model_of(arguments.model)
    scope = scope_of(arguments, "user:me")
    with opened(arguments, make=True) as memory:
        agent = Agent(
            model,
            system="You are a helpful assistant with a memory. Answer briefly.",
            memory=memory,
            scope=scope,
            compactor=WindowManager(strategy="ladder", trigger=0.9, context_window=arguments.window),
            sessions=_sessions(arguments),
        )
        print(f"{arguments.session} as {scope.path}; /help lists the commands", file=sys.stderr)
        for line in _lines():
            text = line.strip()
            if text == "/quit":
                break
            try:
                if text.startswith("/"):
                    print(answer(agent, memory, scope, arguments.session, text))
                elif text:
                    _say(agent, text, arguments.session)
            except WakefulError as error:
                print(f"wakeful: {error}", file=sys.stderr)
        agent.close()
    return 0


def model_of(named: str | None) -> Any:
    """The model to talk to. Raises ``ConfigError`` when none is named and no key is set."""
    if named is None:
        found = [DEFAULTS[name] for name in DEFAULTS if os.environ.get(KEYS[name])]
        if not found:
            raise ConfigError(NO_MODEL)
        return found[0]
    kind, colon, file = named.partition(":")
    if kind == "local" and colon:
        from wakeful.models.local import LocalModel

        return LocalModel(file)
    provider = named.partition("/")[0]
    if provider in KEYS and not os.environ.get(KEYS[provider]):
        raise ConfigError(f"{KEYS[provider]} is not set; {NO_MODEL}")
    return named


def answer(agent: Agent, memory: Memory, scope: MemoryScope, session: str, text: str) -> str:
    """Carry out a slash command; gives what to print."""
    command, _, rest = text.partition(" ")
    rest = rest.strip()
    handle = agent.session(session)
    match command:
        case "/help":
            return HELP
        case "/context":
            return (
                gauge(handle.gauge()) + f"\n{len(handle.messages())} messages in context, {len(handle.history())} said"
            )
        case "/compact":
            meta = handle.compact(rest or None)
            if not meta.get("compacted"):
                return f"nothing to compact ({meta.get('reason') or meta.get('error')})"
            return f"compacted: {meta['tokens_before']:,} -> {meta['tokens_after']:,} tokens"
        case "/undo":
            return "the last compaction was taken back" if handle.undo() else "there is no compaction to take back"
        case "/memory":
            hits = memory.recall(scope, rest, k=10).hits if rest else ()
            nodes = [hit.node for hit in hits] if rest else list(memory.working(scope))
            return "\n".join(f"{node.id}  {' '.join(node.content.split())[:100]}" for node in nodes) or "nothing"
        case "/forget":
            return f"deleted: {memory.forget(scope, rest)}" if rest else "which one? /forget ID (/memory shows ids)"
        case "/nap":
            report = memory.consolidate(scope, "quick_nap")
            return f"{report.status}: {report.rows_read} rows read, {report.changed} changed"
        case _:
            return f"no such command: {command}\n{HELP}"


def gauge(numbers: Any) -> str:
    """The window as a bar."""
    window, tokens = numbers.get("window") or 0, (numbers.get("tokens") or 0) + (numbers.get("prompt_tokens") or 0)
    if not window:
        return "the window was not looked at yet"
    return f"[{bar(tokens / window, 30)}] {tokens:,} of {window:,} tokens"


def _say(agent: Agent, text: str, session: str) -> None:
    for part in agent.stream_text(text, session=session):
        print(part, end="", flush=True)
    print()
    if sys.stderr.isatty():
        print(gauge(agent.session(session).gauge()), file=sys.stderr)


def _sessions(arguments: argparse.Namespace) -> str:
    """The session store beside the memory: the same database, or a file of its own next to the memory's."""
    from wakeful.cli.opening import file_of, place

    url = place(arguments)
    file = file_of(url)
    return url if file is None else "sqlite:///" + str(Path(file).with_suffix(".chat.db"))


def _lines() -> Any:
    while True:
        try:
            yield input("> " if sys.stdin.isatty() else "")
        except EOFError:
            return
