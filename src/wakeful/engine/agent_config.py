"""What of an agent can be stored: settings that are data, checked where they are made and where they are read back.

Credentials are never part of it: a model is named, and its client reads its own; a store's URL is given beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from wakeful.budgets import TaskBudget
from wakeful.engine.hooks import POLICIES, Policy, make_policy
from wakeful.errors import ConfigError
from wakeful.records import MemoryScope
from wakeful.turn.states import Limits

FORMAT = 1
"""Version of ``AgentConfig.dump``."""

SECRET_WORDS = ("api_key", "apikey", "password", "passwd", "secret", "credential", "authorization", "access_token")
"""Parts of names under which credentials travel; an option of such a name is refused."""

Ref = tuple[str, Mapping[str, Any]]
"""A registered name and its options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """Settings of an agent that can be stored. Raises ``ConfigError`` for a value out of range."""

    name: str = "agent"
    """For traces."""
    model: str | None = None
    """``provider/model``; None: given as an object."""
    system: str | None = None
    scope: str | None = None
    """Path of the memory's scope, ``org:acme/user:ana``."""
    max_iterations: int = 50
    """Model calls with tools; after them one last call without."""
    retries: int = 3
    """Further tries of a model call that failed with a retryable error."""
    backoff: float = 1.0
    """Seconds before the first further try."""
    budget: int | None = None
    """Tokens that a turn may use; None: no limit."""
    max_tokens: int | None = None
    """Tokens of a reply; None: the model's own."""
    temperature: float | None = None
    thinking: bool = True
    model_timeout: float | None = None
    """Seconds a model call may take."""
    tool_timeout: float | None = 120.0
    """Seconds a call of a tool may take; None: no limit."""
    parallel: int = 8
    """Most calls that run at the same time; 1: one after another."""
    context_window: int | None = None
    """Tokens of the model's window; None: from the catalogue."""
    nap_every: int = 20
    """With a memory: turns of its scope between two naps; 0: never."""
    policies: tuple[Ref, ...] = ()
    """Names and options of registered policies, in the order in which they judge a call."""
    compactor: Ref | None = None
    """Name and options of a registered compactor."""

    def __post_init__(self) -> None:
        _check(self, "AgentConfig")

    @classmethod
    def of(cls, entry: str, options: Mapping[str, Any]) -> AgentConfig:
        """Make a configuration from keywords. ``entry`` is the public function that was given them, for messages."""
        known = {each.name for each in fields(cls)}
        unknown = sorted(set(options) - known)
        if unknown:
            raise ConfigError(f"{entry} has no option {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        values = dict(options)
        if "policies" in values:
            values["policies"] = tuple(_ref(each, entry) for each in values["policies"])
        if isinstance(values.get("compactor"), list | tuple | str):
            values["compactor"] = _ref(values["compactor"], entry)
        try:
            return cls(**values)
        except ConfigError as error:
            raise ConfigError(str(error).replace("AgentConfig", entry, 1)) from error

    def dump(self) -> dict[str, Any]:
        """Give the settings as plain data, with a format version. Raises ``ConfigError`` when a credential is in them."""
        _check(self, "AgentConfig.dump")
        data: dict[str, Any] = {"format": FORMAT}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "policies":
                value = [[name, _plain(opts)] for name, opts in value]
            elif each.name == "compactor" and value is not None:
                value = [value[0], _plain(value[1])]
            data[each.name] = value
        return data

    @classmethod
    def rebuild(cls, data: Mapping[str, Any]) -> AgentConfig:
        """Read what ``dump`` gave, and check it again. Raises ``ConfigError`` for unknown keys and bad values."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            found = data.get("format") if isinstance(data, Mapping) else type(data).__name__
            raise ConfigError(f"AgentConfig.rebuild reads format {FORMAT}, not {found!r}")
        return cls.of("AgentConfig.rebuild", {key: value for key, value in data.items() if key != "format"})

    def with_(self, **changes: Any) -> AgentConfig:
        """Give a configuration with other values."""
        return replace(self, **changes)

    def limits(self) -> Limits:
        """Give the limits of a turn."""
        return Limits(iterations=self.max_iterations, retries=self.retries, backoff=self.backoff)

    def task_budget(self) -> TaskBudget | None:
        """Give a turn's budget; None without one."""
        return TaskBudget(self.budget) if self.budget is not None else None

    def make_policies(self) -> tuple[Policy, ...]:
        """Make the policies."""
        return tuple(make_policy(name, opts) for name, opts in self.policies)


def _ref(value: Any, entry: str) -> Ref:
    if isinstance(value, str):
        return value, {}
    if isinstance(value, list | tuple) and len(value) == 2:
        name, opts = value
        if isinstance(name, str) and isinstance(opts, Mapping):
            return name, dict(opts)
    raise ConfigError(f"{entry}: write a registered name, or (name, options), not {value!r}")


_AT_LEAST: dict[str, float] = {
    "max_iterations": 1,
    "retries": 0,
    "parallel": 1,
    "budget": 1,
    "max_tokens": 1,
    "nap_every": 0,
}
_OPTIONAL = ("budget", "max_tokens", "context_window", "model_timeout", "tool_timeout", "temperature")


def _check(config: AgentConfig, entry: str) -> None:
    for name, least in (*_AT_LEAST.items(), ("context_window", 1)):
        value = getattr(config, name)
        if value is None and name in _OPTIONAL:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"{entry}: {name} must be a whole number of at least {least}, not {value!r}")
    for name in ("backoff", "model_timeout", "tool_timeout", "temperature"):
        value = getattr(config, name)
        if value is None and name in _OPTIONAL:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ConfigError(f"{entry}: {name} must be a number of at least 0, not {value!r}")
    for name in ("model", "system", "scope"):
        value = getattr(config, name)
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"{entry}: {name} must be a text, not {type(value).__name__}")
    if not isinstance(config.thinking, bool):
        raise ConfigError(f"{entry}: thinking must be true or false, not {config.thinking!r}")
    if not isinstance(config.name, str) or not config.name:
        raise ConfigError(f"{entry}: name must be a text, not {config.name!r}")
    if config.scope is not None:
        MemoryScope.parse(config.scope)
    for policy, opts in config.policies:
        _no_secrets(opts, entry)
        if policy not in POLICIES:
            raise ConfigError(f"{entry}: unknown policy {policy!r}; known: {', '.join(sorted(POLICIES))}")
        make_policy(policy, opts)
    if config.compactor is not None:
        _no_secrets(config.compactor[1], entry)
        make_compactor(config.compactor, entry)


def make_compactor(ref: Ref, entry: str) -> Any:
    """Make a compactor by its registered name; its options are checked by its ``validate_opts(opts, entry)``."""
    name, opts = ref
    if name not in COMPACTORS:
        raise ConfigError(f"{entry}: unknown compactor {name!r}; known: {', '.join(sorted(COMPACTORS))}")
    kind = COMPACTORS[name]()
    validate = getattr(kind, "validate_opts", None)
    try:
        if validate is not None:
            validate(opts, entry)
        return kind(**opts)
    except TypeError as error:
        raise ConfigError(f"{entry}: compactor {name!r} can't be made with {dict(opts)!r}: {error}") from error


def _no_op() -> Any:
    from wakeful.compaction.compactor import NoOp

    return NoOp


def _window_manager() -> Any:
    from wakeful.compaction.compactor import WindowManager

    return WindowManager


COMPACTORS: dict[str, Any] = {"no_op": _no_op, "window_manager": _window_manager}
"""Compactors that a stored configuration may name: by name, a function that gives the class."""


def _no_secrets(value: Any, entry: str, path: str = "") -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if any(word in str(key).lower() for word in SECRET_WORDS):
                raise ConfigError(
                    f"{entry}: {path}{key} looks like a credential; those are never part of a configuration"
                )
            _no_secrets(item, entry, f"{path}{key}.")
    elif isinstance(value, list | tuple):
        for item in value:
            _no_secrets(item, entry, path)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise ConfigError(f"AgentConfig.dump: {type(value).__name__} can't be stored; give plain data")
