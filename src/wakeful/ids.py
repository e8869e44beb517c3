"""Identifiers: time-ordered ids for rows, content hashes for what must be the same twice.

Both are plain strings that are safe in file names, SQL and URLs.
"""

from __future__ import annotations

import hashlib
import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


_PAIRS = tuple(one + other for one in _ALPHABET for other in _ALPHABET)


def _base32(value: int, length: int) -> str:
    """Write a number in an even count of base-32 digits, two at a time."""
    out = [_PAIRS[value >> shift & 1023] for shift in range(5 * length - 10, -1, -10)]
    return "".join(out)


_LENGTHS = tuple(length.to_bytes(8, "big") for length in range(256))


def time_id(milliseconds: int, entropy: int | None = None) -> str:
    """Make a 26-character id that sorts by time.

    ``milliseconds`` since the Unix epoch (48 bits); ``entropy`` 80 bits, drawn from the system when None.
    Source: the ULID specification, https://github.com/ulid/spec (lower-case Crockford base 32).
    """
    if entropy is None:
        entropy = secrets.randbits(80)
    return _base32(milliseconds & (1 << 48) - 1, 10) + _base32(entropy & (1 << 80) - 1, 16)


def milliseconds_of(id: str) -> int | None:
    """Read the time of an id that ``time_id`` made, milliseconds since the Unix epoch; None for another text."""
    if len(id) != 26 or any(letter not in _ALPHABET for letter in id):
        return None
    value = 0
    for letter in id[:10]:
        value = value * 32 + _ALPHABET.index(letter)
    return value


def content_id(*parts: str | bytes, prefix: str = "") -> str:
    """Make a 20-character id from content: the same parts always give the same id.

    Parts are length-delimited, so ``("ab", "c")`` and ``("a", "bc")`` differ. 100 bits of BLAKE2b: a collision among
    10^12 contents has a chance under 10^-6. Lone surrogates are hashed as they stand.
    """
    framed = bytearray()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        framed += _LENGTHS[len(raw)] if len(raw) < 256 else len(raw).to_bytes(8, "big")
        framed += raw
    digest = int.from_bytes(hashlib.blake2b(framed, digest_size=16).digest(), "big")
    # The 100 leading bits, two digits at a time, written out: ids are made by the ten thousand.
    high, low, two = digest >> 78, digest >> 28, _PAIRS
    return (
        f"{prefix}{two[high >> 40]}{two[high >> 30 & 1023]}{two[high >> 20 & 1023]}{two[high >> 10 & 1023]}"
        f"{two[high & 1023]}{two[low >> 40 & 1023]}{two[low >> 30 & 1023]}{two[low >> 20 & 1023]}"
        f"{two[low >> 10 & 1023]}{two[low & 1023]}"
    )
