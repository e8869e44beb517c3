"""Take recorded conversations into memory, batch by batch, resumable: what was taken once is not taken twice.

A file's progress is kept in the scope's state under the hash of its content. Turns have ids made from their content, so a
batch that was written just before a crash is the same rows when it comes again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from wakeful.dialects import get, guess
from wakeful.dialects.protocol import Dialect, Text
from wakeful.engine.memory import Memory
from wakeful.errors import InputError
from wakeful.ids import content_id
from wakeful.ops import GetState, PutState
from wakeful.records import MemoryScope, Turn

BATCH = 200
"""Turns written in one transaction."""

_SESSION = re.compile(r"session_(\d+)$")
_DATE = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an ingestion is."""

    done: int
    total: int
    written: int
    """Turns taken in this run."""


def turns_of(data: Any, *, session: str | None = None, dialect: Dialect | str | None = None) -> list[Turn]:
    """Read turns from decoded JSON: LoCoMo samples, or messages of any dialect.

    Of messages, what people and the model said becomes turns; calls and results do not. Raises ``InputError`` for
    anything else, or when there is nothing to take.
    """
    samples = data if isinstance(data, list) else [data]
    if samples and all(isinstance(each, Mapping) and isinstance(each.get("conversation"), Mapping) for each in samples):
        turns = [turn for each in samples for turn in _locomo(each, many=len(samples) > 1)]
    else:
        turns = list(_messages(data, session, dialect))
    if not turns:
        raise InputError("nothing to remember: no turn with text was found")
    return turns


def ingest(memory: Memory, scope: MemoryScope, turns: Sequence[Turn], *, extract: bool = True) -> Iterator[Progress]:
    """Remember the turns, going on where an earlier run of the same turns stopped; gives the progress after each batch."""
    key = "ingest:" + content_id(*(f"{turn.session}\n{turn.speaker}\n{turn.text}" for turn in turns))
    (done,) = memory.store.execute((GetState(scope, key),))
    start = at = done if isinstance(done, int) else 0
    yield Progress(done=at, total=len(turns), written=0)
    while at < len(turns):
        batch = list(turns[at : at + BATCH])
        memory.remember(scope, batch, extract=extract)
        at += len(batch)
        memory.store.execute((PutState(scope, key, at),))
        yield Progress(done=at, total=len(turns), written=at - start)


def _locomo(sample: Mapping[str, Any], *, many: bool) -> Iterator[Turn]:
    talk = sample["conversation"]
    prefix = f"{sample.get('sample_id', talk.get('speaker_a', ''))}-" if many else ""
    names = sorted((name for name in talk if _SESSION.fullmatch(name)), key=lambda name: int(name.partition("_")[2]))
    for name in names:
        at = _date(talk.get(f"{name}_date_time"))
        for turn in talk[name]:
            text = str(turn.get("text") or "").strip()
            if text:
                yield Turn(text, speaker=turn.get("speaker"), at=at, session=prefix + name, ref=turn.get("dia_id"))


def _date(text: Any) -> datetime | None:
    try:
        return datetime.strptime(str(text), _DATE).replace(tzinfo=UTC)
    except ValueError:
        return None


def _messages(data: Any, session: str | None, dialect: Dialect | str | None) -> Iterator[Turn]:
    spoken = guess(data) if dialect is None else get(dialect)
    for index, message in enumerate(data):
        view = spoken.read(message)
        if view.role not in ("user", "assistant"):
            continue
        text = "\n".join(block.text for block in view.blocks if isinstance(block, Text)).strip()
        if text:
            yield Turn(text, speaker=view.role, session=session, ref=view.id or str(index))
