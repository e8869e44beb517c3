"""Show remembered text as data: on one line, escaped, marked with where it came from.

A memory can't close its own section (``<`` and ``&`` are escaped), can't start a line of its own (line breaks become a
visible sign), and can't hide characters (invisible ones are shown by their code point). The stored text stays as it is.

Source of the set of invisible characters: Unicode 15.1, general category Cf and the tag block U+E0000 to U+E007F, as
used in "ASCII smuggling"; zero-width joiner and non-joiner are kept inside words of scripts and emoji that need them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

LINE_SIGN = " ⏎ "
_KEPT_FORMAT = {"\u200c", "\u200d"}
_BREAKS = {"\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"}


def plain(text: str) -> str:
    """Put a text on one line, with every hidden character made visible."""
    if text.isascii() and text.isprintable():
        return text
    out: list[str] = []
    for index, character in enumerate(text):
        if character in _BREAKS:
            if character != "\n" or index == 0 or text[index - 1] != "\r":
                out.append(LINE_SIGN)
        elif character == "\t":
            out.append(" ")
        elif _hidden(character, text, index):
            out.append(f"⟨U+{ord(character):04X}⟩")
        else:
            out.append(character)
    return "".join(out).strip()


def _hidden(character: str, text: str, index: int) -> bool:
    category = unicodedata.category(character)
    if category not in ("Cf", "Cc", "Co", "Cs", "Cn"):
        return False
    if character in _KEPT_FORMAT and 0 < index < len(text) - 1:
        around = text[index - 1], text[index + 1]
        return all(unicodedata.category(each) in ("Zs", "Cf", "Cc") or each.isascii() for each in around)
    return True


def escape(text: str) -> str:
    """Put a text on one line and escape what could be read as markup."""
    return plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def attribute(text: str) -> str:
    """Escape a text for use between double quotes."""
    return escape(text).replace('"', "&quot;")


def entry(tag: str, text: str, attributes: Iterable[tuple[str, str | None]]) -> str:
    """One line ``<tag a="b">text</tag>``; attributes without a value are left out."""
    marks = "".join(f' {name}="{attribute(value)}"' for name, value in attributes if value)
    return f"<{tag}{marks}>{escape(text)}</{tag}>"
