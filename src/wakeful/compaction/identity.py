"""Entry ids of plain messages: a hash of the content, and the ordinal among equal ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wakeful.dialects.protocol import Dialect
from wakeful.errors import InputError
from wakeful.ids import content_id


class Ids:
    """Ids of a conversation's messages that stay the same while it goes on and is compacted."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._seen: dict[str, int] = {}
        self._known: dict[int, tuple[Any, str]] = {}

    def of(self, messages: Sequence[Any]) -> Sequence[str]:
        """Give the ids of messages; they are made when the first one is asked for."""
        return _LazyIds(self, messages)

    def made(self, messages: Sequence[Any]) -> list[str]:
        """Give the ids of messages now."""
        ids: list[str] = []
        placed: set[int] = set()
        for message in messages:
            known = self._known.get(id(message))
            if known is not None and known[0] is message and id(message) not in placed:
                placed.add(id(message))
                ids.append(known[1])
                continue
            entry_id = self._next(message)
            if id(message) not in placed:
                self._known[id(message)] = (message, entry_id)
                placed.add(id(message))
            ids.append(entry_id)
        return ids

    def follow(self, ids: Sequence[str], messages: Sequence[Any], origins: Sequence[int]) -> None:
        """Carry ids over a compaction: ``origins[i]`` is the place, among ``ids``, of what message ``i`` was."""
        self._known = {
            id(message): (message, ids[origin])
            for message, origin in zip(messages, origins, strict=True)
            if origin >= 0
        }

    def _next(self, message: Any) -> str:
        base = _base(self._dialect, message)
        self._seen[base] = ordinal = self._seen.get(base, 0) + 1
        return base if ordinal == 1 else f"{base}-{ordinal}"


class _LazyIds(Sequence[str]):
    def __init__(self, ids: Ids, messages: Sequence[Any]) -> None:
        self._ids = ids
        self._messages = messages
        self._made: list[str] | None = None

    def __getitem__(self, index: Any) -> Any:
        if self._made is None:
            self._made = self._ids.made(self._messages)
        return self._made[index]

    def __len__(self) -> int:
        return len(self._messages)


def _base(dialect: Dialect, message: Any) -> str:
    try:
        text = dialect.dumps(message)
    except InputError:
        text = repr(message)
    return content_id(text, prefix="m-")


def ids_of(dialect: Dialect, messages: Sequence[Any]) -> list[str]:
    """Give an id for each message: the same content in the same place among equals always has the same id."""
    seen: dict[str, int] = {}
    ids: list[str] = []
    for message in messages:
        base = _base(dialect, message)
        seen[base] = ordinal = seen.get(base, 0) + 1
        ids.append(base if ordinal == 1 else f"{base}-{ordinal}")
    return ids
