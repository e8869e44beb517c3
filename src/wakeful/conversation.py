"""A conversation as entries on branches: one active branch, and others that nothing here can change.

Rules of the file:

- ``AgentMemory`` is a value: every change returns a new one. A branch is a tuple of entries, so a change to the active
  branch can't reach another one; entries are shared until they differ.
- An entry keeps its id for as long as the memory lives. One id is one message as it came: on two branches it may stand
  whole on one and cleared on the other.
- ``history()`` is the active branch, oldest first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeAlias

from wakeful.errors import InputError, NotFound
from wakeful.ids import content_id

FORMAT = 1
"""Version of ``AgentMemory.dump``."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a conversation, in its place."""

    id: str
    message: Any
    """The provider's own message, as the model is sent it."""
    parent_id: str | None = None
    """Id of the entry before it on its branch; None for the first."""
    turn_id: str | None = None
    pinned: bool = False
    """True: compaction never drops or digests it."""
    original: Any = None
    """The message as it came, when compaction changed it; None: ``message`` is as it came."""
    parts: tuple[Entry, ...] = ()
    """Entries that were merged into this one, in order, as they came; empty: it is one message."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids that this entry stands for: its own, or those of its parts."""
        return tuple(part.id for part in self.parts) or (self.id,)

    def as_it_came(self) -> tuple[Entry, ...]:
        """The entries that this one stands for, with their first content."""
        if self.parts:
            return tuple(entry for part in self.parts for entry in part.as_it_came())
        return (self if self.original is None else replace(self, message=self.original, original=None),)


Branch: TypeAlias = tuple[Entry, ...]
"""Entries of one branch, oldest first."""


class _Index(Mapping[str, Entry]):
    """Entries by id. Versions that grow out of each other share one table, so that adding an entry costs one entry."""

    __slots__ = ("_lock", "_size", "_table")

    def __init__(self, table: dict[str, tuple[int, Entry]], size: int, lock: threading.Lock | None = None) -> None:
        self._table = table
        self._size = size
        """This version sees the entries before this place in the table."""
        self._lock = lock or threading.Lock()

    @classmethod
    def of(cls, entries: Mapping[str, Entry]) -> _Index:
        """Make an index of entries by id."""
        return cls({key: (place, entry) for place, (key, entry) in enumerate(entries.items())}, len(entries))

    def plus(self, entry: Entry) -> _Index:
        """Give the index with one more entry; this one does not see it."""
        with self._lock:
            if len(self._table) == self._size:
                self._table[entry.id] = (self._size, entry)
                return _Index(self._table, self._size + 1, self._lock)
        return _Index.of({**dict(self.items()), entry.id: entry})

    def __getitem__(self, key: str) -> Entry:
        place, entry = self._table[key]
        if place >= self._size:
            raise KeyError(key)
        return entry

    def __contains__(self, key: object) -> bool:
        found = self._table.get(key)  # type: ignore[call-overload]  # any key may be asked for
        return found is not None and found[0] < self._size

    def __iter__(self) -> Iterator[str]:
        return islice(tuple(self._table), self._size)

    def __len__(self) -> int:
        return self._size


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """The conversation of an agent: an active branch, and other branches."""

    active: Branch = ()
    others: tuple[Branch, ...] = ()
    _index: Mapping[str, Entry] = field(default_factory=dict, repr=False, compare=False)
    """Every entry by id, the active branch's version first; made here."""

    def __post_init__(self) -> None:
        if not self._index and (self.active or self.others):
            index: dict[str, Entry] = {}
            for branch in (*self.others, self.active):
                index.update((entry.id, entry) for entry in branch)
            object.__setattr__(self, "_index", _Index.of(index))

    @classmethod
    def of(cls, messages: Iterable[Any], *, turn_id: str | None = None) -> AgentMemory:
        """Make a memory of one branch from messages, oldest first."""
        index: dict[str, Entry] = {}
        parent: str | None = None
        for message in messages:
            entry_id = _entry_id(message, parent, index)
            index[entry_id] = Entry(entry_id, message, parent, turn_id)
            parent = entry_id
        return cls(tuple(index.values()), (), _Index.of(index))

    @property
    def entries(self) -> Mapping[str, Entry]:
        """Every entry of every branch by id; where branches differ, the active one's."""
        return self._index

    @property
    def head(self) -> str | None:
        """Id of the newest entry of the active branch; None when it is empty."""
        return self.active[-1].id if self.active else None

    def add_message(
        self, message: Any, id: str | None = None, *, turn_id: str | None = None, pinned: bool = False
    ) -> AgentMemory:
        """Append a message to the active branch.

        ``id`` None: made from the content and its place, so the same conversation always gets the same ids. Raises
        ``InputError`` when ``id`` is taken.
        """
        if id is None:
            id = _entry_id(message, self.head, self._index)
        elif id in self._index:
            raise InputError(f"entry id {id!r} is taken in this memory; ids are unique")
        entry = Entry(id, message, self.head, turn_id, pinned)
        index = self._index if isinstance(self._index, _Index) else _Index.of(self._index)
        # One copy; unpacking into a display makes two.
        active = self.active + (entry,)  # noqa: RUF005
        return AgentMemory(active, self.others, index.plus(entry))

    def branch(self) -> Branch:
        """Entries of the active branch, oldest first."""
        return self.active

    def branches(self) -> tuple[Branch, ...]:
        """Every branch, the active one first."""
        return (self.active, *self.others)

    def history(self) -> list[Any]:
        """Messages of the active branch, oldest first; the objects that were added."""
        return [entry.message for entry in self.active]

    def fork(self, at: str | None = None) -> AgentMemory:
        """Go on from the entry ``at`` (None: from an empty branch); the branch left stays as it is.

        Raises ``NotFound`` when no branch holds ``at``.
        """
        path: Branch = ()
        if at is not None:
            for branch in self.branches():
                for position, entry in enumerate(branch):
                    if entry.id == at:
                        path = branch[: position + 1]
                        break
                if path:
                    break
            else:
                raise NotFound(f"no entry {at!r} in this memory")
        return self._activate(path)

    def switch(self, head: str) -> AgentMemory:
        """Make the other branch that ends with the entry ``head`` the active one. Raises ``NotFound`` for none."""
        for branch in self.others:
            if branch and branch[-1].id == head:
                return self._activate(branch, leaving=branch)
        raise NotFound(f"no other branch ends with entry {head!r}")

    def delete_turn(self, turn_id: str) -> AgentMemory:
        """Remove the turn's entries from the active branch; what followed them follows what was before."""
        return self.with_branch([entry for entry in self.active if entry.turn_id != turn_id])

    def pin(self, id: str, pinned: bool = True) -> AgentMemory:
        """Mark an entry of the active branch so that compaction never drops or digests it, or take the mark away."""
        if all(entry.id != id for entry in self.active):
            raise NotFound(f"no entry {id!r} on the active branch")
        return self.with_branch([replace(e, pinned=pinned) if e.id == id else e for e in self.active])

    def drop_thinking(self, strip: Callable[[Any], Any | None] | None = None) -> AgentMemory:
        """Remove thinking from the active branch.

        ``strip`` gives a message without thinking, or None when nothing is left; None: by the dialect of the messages.
        """
        if strip is None:
            strip = _strip_of(self.history())
        kept: list[Entry] = []
        for entry in self.active:
            message = strip(entry.message)
            if message is entry.message:
                kept.append(entry)
            elif message is not None:
                original = entry.message if entry.original is None else entry.original
                kept.append(replace(entry, message=message, original=original))
        return self.with_branch(kept)

    def with_branch(self, branch: Sequence[Entry]) -> AgentMemory:
        """Make these entries the active branch, in this order; the same memory when they are the same objects.

        The branch that they replace is gone; other branches are untouched. Raises ``InputError`` for an id that stands
        twice.
        """
        if len(branch) == len(self.active) and all(a is b for a, b in zip(branch, self.active, strict=True)):
            return self
        placed: list[Entry] = []
        parent: str | None = None
        seen: set[str] = set()
        for entry in branch:
            if entry.id in seen:
                raise InputError(f"entry id {entry.id!r} stands twice in the branch; ids are unique")
            seen.add(entry.id)
            placed.append(entry if entry.parent_id == parent else replace(entry, parent_id=parent))
            parent = entry.id
        return AgentMemory(tuple(placed), self.others)

    def rebase(self, before: AgentMemory, after: AgentMemory) -> AgentMemory:
        """Take over a change that was made from ``before`` to ``after`` while this memory went on from ``before``.

        What was appended since stands behind the changed branch. When the active branch is no longer one that starts
        with that of ``before``, the change is stale and this memory stays as it is.
        """
        length = len(before.active)
        if len(self.active) < length or any(a.id != b.id for a, b in zip(self.active, before.active, strict=False)):
            return self
        return self.with_branch([*after.active, *self.active[length:]])

    def dump(self) -> dict[str, Any]:
        """Give the whole memory as plain data (messages as they are), with a format version."""
        branches: list[dict[str, Any]] = []
        for branch in self.others:
            variants = [_dump_entry(entry) for entry in branch if self._index[entry.id] != entry]
            branches.append({"ids": [entry.id for entry in branch], "variants": variants})
        return {
            "format": FORMAT,
            "head": self.head,
            "entries": [_dump_entry(entry) for entry in self._index.values()],
            "branches": branches,
        }

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> AgentMemory:
        """Read what ``dump`` gave. Raises ``InputError`` for duplicate ids, unknown parents or a cycle of parents."""
        if data.get("format") != FORMAT:
            raise InputError(f"memory format {data.get('format')!r} is not one that this version reads ({FORMAT})")
        entries = _load_entries(data.get("entries", ()))
        paths = {entry_id: entry.parent_id for entry_id, entry in entries.items()}
        _check_tree(paths)
        head = data.get("head")
        if head is not None and head not in entries:
            raise InputError(f"head {head!r} is no entry of the data")
        active = tuple(reversed([entries[at] for at in _walk(paths, head)]))
        others: list[Branch] = []
        for branch in data.get("branches", ()):
            known = {**entries, **_load_entries(branch.get("variants", ()))}
            missing = [id for id in branch["ids"] if id not in known]
            if missing:
                raise InputError(f"a branch names the entry {missing[0]!r}, which is not in the data")
            others.append(tuple(known[id] for id in branch["ids"]))
        return cls(active, tuple(others))

    def _activate(self, path: Branch, leaving: Branch | None = None) -> AgentMemory:
        """Make a path the active branch and keep every branch but the one that it was taken from whole."""
        kept: list[Branch] = []
        for branch in self.branches():
            if branch and branch is not leaving and not any(branch == other for other in kept):
                kept.append(branch)
        return AgentMemory(path, tuple(kept))


def _entry_id(message: Any, parent: str | None, taken: Mapping[str, Any]) -> str:
    base = content_id(repr(message), parent or "", prefix="e-")
    entry_id, ordinal = base, 1
    while entry_id in taken:
        ordinal += 1
        entry_id = f"{base}-{ordinal}"
    return entry_id


def _strip_of(messages: list[Any]) -> Callable[[Any], Any | None]:
    from wakeful.dialects import guess
    from wakeful.dialects.protocol import Remove, Thinking

    if not messages:
        return lambda message: message
    dialect = guess(messages)

    def strip(message: Any) -> Any | None:
        blocks = dialect.read(message).blocks
        edits = [Remove(i) for i, block in enumerate(blocks) if isinstance(block, Thinking)]
        return dialect.rewrite(message, edits) if edits else message

    return strip


def _dump_entry(entry: Entry) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": entry.id,
        "parent_id": entry.parent_id,
        "turn_id": entry.turn_id,
        "pinned": entry.pinned,
        "message": entry.message,
    }
    if entry.original is not None:
        data["original"] = entry.original
    if entry.parts:
        data["parts"] = [_dump_entry(part) for part in entry.parts]
    return data


def _load_entry(item: Mapping[str, Any]) -> Entry:
    return Entry(
        item["id"],
        item["message"],
        item.get("parent_id"),
        item.get("turn_id"),
        item.get("pinned", False),
        item.get("original"),
        tuple(_load_entry(part) for part in item.get("parts", ())),
    )


def _load_entries(items: Iterable[Mapping[str, Any]]) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for item in items:
        try:
            entry = _load_entry(item)
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"an entry of the data can't be read: {error!r}") from error
        if entry.id in entries:
            raise InputError(f"entry id {entry.id!r} stands twice in the data")
        entries[entry.id] = entry
    return entries


def _walk(parents: Mapping[str, str | None], at: str | None) -> Iterator[str]:
    while at is not None:
        yield at
        at = parents[at]


def _check_tree(parents: Mapping[str, str | None]) -> None:
    safe: set[str] = set()
    for start in parents:
        path: set[str] = set()
        at: str | None = start
        while at is not None and at not in safe:
            if at in path:
                raise InputError(f"entry {at!r} is its own ancestor; the data is damaged")
            path.add(at)
            if at not in parents:
                raise InputError(f"entry {at!r} is named as a parent but is not in the data")
            at = parents[at]
        safe |= path
