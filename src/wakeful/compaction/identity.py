"""Entry ids of plain messages: a hash of the content, and the ordinal among equal ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wakeful.dialects.protocol import Dialect
from wakeful.errors import InputError
from wakeful.ids import content_id


def ids_of(dialect: Dialect, messages: Sequence[Any]) -> list[str]:
    """Give an id for each message: the same content in the same place among equals always has the same id."""
    seen: dict[str, int] = {}
    ids: list[str] = []
    for message in messages:
        try:
            text = dialect.dumps(message)
        except InputError:
            text = repr(message)
        base = content_id(text, prefix="m-")
        seen[base] = ordinal = seen.get(base, 0) + 1
        ids.append(base if ordinal == 1 else f"{base}-{ordinal}")
    return ids
