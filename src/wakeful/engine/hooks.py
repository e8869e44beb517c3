"""Hooks: a user's own functions at fixed points of a turn.

| hook | called with | may return |
|---|---|---|
| ``before_model`` | ``(request, info)`` | a ``ChatRequest`` to send instead |
| ``after_model`` | ``(reply, info)`` | nothing |
| ``before_tool`` | ``(call, info)`` | ``Refuse(feedback)``, ``Park()`` (ask a person), ``Rewrite(arguments)`` |
| ``after_tool`` | ``(call, outcome, info)`` | a text to give the model instead of the result |
| ``before_compact`` | ``(memory, info)`` | ``Veto(reason)``, ``Pin(ids)`` |
| ``after_compact`` | ``(meta, info)`` | nothing; called when entries were dropped |

A hook may be async when the turn is awaited. One that raises is logged and the turn goes on; a ``before_tool`` hook that
raises refuses the call, since it may be a guard. A hook whose signature can't take its arguments is refused when the
agent is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from wakeful.errors import ConfigError
from wakeful.needs import ToolCall
from wakeful.records import MemoryScope

POINTS: dict[str, int] = {
    "before_model": 2,
    "after_model": 2,
    "before_tool": 2,
    "after_tool": 3,
    "before_compact": 2,
    "after_compact": 2,
}
"""Hook points and the number of arguments each is called with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInfo:
    """Where in which turn a hook is called."""

    session: str
    turn_id: str
    iteration: int
    scope: MemoryScope | None = None
    mid_round: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do not run the call; the model reads ``feedback`` as its error result."""

    feedback: str


@dataclass(frozen=True, slots=True)
class Park:
    """Ask a person first."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Run the call with these arguments."""

    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Veto:
    """Do not compact at this boundary."""

    reason: str = "vetoed"


@dataclass(frozen=True, slots=True)
class Pin:
    """Keep these entries out of every compaction from now on."""

    ids: tuple[str, ...]


@runtime_checkable
class Policy(Protocol):
    """A ``before_tool`` hook with options that can be stored."""

    def before_tool(self, call: ToolCall, info: TurnInfo) -> Any:
        """Judge a call."""
        ...


@dataclass(frozen=True, slots=True)
class Hooks:
    """Hooks by point, in the order in which they are called."""

    points: Mapping[str, tuple[Callable[..., Any], ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, hooks: Any) -> Hooks:
        """Read what the caller gave: a mapping of point to function(s), or objects with methods named like points.

        Raises ``ConfigError`` for an unknown point, an object with none, or a signature that can't be called.
        """
        found: dict[str, list[Callable[..., Any]]] = {}
        if isinstance(hooks, Hooks):
            return hooks
        if isinstance(hooks, Mapping):
            for point, functions in hooks.items():
                if point not in POINTS:
                    raise ConfigError(f"unknown hook point {point!r}; known: {', '.join(POINTS)}")
                listed = functions if isinstance(functions, Sequence) else (functions,)
                found.setdefault(point, []).extend(listed)
        else:
            for each in hooks if isinstance(hooks, Iterable) else (hooks,):
                methods = {point: getattr(each, point) for point in POINTS if hasattr(each, point)}
                if not methods:
                    raise ConfigError(f"{type(each).__name__} has no hook; name a method {', '.join(POINTS)}")
                for point, method in methods.items():
                    found.setdefault(point, []).append(method)
        for point, listed in found.items():
            for function in listed:
                check_signature(function, point)
        return cls({point: tuple(listed) for point, listed in found.items()})

    def at(self, point: str) -> tuple[Callable[..., Any], ...]:
        """Hooks of a point."""
        return self.points.get(point, ())

    def plus(self, point: str, functions: Iterable[Callable[..., Any]]) -> Hooks:
        """Add functions in front of a point's hooks."""
        return Hooks({**self.points, point: (*functions, *self.at(point))})


def check_signature(function: Callable[..., Any], point: str) -> None:
    """Refuse a hook that can't be called with the arguments of its point."""
    count = POINTS[point]
    name = getattr(function, "__qualname__", repr(function))
    if not callable(function):
        raise ConfigError(f"the {point} hook {name} is not callable")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*[None] * count)
    except TypeError as error:
        raise ConfigError(
            f"the {point} hook {name}{signature} can't be called with {count} positional arguments ({error}); "
            f"see wakeful.engine.hooks for what each hook is given"
        ) from error


def _names(opts: Mapping[str, Any], known: str, policy: str) -> None:
    unknown = sorted(set(opts) - {known})
    if unknown:
        raise ConfigError(f"{policy} has no option {', '.join(unknown)}; known: {known}")
    tools = opts.get(known, ())
    if isinstance(tools, str) or not all(isinstance(each, str) for each in tools):
        raise ConfigError(f"{policy}: {known} is a list of tool names, not {tools!r}")


@dataclass(frozen=True, slots=True)
class AllowTools:
    """Run only the tools named."""

    tools: tuple[str, ...] = ()

    @staticmethod
    def validate_opts(opts: Mapping[str, Any]) -> None:
        """Check the options where the agent is made."""
        _names(opts, "tools", "AllowTools")

    def before_tool(self, call: ToolCall, info: TurnInfo) -> Refuse | None:
        """Judge a call."""
        del info
        return None if call.name in self.tools else Refuse(f"The tool {call.name} is not allowed here.")


@dataclass(frozen=True, slots=True)
class DenyTools:
    """Refuse the tools named."""

    tools: tuple[str, ...] = ()

    @staticmethod
    def validate_opts(opts: Mapping[str, Any]) -> None:
        """Check the options where the agent is made."""
        _names(opts, "tools", "DenyTools")

    def before_tool(self, call: ToolCall, info: TurnInfo) -> Refuse | None:
        """Judge a call."""
        del info
        return Refuse(f"The tool {call.name} is not allowed here.") if call.name in self.tools else None


@dataclass(frozen=True, slots=True)
class ApproveTools:
    """Ask a person before the tools named run; without names, before every tool."""

    tools: tuple[str, ...] = ()

    @staticmethod
    def validate_opts(opts: Mapping[str, Any]) -> None:
        """Check the options where the agent is made."""
        _names(opts, "tools", "ApproveTools")

    def before_tool(self, call: ToolCall, info: TurnInfo) -> Park | None:
        """Judge a call."""
        del info
        return Park() if not self.tools or call.name in self.tools else None


POLICIES: dict[str, type[Any]] = {"allow_tools": AllowTools, "deny_tools": DenyTools, "approve_tools": ApproveTools}
"""Policies that a stored configuration may name; add your own with ``register_policy``."""


def register_policy(name: str, policy: type[Any]) -> None:
    """Make a policy class known under a name, so that a stored configuration can bring it back."""
    if not hasattr(policy, "before_tool") or not callable(getattr(policy, "validate_opts", None)):
        raise ConfigError(f"policy {name!r} needs before_tool(call, info) and validate_opts(opts)")
    POLICIES[name] = policy


def make_policy(name: str, opts: Mapping[str, Any]) -> Policy:
    """Make a policy by name. Raises ``ConfigError`` for an unknown name or a bad option."""
    if name not in POLICIES:
        raise ConfigError(f"unknown policy {name!r}; known: {', '.join(sorted(POLICIES))}")
    kind = POLICIES[name]
    kind.validate_opts(opts)
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in opts.items()}
    try:
        policy: Policy = kind(**values)
    except TypeError as error:
        raise ConfigError(f"policy {name!r} can't be made with {dict(opts)!r}: {error}") from error
    check_signature(policy.before_tool, "before_tool")
    return policy
