"""Width and height of an image from the first bytes of its file. PNG, JPEG, GIF and WebP; nothing is decoded.

Sources: PNG (ISO/IEC 15948, IHDR), JPEG (ITU-T T.81, SOF markers), GIF89a (logical screen), WebP (RFC 9649).
"""

from __future__ import annotations

import base64
import binascii

_HEAD = 65_536
"""Characters of base64 that are looked at: a JPEG's size stands after its metadata."""


def size_of(data: str | bytes) -> tuple[int, int] | None:
    """Give (width, height) in pixels of base64 text or raw bytes; None when it can't be told."""
    if isinstance(data, str):
        head = data[:_HEAD]
        try:
            raw = base64.b64decode(head[: len(head) // 4 * 4])
        except (binascii.Error, ValueError):
            return None
    else:
        raw = bytes(data[:_HEAD])
    if raw.startswith(b"\x89PNG\r\n\x1a\n") and len(raw) >= 24:
        return int.from_bytes(raw[16:20], "big"), int.from_bytes(raw[20:24], "big")
    if raw[:6] in (b"GIF87a", b"GIF89a") and len(raw) >= 10:
        return int.from_bytes(raw[6:8], "little"), int.from_bytes(raw[8:10], "little")
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return _webp(raw)
    return _jpeg(raw) if raw.startswith(b"\xff\xd8") else None


def _webp(raw: bytes) -> tuple[int, int] | None:
    kind = raw[12:16]
    if kind == b"VP8X" and len(raw) >= 30:
        return 1 + int.from_bytes(raw[24:27], "little"), 1 + int.from_bytes(raw[27:30], "little")
    if kind == b"VP8 " and len(raw) >= 30:
        return int.from_bytes(raw[26:28], "little") & 0x3FFF, int.from_bytes(raw[28:30], "little") & 0x3FFF
    if kind == b"VP8L" and len(raw) >= 25:
        bits = int.from_bytes(raw[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return None


def _jpeg(raw: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker == 0xFF:
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(raw[at + 7 : at + 9], "big"), int.from_bytes(raw[at + 5 : at + 7], "big")
        else:
            at += 2 + int.from_bytes(raw[at + 2 : at + 4], "big")
    return None
