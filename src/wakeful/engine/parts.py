"""What an agent is made of, resolved and checked once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from wakeful.conversation import Entry
from wakeful.engine.compacting import prompt_tokens
from wakeful.engine.hooks import Hooks, TurnInfo
from wakeful.engine.session import Session
from wakeful.engine.tools import Tool
from wakeful.models.chat import ChatModel
from wakeful.needs import Flow, ToolSpec, Usage
from wakeful.pricing import ModelCatalog, Prices
from wakeful.records import MemoryScope
from wakeful.turn.states import Limits, TurnState


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    """What a turn's model calls are given beside the conversation."""

    system: str | tuple[Mapping[str, Any], ...] | None = None
    """The system prompt, or its blocks with cache markers; None: the agent's own."""
    turn_block: str | None = None
    """Text that stands with the turn's user message in every request, and in no stored message."""
    entries: int = 0
    """Memories in it."""
    activation_log: Mapping[str, Any] | None = None
    due: tuple[Any, ...] = ()
    """Reminders in it; they are settled when the turn is over."""
    withheld: frozenset[str] = frozenset()
    """Names of tools whose definitions are not sent in this turn."""


class ContextProvider(Protocol):
    """Makes a turn's context, once a turn."""

    def provide(self, query: str, info: TurnInfo) -> Flow[TurnContext | None]:
        """Make the context for a query."""
        ...

    def settle(self, context: TurnContext, info: TurnInfo) -> Flow[int]:
        """The turn is over: settle the reminders that it was given. Gives how many were open."""
        ...


class ToolGate(Protocol):
    """Refuses calls of tools before they run."""

    def refusals(self, tools: Iterable[str], succeeded: Collection[str]) -> Flow[dict[str, str]]:
        """What to answer the calls of these tools that may not run yet, by tool."""
        ...


class TurnMemory(Protocol):
    """Writes what a turn leaves. Every method is a flow that gives how much it wrote."""

    def episodes(self, session: Session, info: TurnInfo, state: TurnState) -> Flow[int]:
        """Write what was said in the turn, and what follows from it."""
        ...

    def dropped(self, entries: tuple[Entry, ...], session: Session, info: TurnInfo) -> Flow[int]:
        """Write what a compaction dropped."""
        ...

    def nap(self, info: TurnInfo) -> Flow[int]:
        """Tend the memory when it is time to."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that a turn needs."""

    name: str
    model: ChatModel
    catalog: ModelCatalog
    count: Any
    """Estimates tokens of a text of a kind."""
    compactor: Any
    window: int | None = None
    """Tokens; None when the compactor needs none."""
    reserve: int | None = None
    """Tokens of the window that a reply may take; None when the compactor needs no window."""
    system: str | tuple[Mapping[str, Any], ...] | None = None
    tools: Mapping[str, Tool] = field(default_factory=dict)
    specs: tuple[ToolSpec, ...] = ()
    hooks: Hooks = field(default_factory=Hooks)
    limits: Limits = field(default_factory=Limits)
    budget: int | None = None
    """Tokens that a turn may use."""
    approver: Any = None
    """Asked about parked calls: ``(calls) -> {call id: True | False | reason}``; None: the turn waits."""
    context: ContextProvider | None = None
    gate: ToolGate | None = None
    memory: TurnMemory | None = None
    scope: MemoryScope | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    thinking: bool = True
    model_timeout: float | None = None
    """Seconds."""
    tool_timeout: float | None = None
    """Seconds."""
    parallel: int = 8
    """Most calls that run at the same time."""
    _tokens: dict[Any, int] = field(default_factory=dict)
    _offered: dict[frozenset[str], tuple[ToolSpec, ...]] = field(default_factory=dict)
    _prices: dict[str, Prices | None] = field(default_factory=dict)

    def offered(self, withheld: frozenset[str]) -> tuple[ToolSpec, ...]:
        """The definitions to send when some are withheld: for the same names always the same object."""
        if not withheld:
            return self.specs
        if withheld not in self._offered:
            self._offered[withheld] = tuple(spec for spec in self.specs if spec.name not in withheld)
        return self._offered[withheld]

    def prompt_tokens(self, system: Any, specs: tuple[ToolSpec, ...]) -> int:
        """Estimate the tokens of system prompt and tool definitions; counted once for each."""
        key = (system if isinstance(system, str) else repr(system), id(specs))
        if key not in self._tokens:
            self._tokens.clear()
            self._tokens[key] = prompt_tokens(self.count, system, specs)
        return self._tokens[key]

    def price(self, usage: Usage, model: str) -> float | None:
        """Give the cost of a call in US dollars; None when the catalogue knows no price."""
        if model not in self._prices:
            self._prices[model] = self.catalog.prices(model) or self.catalog.prices(self.model.name)
        prices = self._prices[model]
        return prices.cost(usage) if prices is not None else None
