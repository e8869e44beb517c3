"""Messages as JSON text and back, exactly.

Plain JSON stays plain JSON. What JSON can't hold is wrapped as ``{"$wakeful": KIND, ...}``:

| kind | holds |
|---|---|
| ``bytes``, ``bytearray`` | ``base64`` |
| ``tuple`` | ``items`` |
| ``text`` | a string with lone surrogates, as base64 of its UTF-8 with surrogates passed |
| ``dict`` | ``items``, pairs; for keys that are no strings, hold surrogates, or look like this mark |
| ``model`` | an SDK object: ``class`` and ``data``; only classes of the SDKs in ``TRUSTED`` are loaded |

A value that none of these holds is an ``InputError``: nothing is archived that could not be given back.
"""

from __future__ import annotations

import base64
import inspect
import json
from importlib import import_module
from typing import Any

from wakeful.dialects.native import brief, is_model, json_encoder
from wakeful.errors import InputError

MARK = "$wakeful"

MARK_LANGCHAIN = "$wakeful-langchain"
"""Key under which the LangChain dialect keeps LangChain's own form of a message."""

TRUSTED = ("anthropic", "openai", "google")
"""Top packages whose classes ``loads`` may import. Data is never a reason to import anything else."""


def _refuse(value: Any) -> Any:
    raise InputError(f"a {type(value).__name__} can't be serialised: {brief(value)}")


_encode = json_encoder(separators=(",", ":"), default=_refuse)


def dumps(message: Any) -> str:
    """Serialise a message. Raises ``InputError`` for what can't be given back exactly."""
    try:
        if type(message) is dict and _is_plain(message):
            text = _encode(message)
            if MARK not in text and (text.isascii() or _clean(text)):
                return text
        return _encode(_pack(message))
    except RecursionError:
        raise InputError("the message is nested too deeply, or holds itself; it can't be serialised") from None
    except ValueError as error:
        raise InputError(f"the message can't be serialised: {error}") from error


def loads(text: str) -> Any:
    """Give back a message from ``dumps``. Raises ``InputError`` for damaged text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is no serialised message: {error}") from error
    return _unpack(value) if f'"{MARK}"' in text else value


_ATOMS = frozenset({str, int, float, bool, type(None)})


def _is_plain(value: dict[Any, Any]) -> bool:
    """Whether JSON has a form for everything in it; texts are not looked at."""
    for key, item in value.items():
        if type(key) is not str:
            return False
        kind = type(item)
        if kind in _ATOMS:
            continue
        if kind is dict:
            if not _is_plain(item):
                return False
        elif kind is not list or not _is_plain_list(item):
            return False
    return True


def _is_plain_list(value: list[Any]) -> bool:
    for item in value:
        kind = type(item)
        if kind is dict:
            if not _is_plain(item):
                return False
        elif kind not in _ATOMS and (kind is not list or not _is_plain_list(item)):
            return False
    return True


def _pack(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() or _clean(value) else {MARK: "text", "base64": _text_base64(value)}
    if kind is int or kind is float or kind is bool or value is None:
        return value
    if kind is dict:
        if all(type(key) is str and key != MARK and (key.isascii() or _clean(key)) for key in value):
            return {key: _pack(item) for key, item in value.items()}
        return {MARK: "dict", "items": [[_pack(key), _pack(item)] for key, item in value.items()]}
    if kind is list:
        return [_pack(item) for item in value]
    if kind is tuple:
        return {MARK: "tuple", "items": [_pack(item) for item in value]}
    if kind is bytes or kind is bytearray:
        return {MARK: kind.__name__, "base64": base64.b64encode(value).decode("ascii")}
    return _pack_other(value, kind)


def _pack_other(value: Any, kind: type) -> Any:
    if isinstance(value, str):
        return _pack(str.__str__(value))
    if isinstance(value, dict):
        return _pack(dict(value))
    if is_model(value):
        name = f"{kind.__module__}:{kind.__qualname__}"
        if kind.__module__.split(".", 1)[0] not in TRUSTED or "<" in name:
            raise InputError(f"an object of {name} can't be serialised; pass the message as a dictionary")
        return {MARK: "model", "class": name, "data": _pack(value.model_dump(exclude_unset=True, warnings=False))}
    raise InputError(f"a {kind.__name__} can't be serialised: {brief(value)}")


def _unpack(value: Any) -> Any:
    if type(value) is list:
        return [_unpack(item) for item in value]
    if type(value) is not dict:
        return value
    kind = value.get(MARK)
    if kind is None:
        return {key: _unpack(item) for key, item in value.items()}
    try:
        return _unwrap(kind, value)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"this is no serialised message: a damaged {kind!r} in it") from error


def _unwrap(kind: Any, value: dict[str, Any]) -> Any:
    if kind == "bytes":
        return base64.b64decode(value["base64"])
    if kind == "bytearray":
        return bytearray(base64.b64decode(value["base64"]))
    if kind == "text":
        return base64.b64decode(value["base64"]).decode("utf-8", "surrogatepass")
    if kind == "tuple":
        return tuple(_unpack(item) for item in value["items"])
    if kind == "dict":
        return {_unpack(key): _unpack(item) for key, item in value["items"]}
    if kind == "model":
        return _model(value["class"], _unpack(value["data"]))
    raise InputError(f"this is no serialised message: unknown kind {kind!r} in it")


def _model(name: str, data: Any) -> Any:
    module, _, path = name.partition(":")
    if module.split(".", 1)[0] not in TRUSTED:
        raise InputError(f"a serialised object of {name!r} is not loaded: it is of no SDK that Wakeful knows")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InputError(f"the message holds a {name!r}, which this installation does not have") from error
    if not (inspect.isclass(found) and hasattr(found, "model_validate") and hasattr(found, "model_dump")):
        raise InputError(f"a serialised object of {name!r} is not loaded: it is no data class of an SDK")
    try:
        return found.model_validate(data)
    except ValueError:
        # SDKs build replies without checking, so a reply may hold what its own types refuse.
        return found.model_construct(**data)  # type: ignore[attr-defined]  # every class with model_validate has it


def _clean(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _text_base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")
