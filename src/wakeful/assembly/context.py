"""What an assembly gives, and how it is configured: frozen values, optional where a strategy may have nothing.

``system_prompt`` is the joined text for callers that send one string. ``system_blocks`` and ``turn_block`` are the same
text in the places where the provider's prompt cache survives: the strata L0 and L1 before the history, L2 with the
latest user message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from wakeful.errors import ConfigError

Stratum: TypeAlias = Literal["L0", "L1", "L2"]
Label: TypeAlias = Literal["knowledge", "action", "ambiguous"]
TriageMode: TypeAlias = Literal["off", "observe", "enforce"]


@dataclass(frozen=True, slots=True)
class IntentVerdict:
    """What a query asks for."""

    label: Label
    confidence: float = 0.0
    """0 to 1."""
    reasons: tuple[str, ...] = ()
    """The signs that were seen, each as ``kind:sign``."""
    skip_layers: tuple[str, ...] = ()
    """Memory layers that the answer does not need; set only where triage is enforced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One line of a section: text that is shown whole or not at all."""

    text: str
    """Already rendered: one line, escaped."""
    id: str | None = None
    """Id of the node that it shows."""
    score: float = 0.0
    """Higher is kept first."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionReport:
    """What became of a section."""

    name: str
    stratum: Stratum
    tokens: int
    """Of the final text, wrappers included."""
    shown: tuple[str, ...] = ()
    """Ids (or texts) of the pieces that went in."""
    left_out: tuple[tuple[str, str], ...] = ()
    """(id or text, why) of the pieces that did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HydratedMemory:
    """Memory made ready for a prompt."""

    context: str = ""
    """The text, wrapped as data; empty when nothing was found or fits."""
    entries_count: int = 0
    """Entries that really stand in ``context``."""
    graph_edges: tuple[Any, ...] = ()
    """Edges along which activation came."""
    activation_log: dict[str, Any] | None = None
    nodes: tuple[Any, ...] = ()
    """Hits (node, score, reasons) that stand in ``context``, best first."""
    left_out: tuple[tuple[str, str], ...] = ()
    """(node id, why) of hits that do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospective:
    """Reminders for a prompt."""

    text: str = ""
    """A line each, escaped."""
    due: tuple[Any, ...] = ()
    """The claimed occurrences, one a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledContext:
    """The context of one turn."""

    system_prompt: str | None = None
    """All strata joined; None when there is no prompt."""
    memory_context: HydratedMemory | None = None
    state_overrides: dict[str, Any] = field(default_factory=dict)
    """``brain_prompt_version`` and ``system_prompt_hash`` when a prompt was made."""
    activation_log: dict[str, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    """``strategy_name``, ``latency_ms``, ``entries_count``; ``error`` when a part failed; ``narrowed`` when definitions
    are withheld."""
    sections: tuple[SectionReport, ...] = ()
    system_blocks: tuple[dict[str, Any], ...] = ()
    """L0 and L1 as Anthropic system blocks with cache breakpoints; ``strata.shape`` gives other providers' shapes."""
    turn_block: str | None = None
    """L2, to be placed with the latest user message."""
    active_tools: tuple[str, ...] | None = None
    """Names of the tools that the query needs; None: the full manifest."""
    withheld_tools: tuple[str, ...] = ()
    """Tools whose definitions are not to be sent; only with ``narrow_definitions``. What that costs is in ``metadata``."""
    due: tuple[Any, ...] = ()
    """Reminders that stand in the prompt, claimed; ``Memory.ack`` them when the turn is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A rendered prompt with what belongs to it; nothing is left behind in an object."""

    text: str
    system_blocks: tuple[dict[str, Any], ...] = ()
    turn_block: str | None = None
    sections: tuple[SectionReport, ...] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """``brain_prompt_version`` and ``system_prompt_hash``."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextConfig:
    """How context is assembled. Unknown keys are refused by ``ContextConfig.of``."""

    context_strategy: str | None = None
    """``jit``, ``stratified`` or a registered name; None: decided by ``jit_context``."""
    jit_context: bool = False
    enable_hms_prompt: bool = True
    """False: no system prompt is made, and what was hydrated is still returned."""
    budget: int = 6_000
    """Most tokens of the whole prompt, wrappers included."""
    memory_least: int = 200
    """Tokens kept for the memory section before others grow."""
    memory_most: int = 2_000
    top_k: int = 10
    """Memories asked for."""
    triage: TriageMode = "observe"
    always_include: tuple[str, ...] = ()
    """Tools that routing never leaves out."""
    max_tools: int = 12
    """Most tools that routing names."""
    narrow_definitions: bool = False
    """True: tool definitions are narrowed too, which costs the provider's cache; the cost is reported."""

    def __post_init__(self) -> None:
        for name in ("budget", "memory_least", "memory_most", "top_k", "max_tools"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ConfigError(f"ContextConfig.{name} is a number of at least 0, not {value!r}")
        if self.triage not in ("off", "observe", "enforce"):
            raise ConfigError(f"ContextConfig.triage is off, observe or enforce, not {self.triage!r}")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ContextConfig:
        """Make a configuration from plain data. Raises ``ConfigError`` for a key that nothing reads."""
        known = {item.name for item in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ConfigError(f"ContextConfig has no key {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        return cls(**values)
