"""A tenant's domain template: who the agent is for this tenant, as data. Unknown keys are errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from wakeful.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """What a tenant's prompt says beside memory."""

    name: str = "assistant"
    """Name of the agent."""
    description: str = ""
    """What the agent is for, in a sentence or two."""
    rules: tuple[str, ...] = ()
    """Standing rules, one a line."""
    preferences: tuple[str, ...] = ()
    """Standing preferences of the tenant."""
    required_profile: tuple[str, ...] = ()
    """Facts of the user that the agent should know, and ask for when they are missing."""
    kernel: str = ""
    """Further text for the kernel stratum; changes with releases only."""

    def __post_init__(self) -> None:
        for name in ("name", "description", "kernel"):
            if not isinstance(getattr(self, name), str):
                raise ConfigError(f"template key {name} is a text, not {getattr(self, name)!r}")
        for name in ("rules", "preferences", "required_profile"):
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(item, str) for item in value):
                raise ConfigError(f"template key {name} is a list of texts, not {value!r}")
            object.__setattr__(self, name, tuple(value))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Template:
        """Make a template from plain data. Raises ``ConfigError`` for an unknown key or a value of a wrong type."""
        known = [item.name for item in fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise ConfigError(f"a template has no key {', '.join(unknown)}; known: {', '.join(known)}")
        return cls(**values)

    @classmethod
    def from_toml(cls, text: str) -> Template:
        """Read a template from TOML text. Raises ``ConfigError`` where it is not valid."""
        import tomllib

        try:
            return cls.of(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"the template is not valid TOML: {error}") from None
