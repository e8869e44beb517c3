"""Plain access to native messages: dictionaries and the objects of provider SDKs alike.

An SDK object is anything with pydantic's ``model_dump`` and ``model_copy``; no SDK is imported. Rules of the file:

- ``plain`` is for reading: a dictionary of plain dictionaries is given back as it is, an object is dumped.
- ``changed`` is for editing: a new dictionary, or a copy of the object, with the same type as before.
- Base64 text is never counted as text; an opaque, encrypted text is taken at ``OPAQUE_CHARS`` characters a token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from wakeful.dialects.protocol import (
    Block,
    Count,
    Edit,
    ForgetId,
    Media,
    Opaque,
    Remove,
    SetArguments,
    SetMedia,
    SetResult,
    SetText,
    Text,
    TextKind,
    ToolResult,
    ToolUse,
)
from wakeful.errors import InputError

OPAQUE_CHARS = 4
"""Characters of encrypted reasoning or other unreadable text that stand for one token. A bound, not a measurement:
base64 of UTF-8 text at four characters a token has more than five."""

CALL_OVERHEAD = 8
"""Tokens for the structure around a call or a result (ids, names of fields), beside its name and content."""

WIRE_OVERHEAD = 48
"""Bytes of a message's own structure in a request: braces, role, field names."""

BLOCK_BYTES = 64
"""Bytes of a block's own structure in a request: braces, type, ids, field names."""

PROVISIONAL = frozenset({"pending", "in_progress", "in-progress", "running", "queued", "processing", "working"})
"""Values of a result's ``status`` which say that the work is not done."""

NOTICE_CHARS, _STATUS_CHARS = 1_000, 300
"""A result longer than the first holds content, not a notice that work goes on; a notice has its status near its head.
Both bound what is searched: this is the inner loop."""

_STATUS = re.compile(r'"status"\s*:\s*"([^"\\]{1,20})"')

_langchain: dict[type, bool] = {}


def is_langchain(value: Any) -> bool:
    """Tell whether this is a LangChain message, without importing LangChain."""
    cls = type(value)
    known = _langchain.get(cls)
    if known is None:
        known = any(
            base.__name__ == "BaseMessage" and base.__module__.startswith("langchain_core") for base in cls.__mro__
        )
        if len(_langchain) < 256:
            _langchain[cls] = known
    return known


def is_model(value: Any) -> bool:
    """Tell whether this is an SDK object that can be dumped and copied."""
    cls = type(value)
    return hasattr(cls, "model_dump") and hasattr(cls, "model_copy") and not is_langchain(value)


def plain(value: Any, where: str = "a message") -> dict[str, Any]:
    """Give a dictionary to read; the same one when it holds no SDK objects in its first two levels.

    Raises ``InputError`` for anything that is neither a mapping nor an SDK object.
    """
    if type(value) is dict:
        for key, item in value.items():
            if type(item) is list:
                for part in item:
                    if type(part) is not dict and type(part) is not str:
                        return {**value, **{key: _deep(item) for key, item in value.items()}}
            elif item is not None and type(item) not in _SCALARS and type(item) is not dict:
                return {**value, key: _deep(item), **{k: _deep(v) for k, v in value.items()}}
        return value
    if is_model(value):
        dumped = value.model_dump(exclude_none=True, warnings=False)
        if type(dumped) is dict:
            return dumped
    elif isinstance(value, Mapping):
        return {key: _deep(item) for key, item in value.items()}
    raise InputError(f"{where} must be a dictionary or an SDK object; this is {type(value).__name__}: {brief(value)}")


_SCALARS = frozenset({str, int, float, bool, bytes})


def _deep(value: Any) -> Any:
    if isinstance(value, (str, bytes, bytearray)) or value is None:
        return value
    if isinstance(value, Mapping):
        return {key: _deep(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_deep(item) for item in value]
    if is_model(value):
        return value.model_dump(exclude_none=True, warnings=False)
    return value


def brief(value: Any) -> str:
    """Show a value in at most 80 characters, for an error message."""
    try:
        shown = repr(value)
    except Exception as error:  # a foreign __repr__ must not hide the error that is being reported
        shown = f"<unprintable: {type(error).__name__}>"
    return shown if len(shown) <= 80 else shown[:77] + "..."


def field(value: Any, key: str, default: Any = None) -> Any:
    """Give a field of a dictionary or of an SDK object."""
    if type(value) is dict:
        return value.get(key, default)
    if isinstance(value, Mapping):
        return value.get(key, default)
    return getattr(value, key, default)


def type_of(block: Any) -> str | None:
    """Give a block's ``type``; one that is no text is no type (and could not be looked up in a set)."""
    found = field(block, "type")
    return found if isinstance(found, str) else None


def changed(value: Any, changes: Mapping[str, Any], drop: Iterable[str] = ()) -> Any:
    """Give a copy with some fields set and others taken away; everything else is the same object as before."""
    if isinstance(value, Mapping):
        copy = {**value, **changes}
        for key in drop:
            copy.pop(key, None)
        return copy
    return value.model_copy(update={**changes, **dict.fromkeys(drop)})


def text_of(value: Any) -> str:
    """Give a value as a text: a string as it is, None as nothing, anything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json_text(value)


def json_encoder(*, separators: tuple[str, str] = (", ", ": "), default: Callable[[Any], Any]) -> Callable[[Any], str]:
    """Give a function that writes JSON, not escaped to ASCII: the standard encoder, made once and not for every value.

    It raises as the standard one does, but ``RecursionError`` for what holds itself.
    """
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder(ensure_ascii=False, separators=separators, default=default, check_circular=False).encode
    item, key = separators
    write = make(None, default, json.encoder.encode_basestring, None, key, item, False, False, True)
    join = "".join
    return lambda value: join(write(value, 0))


_encode = json_encoder(default=repr)


def json_text(value: Any) -> str:
    """Give a value as compact-enough JSON; what JSON has no form for is shown by its ``repr``."""
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):
        return brief(value)


def decoded(arguments: Any) -> Any:
    """Decode a call's arguments: an object when they are JSON, the raw string when they are not."""
    if isinstance(arguments, str):
        if not arguments.strip():
            return {}
        try:
            return json.loads(arguments)
        except (ValueError, RecursionError):
            return arguments
    return {} if arguments is None else arguments


def as_texts(count: Count) -> tuple[Callable[[str], int], Callable[[str], int]]:
    """Give a count as two functions, of a text and of JSON: a caller's own function as it is, for it knows no kinds."""
    own: Callable[[str], int] | None = getattr(count, "function", None)
    if own is not None:
        return own, own
    return (lambda text: count(text, "text")), (lambda text: count(text, "json"))


def kind_of(text: str) -> TextKind:
    """Tell JSON from text by its first character (cheap: this is the inner loop)."""
    return "json" if text[:1] in ("{", "[") else "text"


def provisional(text: str) -> bool:
    """Tell whether a result says that its work is not done: a short JSON object with such a ``status`` at its top."""
    if text[:1] != "{" or len(text) > NOTICE_CHARS or text.find('"status"', 0, _STATUS_CHARS) < 0:
        return False
    found = _STATUS.search(text)
    if found is None or found.group(1).lower() not in PROVISIONAL:
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return type(value) is dict and str(value.get("status")).lower() in PROVISIONAL


def provisional_value(value: Any) -> bool:
    """The same for a result that is an object already."""
    return type(value) is dict and str(value.get("status", "")).lower() in PROVISIONAL


def data_url(url: Any) -> tuple[str, int]:
    """Give media type and size on the wire of a URL; nothing for one that only refers."""
    if not isinstance(url, str) or not url.startswith("data:"):
        return "", 0
    head = url[5 : url.find(",")] if "," in url[:200] else ""
    return head.split(";", 1)[0], len(url)


def describe(media: Media) -> str:
    """Describe a medium in a few words, for places where it can't be shown."""
    size = f", {media.bytes:,} bytes" if media.bytes else ""
    return f"[{media.kind}{' ' + media.media_type if media.media_type else ''}{size}]"


def opaque(block: Any, kind: str | None = None) -> Opaque:
    """Give a block that this version does not know."""
    name = kind if kind is not None else field(block, "type") if isinstance(block, Mapping) else type(block).__name__
    return Opaque(str(name or "unknown"), json_text(block))


def by_block(edits: Sequence[Edit], blocks: Sequence[Block]) -> dict[int, Edit]:
    """Group edits by block, the last one of a block wins, ``ForgetId`` left out.

    Raises ``InputError`` for a block that is not there or an edit that does not suit its block.
    """
    grouped: dict[int, Edit] = {}
    for edit in edits:
        if isinstance(edit, ForgetId):
            continue
        if not 0 <= edit.block < len(blocks):
            raise InputError(f"{type(edit).__name__} names block {edit.block}; the message has {len(blocks)} blocks")
        block = blocks[edit.block]
        wanted = _SUITS.get(type(edit))
        if wanted is not None and not isinstance(block, wanted):
            raise InputError(f"{type(edit).__name__} does not suit block {edit.block}, a {type(block).__name__}")
        grouped[edit.block] = edit
    return grouped


_SUITS: dict[type, type | tuple[type, ...]] = {
    SetText: Text,
    SetResult: ToolResult,
    SetArguments: ToolUse,
    SetMedia: (Media, Opaque),
}


def forgets(edits: Sequence[Edit]) -> bool:
    """Tell whether the item's id is to be removed."""
    return any(isinstance(edit, ForgetId) for edit in edits)


def removed(edits: Mapping[int, Edit], block: int) -> bool:
    """Tell whether a block is to be removed."""
    return isinstance(edits.get(block), Remove)


def media_kind(media_type: str, default: Literal["image", "document", "audio", "video", "file"]) -> Any:
    """Give the kind of a medium by its media type."""
    top = media_type.split("/", 1)[0]
    if top in ("image", "audio", "video"):
        return top
    if media_type == "application/pdf" or top == "text":
        return "document"
    return default


def with_ordinals(names: Sequence[str]) -> tuple[str, ...]:
    """Make ids from names for formats whose calls carry none: ``search``, then ``search#2``, unique within a message.

    They pair a call with its result by name and place, so the same ids come again in later rounds.
    """
    seen: dict[str, int] = {}
    ids = []
    for name in names:
        seen[name] = count = seen.get(name, 0) + 1
        ids.append(name if count == 1 else f"{name}#{count}")
    return tuple(ids)
