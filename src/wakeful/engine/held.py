"""The sessions that an agent has at hand, and who uses one: one session runs one turn at a time."""

from __future__ import annotations

import threading
from collections import OrderedDict

from wakeful.dialects.protocol import Dialect
from wakeful.engine.inbox import Inbox
from wakeful.engine.session import Session
from wakeful.errors import TurnError

HELD = 256
"""Stored sessions that are kept at hand; the others are read again when they are used."""


class HeldSessions:
    """Sessions by id, each with its inbox. Safe to share between threads."""

    def __init__(self, dialect: Dialect, *, durable: bool) -> None:
        self._dialect = dialect
        self._durable = durable
        self._held: OrderedDict[str, tuple[Session, Inbox]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, session_id: str) -> tuple[Session, Inbox]:
        """Give a session to look at; a new one where none is held."""
        with self._lock:
            held = self._held.get(session_id)
            if held is None:
                held = (Session(session_id, self._dialect, durable=self._durable), Inbox())
                self._held[session_id] = held
            self._held.move_to_end(session_id)
            if self._durable and len(self._held) > HELD:
                idle = next((key for key, (each, _) in self._held.items() if not each.busy), None)
                if idle is not None and idle != session_id:
                    del self._held[idle]
            return held

    def take(self, session_id: str) -> tuple[Session, Inbox]:
        """Give a session to change, and mark it as busy. Raises ``TurnError`` while a turn runs."""
        held, inbox = self.get(session_id)
        with self._lock:
            if held.busy:
                raise TurnError(f"session {session_id!r} runs a turn; steer it, cancel it, or wait")
            held.busy = True
            inbox.reset()
        return held, inbox
