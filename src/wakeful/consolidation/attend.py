"""Attend to a phase while it decides: its lease is kept alive, its model calls are bounded, counted and priced.

Every need of a phase passes through here, so no phase can forget to count a call, and none outlives its lease unseen. A
call that is not allowed is raised inside the phase as a ``ModelError``, as one that failed would be: the phase then
decides without a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from wakeful.consolidation.report import Spending, summed
from wakeful.consolidation.settings import TendingSettings
from wakeful.errors import AuthError, ModelError, StaleWriter
from wakeful.needs import Ask, ChatReply, ChatRequest, Flow, Need, Usage, now, run
from wakeful.ops import RenewLease
from wakeful.pricing import Prices
from wakeful.records import MemoryScope

T = TypeVar("T")

FAILURES = 3
"""Calls that may fail one after the other; then no more are made in this cycle."""
CHARACTERS = 4
"""Characters counted as a token where no provider says how many there were."""

PriceOf = Callable[[str], Prices | None]
"""List prices of a model by its id; None: not known."""


@dataclass(slots=True, kw_only=True)
class Lease:
    """The scope's lease while a cycle runs under it."""

    scope: MemoryScope
    owner: str
    token: int
    seconds: float
    renewed: datetime

    def keep(self, *, least: float) -> Flow[None]:
        """Prolong it when less than ``least`` of its seconds are left. Raises ``StaleWriter`` when it is lost."""
        moment = yield from now()
        if self.renewed + timedelta(seconds=self.seconds - least) > moment:
            return
        renew = RenewLease(scope=self.scope, owner=self.owner, token=self.token, at=moment, seconds=self.seconds)
        (held,) = yield from run(renew)
        if not held:
            raise StaleWriter("the scope's lease was lost; what was written until now stands")
        self.renewed = moment


@dataclass(slots=True, kw_only=True)
class Attendant:
    """What a cycle may still spend on models, and what it has spent."""

    settings: TendingSettings
    until: datetime
    """When the cycle's time is up."""
    lease: Lease | None = None
    """None: a dry run, which holds none."""
    prices: PriceOf | None = None
    spent: list[Spending] = field(default_factory=list)
    _failures: int = 0
    _closed: str = ""
    _calls: int = 0
    _tokens: int = 0

    def attend(self, flow: Flow[T]) -> Flow[T]:
        """Run a phase's flow to its end, with every need passed on."""
        try:
            need = next(flow)
            while True:
                try:
                    value = yield from self._serve(need)
                except Exception as error:
                    need = flow.throw(error)
                else:
                    need = flow.send(value)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def take(self) -> tuple[Spending, ...]:
        """Give what was spent since it was last taken, one entry a model."""
        spent, self.spent = self.spent, []
        return summed(spent)

    def _serve(self, need: Need) -> Flow[Any]:
        if isinstance(need, Ask):
            return (yield from self._ask(need))
        if self.lease is not None:
            yield from self.lease.keep(least=self.settings.lease_seconds / 2)
        return (yield need)

    def _ask(self, need: Ask) -> Flow[ChatReply]:
        request = need.request
        if request.timeout is None:
            request = replace(request, timeout=self.settings.model_seconds)
        size = _characters(request) // CHARACTERS
        refused = self._refuse(size, (yield from now()))
        if refused:
            raise ModelError(refused)
        if self.lease is not None:
            yield from self.lease.keep(least=self.settings.lease_seconds)
        self._calls += 1
        try:
            reply: ChatReply = yield replace(need, request=request)
        except ModelError as error:
            self._failures += 1
            self.spent.append(Spending(model="unknown", calls=1, failed=1))
            if isinstance(error, AuthError) or self._failures >= FAILURES:
                self._closed = f"the model failed ({type(error).__name__}: {error})"
            raise
        self._failures = 0
        self._count(reply, size)
        return reply

    def _refuse(self, size: int, moment: datetime) -> str:
        if self._closed:
            return self._closed
        if self._calls >= self.settings.model_calls:
            return f"the cycle's {self.settings.model_calls} model calls are spent"
        if self._tokens + size > self.settings.model_tokens:
            return f"the cycle's {self.settings.model_tokens:,} tokens are spent"
        return "the cycle's time is up" if moment > self.until else ""

    def _count(self, reply: ChatReply, size: int) -> None:
        usage = reply.usage or Usage(input_tokens=size, output_tokens=len(reply.text) // CHARACTERS)
        model = reply.model or "unknown"
        prices = self.prices(model) if self.prices is not None else None
        self._tokens += usage.input_tokens + usage.output_tokens
        self.spent.append(
            Spending(
                model=model,
                calls=1,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cached_tokens=usage.cached_tokens,
                estimated=reply.usage is None,
                cost=prices.cost(usage) if prices is not None else None,
            )
        )


def _characters(request: ChatRequest) -> int:
    schema = json.dumps(request.schema) if request.schema is not None else ""
    return len(request.prompt or "") + len(str(request.system or "")) + len(schema)
