"""Read SQL from files: named statements, and named pieces that statements use in braces.

A file is a list of ``-- name: something`` lines, each followed by its statement. ``{piece}`` stands for another named
text. Nothing else is ever put into a statement: values are bound parameters.
"""

from __future__ import annotations

import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PIECE = re.compile(r"\{(\w+)\}")
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)


def load_statements(package: str, folder: str) -> dict[str, str]:
    """Read every statement of the ``.sql`` files in a package's folder, by name. Raises ``ValueError`` for a name twice."""
    texts: dict[str, str] = {}
    for file in sorted(files(package).joinpath(folder).iterdir(), key=lambda each: each.name):
        if not file.name.endswith(".sql"):
            continue
        parts = _NAME.split(file.read_text("utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in texts:
                raise ValueError(f"the statement {name!r} is named twice in {package}/{folder}")
            texts[name] = _COMMENT.sub("", text).strip()
    return {name: _PIECE.sub(lambda piece: texts[piece[1]], text) for name, text in texts.items()}


def load_scripts(package: str, folder: str) -> tuple[str, ...]:
    """Read the ``.sql`` files in a package's folder, in the order of their names."""
    found = [file for file in files(package).joinpath(folder).iterdir() if file.name.endswith(".sql")]
    return tuple(file.read_text("utf-8") for file in sorted(found, key=lambda each: each.name))
