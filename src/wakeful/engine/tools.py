"""Tools: plain typed functions, offered to a model by their signature and docstring.

The schema comes from the annotations, the description from the docstring, the descriptions of arguments from its
``Args:`` section. Arguments are checked against the schema before the function is called, so a tool is never run with
what it did not ask for.
"""

from __future__ import annotations

import enum
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union

from wakeful.errors import ConfigError
from wakeful.needs import ToolCall, ToolSpec
from wakeful.records import MemoryScope

NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
"""Source: the rule of both providers, platform.claude.com/docs/en/api/messages, platform.openai.com/docs/api-reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool may know of its call: a parameter annotated with this type is filled in and not shown to the model."""

    session: str
    turn_id: str
    call_id: str
    scope: MemoryScope | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool: what the model is told, and the function that runs."""

    spec: ToolSpec
    function: Callable[..., Any]
    approve: bool = False
    """True: a person decides before each call."""
    timeout: float | None = None
    """Seconds; None: the agent's."""
    alone: bool = False
    """True: never runs at the same time as another call."""
    context: str | None = None
    """Name of the parameter that takes the ``ToolContext``."""

    @property
    def name(self) -> str:
        """The name that the model calls."""
        return self.spec.name

    @property
    def is_async(self) -> bool:
        """Whether the function is awaited."""
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(
            getattr(self.function, "__call__", None)  # noqa: B004  # the method itself is looked at, not called
        )

    def bind(self, call: ToolCall, context: ToolContext) -> dict[str, Any]:
        """Check a call's arguments and give the keywords to call with. Raises ``ArgumentError`` in words for the model."""
        arguments = dict(call.arguments)
        problems = check(self.spec.parameters, arguments)
        if problems:
            raise ArgumentError(f"The arguments do not fit {self.name}: {'; '.join(problems)}.")
        if self.context is not None:
            arguments[self.context] = context
        return arguments


class ArgumentError(Exception):
    """A call's arguments do not fit the tool's schema."""


def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    approve: bool = False,
    timeout: float | None = None,
    alone: bool = False,
) -> Any:
    """Make a tool of a function: ``@tool`` or ``@tool(approve=True)``.

    Raises ``ConfigError`` when a parameter has no annotation or one that no JSON schema can say.
    """
    if function is None:
        return lambda inner: tool(
            inner, name=name, description=description, approve=approve, timeout=timeout, alone=alone
        )
    tool_name = str(name or getattr(function, "__name__", ""))
    _check_name(tool_name)
    summary, arguments = _docstring(function)
    schema, context = _signature(function, tool_name, arguments)
    spec = ToolSpec(tool_name, description if description is not None else summary, schema)
    return Tool(spec=spec, function=function, approve=approve, timeout=timeout, alone=alone, context=context)


def make_tools(tools: Any) -> dict[str, Tool]:
    """Read what the caller gave: functions, ``Tool``s, or ``(ToolSpec, function)`` pairs. Raises ``ConfigError``."""
    made: dict[str, Tool] = {}
    for each in tools or ():
        if isinstance(each, Tool):
            one = each
        elif isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], ToolSpec) and callable(each[1]):
            _check_name(each[0].name)
            one = Tool(spec=each[0], function=each[1])
        elif callable(each):
            one = tool(each)
        else:
            raise ConfigError(f"a tool is a typed function, a Tool or (ToolSpec, function), not {each!r}")
        if one.name in made:
            raise ConfigError(f"two tools are named {one.name!r}; names are unique")
        made[one.name] = one
    return made


def result_text(value: Any) -> str:
    """Give a tool's return value as the text that the model reads."""
    if isinstance(value, str):
        return value
    if value is None:
        return "Done."
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return str(value)


def _check_name(name: str) -> None:
    if not NAME.match(name):
        raise ConfigError(f"{name!r} can't be a tool's name: letters, digits, _ and -, at most 64")


def _signature(function: Callable[..., Any], name: str, texts: Mapping[str, str]) -> tuple[dict[str, Any], str | None]:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigError(f"tool {name}: an annotation can't be read: {error}") from error
    properties: dict[str, Any] = {}
    required: list[str] = []
    context: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigError(f"tool {name}: {parameter} can't be offered to a model; use named parameters")
        if parameter.name not in hints:
            raise ConfigError(f"tool {name}: parameter {parameter.name!r} needs a type annotation")
        hint = hints[parameter.name]
        if hint is ToolContext:
            context = parameter.name
            continue
        schema = schema_of(hint, f"tool {name}: parameter {parameter.name!r}")
        if parameter.name in texts and "description" not in schema:
            schema["description"] = texts[parameter.name]
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif isinstance(parameter.default, str | int | float | bool):
            schema["default"] = parameter.default
        properties[parameter.name] = schema
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }, context


_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def schema_of(hint: Any, where: str) -> dict[str, Any]:
    """Give the JSON schema of a type annotation. Raises ``ConfigError`` for one that has none."""
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if hint is Any or hint is object:
        return {}
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        schema = schema_of(args[0], where)
        text = next((extra for extra in args[1:] if isinstance(extra, str)), None)
        return schema | {"description": text} if text else schema
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        options = [schema_of(each, where) for each in args]
        return {"anyOf": options}
    if origin in (list, Sequence, set, frozenset) or hint in (list, Sequence, set, frozenset):
        return {"type": "array", "items": schema_of(args[0], where) if args else {}}
    if origin is tuple:
        return {"type": "array", "items": schema_of(args[0], where)}
    if origin in (dict, Mapping) or hint in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema_of(args[1], where)} if args else {"type": "object"}
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if typing.is_typeddict(hint):
        fields = typing.get_type_hints(hint)
        return {
            "type": "object",
            "properties": {name: schema_of(each, where) for name, each in fields.items()},
            "required": sorted(hint.__required_keys__),
            "additionalProperties": False,
        }
    raise ConfigError(f"{where}: no JSON schema is known for {hint!r}; give a Tool with a ToolSpec of your own")


def check(schema: Mapping[str, Any], value: Any, where: str = "") -> list[str]:
    """Check a value against the part of JSON schema that tools use. Give what is wrong, in words; empty: it fits."""
    at = where or "the arguments"
    if "anyOf" in schema:
        if any(not check(option, value, where) for option in schema["anyOf"]):
            return []
        return [f"{at} fits none of the allowed types"]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{at} must be one of {schema['enum']}, not {value!r}"]
    kind = schema.get("type")
    if isinstance(kind, str) and not _is(kind, value):
        return [f"{at} must be {kind}, not {type(value).__name__}"]
    if isinstance(value, Mapping):
        return _check_object(schema, value, where)
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return [p for i, item in enumerate(value) for p in check(schema["items"], item, f"{at}[{i}]")]
    return []


def _check_object(schema: Mapping[str, Any], value: Mapping[str, Any], where: str) -> list[str]:
    properties = schema.get("properties") or {}
    problems = [f"{name} is missing" for name in schema.get("required", ()) if name not in value]
    rest = schema.get("additionalProperties", True)
    for name, item in value.items():
        path = f"{where}.{name}" if where else name
        if name in properties:
            problems += check(properties[name], item, path)
        elif rest is False:
            problems.append(f"{path} is unknown")
        elif isinstance(rest, Mapping):
            problems += check(rest, item, path)
    return problems


def _is(kind: str, value: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, Mapping)
        case _:
            return True


_ARGUMENT = re.compile(r"^\s+\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.+)$")


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Split a docstring into its description and the descriptions of its arguments (``Args:`` section)."""
    text = inspect.getdoc(function) or ""
    head, arguments, section = [], {}, False
    last = ""
    for line in text.splitlines():
        if re.match(r"^(Args|Arguments|Parameters):\s*$", line):
            section = True
        elif section and line.strip() and not line.startswith(" "):
            break
        elif section:
            found = _ARGUMENT.match(line)
            if found:
                last = found[1]
                arguments[last] = found[2].strip()
            elif last and line.strip():
                arguments[last] += " " + line.strip()
        else:
            head.append(line)
    return "\n".join(head).strip(), arguments
