"""A conversation as entries in a tree: branches, forks, and one active path.

Rules of the file:

- ``AgentMemory`` is a value: every change returns a new one, and entries are shared between versions.
- An entry keeps its id for as long as the memory lives; ids are unique in a memory.
- ``history()`` is the active branch, oldest first. Other branches stay as they are, whatever happens to this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wakeful.errors import InputError, NotFound
from wakeful.ids import content_id

FORMAT = 1
"""Version of ``AgentMemory.dump``."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a conversation, in its place."""

    id: str
    message: Any
    """The provider's own message."""
    parent_id: str | None = None
    turn_id: str | None = None
    pinned: bool = False
    """True: compaction never drops or digests it."""


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """The conversation of an agent: all entries, and the head of the active branch."""

    entries: Mapping[str, Entry] = ()  # type: ignore[assignment]  # replaced by a dict in __post_init__
    head: str | None = None
    """Id of the newest entry of the active branch; None when it is empty."""

    def __post_init__(self) -> None:
        if not isinstance(self.entries, Mapping):
            object.__setattr__(self, "entries", {entry.id: entry for entry in self.entries})

    @classmethod
    def of(cls, messages: Iterable[Any], *, turn_id: str | None = None) -> AgentMemory:
        """Make a memory of one branch from messages, oldest first."""
        memory = cls()
        entries: dict[str, Entry] = {}
        parent: str | None = None
        for message in messages:
            entry_id = _entry_id(message, parent, entries)
            entries[entry_id] = Entry(entry_id, message, parent, turn_id)
            parent = entry_id
        return replace(memory, entries=entries, head=parent)

    def add_message(
        self, message: Any, id: str | None = None, *, turn_id: str | None = None, pinned: bool = False
    ) -> AgentMemory:
        """Append a message to the active branch.

        ``id`` None: made from the content and its place, so the same conversation always gets the same ids. Raises
        ``InputError`` when ``id`` is taken.
        """
        if id is None:
            id = _entry_id(message, self.head, self.entries)
        elif id in self.entries:
            raise InputError(f"entry id {id!r} is taken in this memory; ids are unique")
        entry = Entry(id, message, self.head, turn_id, pinned)
        return replace(self, entries={**self.entries, id: entry}, head=id)

    def branch(self) -> tuple[Entry, ...]:
        """Entries of the active branch, oldest first."""
        return tuple(reversed(list(self._walk(self.head))))

    def history(self) -> list[Any]:
        """Messages of the active branch, oldest first; the objects that were added."""
        return [entry.message for entry in self.branch()]

    def fork(self, at: str | None = None) -> AgentMemory:
        """Make the entry ``at`` the head (None: an empty branch). What follows it stays as another branch."""
        if at is not None and at not in self.entries:
            raise NotFound(f"no entry {at!r} in this memory")
        return replace(self, head=at)

    def delete_turn(self, turn_id: str) -> AgentMemory:
        """Remove the turn's entries from the active branch; what followed them follows their parent.

        Entries that another branch also runs through stay there.
        """
        kept = [entry for entry in self.branch() if entry.turn_id != turn_id]
        return self.with_branch(kept)

    def drop_thinking(self, strip: Callable[[Any], Any | None]) -> AgentMemory:
        """Apply ``strip`` (message to message without thinking, or None when nothing is left) to the active branch."""
        kept: list[Entry] = []
        for entry in self.branch():
            message = strip(entry.message)
            if message is None:
                continue
            kept.append(entry if message is entry.message else replace(entry, message=message))
        return self.with_branch(kept)

    def with_branch(self, branch: Sequence[Entry]) -> AgentMemory:
        """Make these entries the active branch, in this order. Other branches are unchanged.

        An entry that another branch also holds keeps its id here and its content there: the other branch's copy is
        stored under a derived id when the two differ.
        """
        old = self.branch()
        if len(old) == len(branch) and all(a is b for a, b in zip(old, branch, strict=True)):
            return self
        entries = dict(self.entries)
        shared = self._shared(old)
        for entry in old:
            if entry.id not in shared:
                del entries[entry.id]
        renamed = self._set_aside(entries, shared, branch)
        parent: str | None = None
        for entry in branch:
            placed = entry if entry.parent_id == parent else replace(entry, parent_id=parent)
            if entry.id in entries and entries[entry.id] != placed and entry.id not in renamed:
                raise InputError(f"entry id {entry.id!r} is taken in this memory; ids are unique")
            entries[entry.id] = placed
            parent = entry.id
        return replace(self, entries=entries, head=parent)

    def dump(self) -> dict[str, Any]:
        """Give the whole memory as plain data (messages as they are), with a format version."""
        return {
            "format": FORMAT,
            "head": self.head,
            "entries": [
                {"id": e.id, "parent_id": e.parent_id, "turn_id": e.turn_id, "pinned": e.pinned, "message": e.message}
                for e in self.entries.values()
            ],
        }

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> AgentMemory:
        """Read what ``dump`` gave. Raises ``InputError`` for duplicate ids, unknown parents or a cycle of parents."""
        if data.get("format") != FORMAT:
            raise InputError(f"memory format {data.get('format')!r} is not one that this version reads ({FORMAT})")
        entries: dict[str, Entry] = {}
        for item in data.get("entries", ()):
            entry = Entry(
                item["id"], item["message"], item.get("parent_id"), item.get("turn_id"), item.get("pinned", False)
            )
            if entry.id in entries:
                raise InputError(f"entry id {entry.id!r} stands twice in the data")
            entries[entry.id] = entry
        _check_tree(entries)
        head = data.get("head")
        if head is not None and head not in entries:
            raise InputError(f"head {head!r} is no entry of the data")
        return cls(entries, head)

    def _walk(self, at: str | None) -> Iterator[Entry]:
        while at is not None:
            entry = self.entries[at]
            yield entry
            at = entry.parent_id

    def _shared(self, branch: Sequence[Entry]) -> set[str]:
        """Ids of entries of ``branch`` from which another branch also descends."""
        own = {entry.id for entry in branch}
        shared: set[str] = set()
        for entry in self.entries.values():
            if entry.id in own or entry.parent_id not in own:
                continue
            for ancestor in self._walk(entry.parent_id):
                if ancestor.id in shared:
                    break
                shared.add(ancestor.id)
        return shared

    def _set_aside(self, entries: dict[str, Entry], shared: set[str], branch: Sequence[Entry]) -> set[str]:
        """Store the other branches' copies of changed shared entries under derived ids; return the ids changed."""
        parent: str | None = None
        changed: set[str] = set()
        placed: dict[str, Entry] = {}
        for entry in branch:
            placed[entry.id] = replace(entry, parent_id=parent)
            parent = entry.id
        for entry_id in shared:
            if entry_id not in placed or placed[entry_id] != entries[entry_id]:
                changed.add(entry_id)
        for entry in list(entries.values()):
            if entry.id in shared and entry.parent_id in changed:
                changed.add(entry.id)
        clash = {entry_id for entry_id in changed if entry_id in placed}
        rename = {entry_id: content_id(entry_id, "fork", prefix="f-") for entry_id in clash}
        own = {entry.id for entry in self.branch()}
        for entry in list(entries.values()):
            if entry.id in rename:
                del entries[entry.id]
                new_id = rename[entry.id]
                entries[new_id] = replace(
                    entry, id=new_id, parent_id=rename.get(entry.parent_id or "", entry.parent_id)
                )
            elif entry.parent_id in rename and entry.id not in own:
                entries[entry.id] = replace(entry, parent_id=rename[entry.parent_id])
        return clash


def _entry_id(message: Any, parent: str | None, taken: Mapping[str, Entry]) -> str:
    base = content_id(repr(message), parent or "", prefix="e-")
    entry_id, ordinal = base, 1
    while entry_id in taken:
        ordinal += 1
        entry_id = f"{base}-{ordinal}"
    return entry_id


def _check_tree(entries: Mapping[str, Entry]) -> None:
    safe: set[str] = set()
    for entry in entries.values():
        path: set[str] = set()
        at: str | None = entry.id
        while at is not None and at not in safe:
            if at in path:
                raise InputError(f"entry {at!r} is its own ancestor; the data is damaged")
            path.add(at)
            if at not in entries:
                raise InputError(f"entry {at!r} is named as a parent but is not in the data")
            at = entries[at].parent_id
        safe |= path
