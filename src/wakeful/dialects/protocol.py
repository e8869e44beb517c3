"""How core code reads and edits a provider's own messages without converting them.

A dialect answers four questions about a native message: what it weighs (``weigh``, the fast path), what is in it
(``read``), what it would be with some blocks changed (``rewrite``), and how a new one is made (``note``, ``answer``,
``merge``). Rules of the file:

- A message that is not changed is returned as the very same object, so its bytes and the provider's cache stay.
- ``rewrite`` returns a new message and never mutates the one it is given; every part that it was not asked to change
  is the same object as before (shallow copies on the path to the change only).
- One native message may hold several blocks (Anthropic, Bedrock, Gemini) or be one block (Responses items).
- Ids of calls pair a call with the results that follow it. Where a format carries none (Gemini, legacy functions) they
  are made from name and place in the message, so the same id comes again in later rounds: pair with the nearest call.
- Blocks and views are values: nobody changes one. They are not frozen, since freezing makes them several times slower to
  make, and they are made for every message that is read.
- Facts about a format are data in ``facts.py``, never a comparison with a dialect's name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
"""Who speaks. ``tool`` is a message that holds results and nothing else, whatever the format calls its role."""

TextKind: TypeAlias = Literal["text", "json"]
Count: TypeAlias = Callable[[str, TextKind], int]
"""Tokens of a text of a kind."""


@dataclass(slots=True, unsafe_hash=True)
class Text:
    """Text that a person or the model wrote."""

    text: str


@dataclass(slots=True, unsafe_hash=True)
class Thinking:
    """Reasoning, signed or encrypted; opaque to everyone but the model that made it."""

    text: str = ""
    id: str | None = None
    """The item's id where the format has one (Responses ``rs_...``)."""


@dataclass(slots=True, unsafe_hash=True)
class ToolUse:
    """A call of a tool by the model."""

    id: str
    name: str
    arguments: Any
    """Decoded arguments (a mapping), or the raw string when it is not valid JSON."""
    server: bool = False
    """True: the provider runs it and pairs it with its result inside the same message."""


@dataclass(slots=True, unsafe_hash=True)
class ToolResult:
    """The result of a call."""

    call_id: str
    text: str
    """All text of the result, joined; media are described, not inlined."""
    error: bool = False
    provisional: bool = False
    """True when the result says that the work is not done yet (status pending, in_progress, running)."""
    server: bool = False
    media_bytes: int = 0
    name: str = ""


@dataclass(slots=True, unsafe_hash=True)
class Media:
    """An image, document, audio or video."""

    kind: Literal["image", "document", "audio", "video", "file"]
    media_type: str = ""
    bytes: int = 0
    """Size on the wire (length of the base64 text); 0 for a reference."""


@dataclass(slots=True, unsafe_hash=True)
class Opaque:
    """A block that this version does not know, or that only its provider can read (a server's compaction item)."""

    kind: str
    text: str = ""
    """Its JSON, for rendering and measuring."""


Block: TypeAlias = Text | Thinking | ToolUse | ToolResult | Media | Opaque


@dataclass(slots=True, unsafe_hash=True)
class View:
    """What is in a native message. ``blocks[i]`` is addressed by ``i`` in edits."""

    role: Role
    blocks: tuple[Block, ...]
    id: str | None = None
    """The message's own id, when it carries one."""


class Kind:
    """Codes of ``Weight.kind`` (plain ints: this is the inner loop)."""

    SYSTEM = 0
    USER = 1
    """A user's message: it has content of the user's own (it may also hold results)."""
    ASSISTANT = 2
    """An assistant message without client-side calls (Responses: also a reasoning item)."""
    CALLS = 3
    """An assistant message with at least one client-side call."""
    RESULTS = 4
    """Results and nothing else."""
    OTHER = 5
    """An item of no role (a compaction item, a reference)."""


class Flag:
    """Bits of ``Weight.flags``: what planning must know without reading a message whole."""

    THINKING = 1
    """``read`` would give at least one Thinking block (Responses: the message is a reasoning item)."""
    PROVISIONAL = 2
    """``read`` would give at least one ToolResult that is provisional."""
    MEDIA = 4
    """It holds media, at its top level or inside a result."""


class Weight(NamedTuple):
    """What planning needs to know of a message, in one pass."""

    kind: int
    tokens: int
    """Estimate, with the format's overhead for the message."""
    calls: tuple[str, ...]
    """Ids of its client-side calls, in order."""
    results: tuple[str, ...]
    """Ids of the calls that it answers, in order."""
    wire_bytes: int
    """Approximate size of the message in a request, media included, bytes."""
    flags: int = 0
    """Bits of ``Flag``."""


class Columns(NamedTuple):
    """The fields of many weights, each for all messages."""

    kinds: bytes
    tokens: Sequence[int]
    calls: Sequence[tuple[str, ...]]
    results: Sequence[tuple[str, ...]]
    sizes: Sequence[int]
    flags: bytes


@dataclass(frozen=True, slots=True)
class SetText:
    """Replace a Text block's text."""

    block: int
    text: str


@dataclass(frozen=True, slots=True)
class SetResult:
    """Replace the content of a ToolResult block by text; its id and its error flag stay.

    Where the type of the result has no room for a text (a screenshot, search results of the provider's own tool) it is
    emptied as far as its shape allows; measure again to see what was gained.
    """

    block: int
    text: str


@dataclass(frozen=True, slots=True)
class SetArguments:
    """Replace the arguments of a ToolUse block."""

    block: int
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SetMedia:
    """Replace a Media block by a text that describes it."""

    block: int
    text: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove a block (thinking, an orphan result or call)."""

    block: int


@dataclass(frozen=True, slots=True)
class ForgetId:
    """Remove the provider's item id of the message (Responses: an item whose reasoning is gone, rule R4)."""


Edit: TypeAlias = SetText | SetResult | SetArguments | SetMedia | Remove | ForgetId


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule of the format that a history breaks."""

    code: str
    """``A1`` ... ``L5``; the rules are listed in the dialect's module."""
    index: int
    """Index of the message."""
    message: str
    """What is wrong and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a format demands, as data. The table is in ``facts.py``, with sources."""

    alternates: bool = False
    """Neighbours of one role are refused, so they are merged."""
    starts_with_user: bool = False
    results_in_user: bool = False
    """Results are blocks of a user message, all results of a batch in one message."""
    thinking: Literal["none", "all", "current_turn", "items"] = "none"
    """What of the reasoning is bound to the history before it, and so goes when that changes: nothing, every block
    (A8), all but the current turn's signatures (G4), or items together with the ids that point to them (R4)."""
    calls_after_user: bool = False
    """A call turn stands right after a user or result turn (G1)."""
    message_overhead: int = 4
    """Tokens that the format adds to each message."""
    media_tokens: int = 1600
    """Tokens of an image or a document page when nothing better is known."""
    system_in_messages: bool = True
    """The system prompt may be a message of the list."""
    content_key: str = "content"
    """Field of a message that holds its content."""


class Dialect(Protocol):
    """A provider's message format. Instances are stateless singletons."""

    @property
    def name(self) -> str:
        """The name used in ``dialect=...``."""
        ...

    @property
    def facts(self) -> Facts:
        """What the format demands."""
        ...

    def recognises(self, messages: Sequence[Any]) -> float:
        """Say how surely these messages are of this format: 0 (impossible) to 1 (only this one)."""
        ...

    def weigh(self, message: Any, count: Count) -> Weight:
        """Weigh a message; no views are built. Raises ``InputError`` for a shape that can't be a message."""
        ...

    def read(self, message: Any) -> View:
        """Read a message whole. Total over block types: an unknown one is ``Opaque``."""
        ...

    def rewrite(self, message: Any, edits: Sequence[Edit]) -> Any | None:
        """Return the message with the edits made, or None when nothing is left of it."""
        ...

    def note(self, text: str, *, role: Literal["user", "system"] = "user", id: str | None = None) -> Any:
        """Make a message of one text. ``id`` is set where the format has message ids.

        A format whose system prompt stands outside the messages makes a user's message for both roles.
        """
        ...

    def answer(self, call_id: str, text: str, *, name: str = "", error: bool = True) -> Any:
        """Make a message that answers a call."""
        ...

    def merge(self, messages: Sequence[Any]) -> Any:
        """Make one message of neighbours of one role: blocks in order, results first where the format wants it."""
        ...

    def dumps(self, message: Any) -> str:
        """Serialise a message; ``loads(dumps(m))`` equals ``m``."""
        ...

    def loads(self, text: str) -> Any:
        """Give back a message from ``dumps``."""
        ...

    def validate(
        self, messages: Sequence[Any], *, thinking: bool = False, open_tail: bool = True, strict: bool = False
    ) -> list[Problem]:
        """Check the whole list by the rules of the format.

        ``thinking``: the next request has thinking on (A7). ``open_tail``: unanswered calls of the last round are
        allowed, since their results are still to come. ``strict``: also what only some models, gateways and local
        servers demand, and that the list can be sent as it is (who speaks last).
        """
        ...
