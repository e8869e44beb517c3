"""What reaches a turn while it runs: messages to steer it, and the wish that it ends.

Safe to use from any thread: a turn looks in at every boundary, and whatever it waits on is woken.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any


class Inbox:
    """The letterbox of a session's running turn."""

    def __init__(self) -> None:
        self._messages: deque[Any] = deque()
        self._cancelled = threading.Event()
        self._wakers: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        """Whether the turn is to end now."""
        return self._cancelled.is_set()

    def steer(self, message: Any) -> None:
        """Leave a message for the next boundary."""
        self._messages.append(message)

    def cancel(self) -> None:
        """Ask the turn to end now, and wake what it waits on."""
        self._cancelled.set()
        for wake in list(self._wakers):
            wake()

    def take(self) -> list[Any]:
        """Take the messages out, oldest first."""
        taken = []
        while self._messages:
            taken.append(self._messages.popleft())
        return taken

    def wait(self, seconds: float) -> None:
        """Wait, but no longer than until the turn is cancelled."""
        self._cancelled.wait(seconds)

    def on_cancel(self, wake: Callable[[], object]) -> None:
        """Call ``wake`` when the turn is cancelled."""
        self._wakers.append(wake)

    def reset(self) -> None:
        """Forget a cancellation and its listeners; messages that nobody read stay."""
        self._cancelled.clear()
        self._wakers.clear()
