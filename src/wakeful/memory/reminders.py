"""Reminders: at a time, again and again, on an event, or when a query speaks of something.

Rules of the file:

- An occurrence is claimed by one caller with a lease, and settled by ``ack`` or ``snooze``; its key is the time (or the
  event) that was claimed, so settling twice does nothing.
- What was missed is given once, marked late; a series goes on with its next time in the future.
- A series by days, weeks, months or years keeps its local time of day across daylight saving. A time that a change
  skips is moved on by the change; one that comes twice is the first.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from wakeful.errors import ConfigError, NotFound
from wakeful.ids import time_id
from wakeful.memory.receipts import Written
from wakeful.memory.settings import WritingSettings
from wakeful.memory.turns import Trust, guarded, scrubbed
from wakeful.needs import Flow, now, run
from wakeful.ops import AckDue, Change, ClaimDue, GetNodes, Log, PutNodes, QueryNodes, Visibility
from wakeful.records import MemoryLayer, MemoryNode, MemoryScope, Source, utc
from wakeful.terms import query_terms

_UNITS = {"minute": 60, "hour": 3600}
_CALENDAR = ("day", "week", "month", "year")
_WORDS = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year"}
_EVERY = re.compile(r"^(?:every\s+)?(?:(\d+)\s+)?(minute|hour|day|week|month|year)s?$")


@dataclass(frozen=True, slots=True)
class Schedule:
    """How often a reminder comes back: ``count`` times a unit."""

    unit: str
    """second, day, week, month or year."""
    count: int = 1
    zone: str | None = None
    """Name of the time zone whose clock a calendar series keeps; None: UTC."""

    def __post_init__(self) -> None:
        if self.unit not in ("second", *_CALENDAR) or self.count < 1:
            raise ConfigError(f"a reminder repeats every 1 or more seconds, days, weeks, months or years, not {self!r}")
        _zone(self.zone)

    @classmethod
    def read(cls, every: str | timedelta | Schedule, zone: str | None = None) -> Schedule:
        """Read ``"daily"``, ``"2 weeks"``, ``"every 30 minutes"``, a ``timedelta``. Raises ``ConfigError``."""
        if isinstance(every, Schedule):
            return every
        if isinstance(every, timedelta):
            if every < timedelta(seconds=1):
                raise ConfigError(f"a reminder repeats every second at most, not every {every}")
            return cls("second", int(every.total_seconds()), zone)
        text = every.strip().lower()
        match = _EVERY.match(_WORDS.get(text, text))
        if match is None:
            raise ConfigError(f"can't read {every!r} as a series; write daily, weekly, '2 weeks', or give a timedelta")
        count, unit = int(match[1] or 1), match[2]
        return cls("second", count * _UNITS[unit], zone) if unit in _UNITS else cls(unit, count, zone)

    def after(self, first: datetime, moment: datetime) -> datetime:
        """The first time of the series that began at ``first`` which lies after ``moment``, UTC."""
        if self.unit == "second":
            step = timedelta(seconds=self.count)
            return first + step * max(1, (moment - first) // step + 1)
        zone = _zone(self.zone)
        local = first.astimezone(zone)
        number = max(1, self._passed(first, moment))
        while (found := _local(self._step(local, number), zone)) <= moment:
            number += 1
        return found

    def _passed(self, first: datetime, moment: datetime) -> int:
        """A number of steps that surely does not reach past ``moment``."""
        days = {"day": 1, "week": 7, "month": 31, "year": 366}[self.unit] * self.count
        return int((moment - first) / timedelta(days=days)) - 1

    def _step(self, local: datetime, number: int) -> datetime:
        plain = local.replace(tzinfo=None)
        if self.unit in ("day", "week"):
            return plain + timedelta(days=number * self.count * (7 if self.unit == "week" else 1))
        months = number * self.count * (12 if self.unit == "year" else 1) + plain.month - 1
        year, month = plain.year + months // 12, months % 12 + 1
        return plain.replace(year=year, month=month, day=min(plain.day, monthrange(year, month)[1]))

    def dump(self) -> dict[str, Any]:
        """Give it as JSON data."""
        return {"unit": self.unit, "count": self.count, "zone": self.zone}


def _zone(name: str | None) -> tzinfo:
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(f"no time zone {name!r} is known; write one such as Europe/Oslo") from None


def _local(plain: datetime, zone: tzinfo) -> datetime:
    return plain.replace(tzinfo=zone, fold=0).astimezone(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """An occurrence that was claimed."""

    node: MemoryNode
    occurrence: str
    """Key to settle it by: the time, or the event, that was claimed."""
    late: bool = False
    """It was missed, and is given now."""

    @property
    def id(self) -> str:
        """Id of the reminder."""
        return self.node.id

    @property
    def text(self) -> str:
        """What is to be remembered."""
        return self.node.content


def remind(
    scope: MemoryScope,
    text: str,
    *,
    at: datetime | None = None,
    every: str | timedelta | Schedule | None = None,
    event: str | None = None,
    when: str | None = None,
    zone: str | None = None,
    expires_at: datetime | None = None,
    importance: float = 5.0,
    trust: Trust = "normal",
    settings: WritingSettings | None = None,
) -> Flow[Written]:
    """Set a reminder. Exactly one of ``at`` (or ``every``, first at ``at`` or after one period), ``event``, ``when``."""
    if sum((at is not None or every is not None, event is not None, when is not None)) != 1:
        raise ConfigError("a reminder needs exactly one of at= (or every=), event=, when=")
    if not text.strip():
        raise ConfigError("a reminder needs a text")
    moment = yield from now()
    node_id = time_id(int(moment.timestamp() * 1000))
    properties: dict[str, Any] = {}
    if event is not None:
        if not event.strip() or event.startswith(_WHEN):
            raise ConfigError(f"an event has a name that does not start with {_WHEN!r}, not {event!r}")
        properties["event"] = event
    elif when is not None:
        terms = query_terms(when)
        if not terms:
            raise ConfigError(f"when={when!r} holds no word that a query could be matched by")
        properties |= {"event": f"{_WHEN}{node_id}", "when": when, "trigger": "query"}
    else:
        properties |= _timed(at, every, zone, moment)
    node = MemoryNode.new(
        scope=scope,
        layer=MemoryLayer.PROSPECTIVE,
        content=text,
        at=moment,
        id=node_id,
        properties=properties,
        importance=importance,
        expires_at=expires_at,
        source=Source(trust=trust),
    )
    if settings is None or settings.scrub:
        node, _ = scrubbed(node)
    node = guarded(node)
    reason = "waits for approval, since its source is not trusted" if node.status == "draft" else "set"
    yield from run(PutNodes(scope, (node,)), Log(scope, (Change(node=node, action="add", reason=reason, at=moment),)))
    return Written(node=node, action="add", reason=reason)


_WHEN = "when:"


def _timed(
    at: datetime | None, every: str | timedelta | Schedule | None, zone: str | None, moment: datetime
) -> dict[str, Any]:
    first = utc(at, "remind(at=)")
    if every is None:
        assert first is not None
        return {"due_at": first.isoformat()}
    schedule = Schedule.read(every, zone)
    first = first if first is not None else schedule.after(moment, moment)
    return {"due_at": first.isoformat(), "every": schedule.dump(), "first_at": first.isoformat()}


def due(
    scope: MemoryScope,
    *,
    event: str | None = None,
    query: str | None = None,
    limit: int = 50,
    claim: bool = True,
    settings: WritingSettings | None = None,
) -> Flow[tuple[Due, ...]]:
    """Claim what is due now; with ``event`` what waits for it; with ``query`` also what waits for such a query.

    ``claim`` False only looks: nothing changes, and what another caller has claimed is given too.
    """
    settings = settings or WritingSettings()
    moment = yield from now()
    if not claim:
        open_ones = yield from _open(scope, moment)
        asked = frozenset(query_terms(query)) if query is not None else None
        seen = [node for node in open_ones if _is_due(node, moment, event, asked)]
        return tuple(_due(node, moment, settings) for node in seen[:limit])
    lease = settings.lease_seconds
    ops: list[Any] = []
    if event is None:
        ops.append(ClaimDue(scope=scope, at=moment, lease_seconds=lease, limit=limit))
    elif not event.startswith(_WHEN):
        ops.append(ClaimDue(scope=scope, at=moment, event=event, lease_seconds=lease, limit=limit))
    if query is not None:
        for node in (yield from _waiting(scope, query, moment)):
            name = str(node.properties["event"])
            ops.append(ClaimDue(scope=scope, at=moment, event=name, lease_seconds=lease, limit=1))
    results = yield from run(*ops)
    claimed = [node for rows in results for node in rows][:limit]
    return tuple(_due(node, moment, settings) for node in claimed)


def _open(scope: MemoryScope, moment: datetime) -> Flow[list[MemoryNode]]:
    """Every reminder of the scope that is not done."""
    visibility = Visibility(at=moment, layers=(MemoryLayer.PROSPECTIVE,))
    (nodes,) = yield from run(QueryNodes(scope=scope, visibility=visibility, owned_only=True, order="id", limit=10_000))
    return [node for node in nodes if node.properties.get("done") is not True]


def _is_due(node: MemoryNode, moment: datetime, event: str | None, asked: frozenset[str] | None) -> bool:
    at, name = node.properties.get("due_at"), node.properties.get("event")
    if at is not None:
        return event is None and datetime.fromisoformat(str(at)) <= moment
    if name == event and not str(name).startswith(_WHEN):
        return True
    return asked is not None and node.properties.get("trigger") == "query" and _speaks_of(node, asked)


def _speaks_of(node: MemoryNode, asked: frozenset[str]) -> bool:
    return asked.issuperset(query_terms(str(node.properties.get("when", ""))))


def _waiting(scope: MemoryScope, query: str, moment: datetime) -> Flow[list[MemoryNode]]:
    visibility = Visibility(at=moment, layers=(MemoryLayer.PROSPECTIVE,))
    asked = frozenset(query_terms(query))
    (nodes,) = yield from run(
        QueryNodes(scope=scope, visibility=visibility, properties={"trigger": "query"}, owned_only=True, limit=500)
    )
    return [node for node in nodes if node.properties.get("done") is not True and _speaks_of(node, asked)]


def _due(node: MemoryNode, moment: datetime, settings: WritingSettings) -> Due:
    at = node.properties.get("due_at")
    if at is None:
        return Due(node=node, occurrence=str(node.properties["event"]))
    late = moment - datetime.fromisoformat(at) > timedelta(seconds=settings.late_seconds)
    return Due(node=node, occurrence=str(at), late=late)


def ack(scope: MemoryScope, due: Due | str, occurrence: str | None = None) -> Flow[bool]:
    """Settle an occurrence: done, or, in a series, due again at its next time. False: it was settled already."""
    node, key = yield from _claimed(scope, due, occurrence)
    if node is None or key is None:
        return False
    moment = yield from now()
    (settled,) = yield from run(
        AckDue(scope=scope, id=node.id, occurrence=key, until=next_time(node.properties, moment))
    )
    return bool(settled)


def snooze(scope: MemoryScope, due: Due | str, until: datetime, occurrence: str | None = None) -> Flow[bool]:
    """Put an occurrence off until a time. False: it was settled already, or waits for an event and has no time."""
    later = utc(until, "snooze(until=)")
    node, key = yield from _claimed(scope, due, occurrence)
    if node is None or key is None:
        return False
    (settled,) = yield from run(AckDue(scope=scope, id=node.id, occurrence=key, until=later))
    return bool(settled)


def _claimed(scope: MemoryScope, due: Due | str, occurrence: str | None) -> Flow[tuple[MemoryNode | None, str | None]]:
    node_id = due.id if isinstance(due, Due) else due
    (nodes,) = yield from run(GetNodes(scope, (node_id,)))
    node = nodes[0] if nodes else None
    if node is None or node.scope != scope or node.layer is not MemoryLayer.PROSPECTIVE:
        raise NotFound(f"no reminder {node_id!r} is owned by {scope.path}")
    key = occurrence if occurrence is not None else due.occurrence if isinstance(due, Due) else None
    if key is None:
        key = node.properties.get("due_at") or node.properties.get("event")
    return node, str(key) if key is not None else None


def next_time(properties: Mapping[str, Any], moment: datetime) -> datetime | None:
    """The next time of a series after ``moment``; None when it does not repeat."""
    every = properties.get("every")
    if not isinstance(every, Mapping):
        return None
    schedule = Schedule(str(every["unit"]), int(every["count"]), every.get("zone"))
    first = datetime.fromisoformat(str(properties.get("first_at") or properties["due_at"]))
    return schedule.after(first, moment)
