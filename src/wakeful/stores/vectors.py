"""Compare vectors kept as bytes, with numpy when it is there and without it when not."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from wakeful.errors import MemoryContractError

_BLOCK = 512
"""Rows of one product. BLAS gives a larger one to threads, which for these sizes cost more than they save."""


def dots(rows: Any, query: Any) -> Any:
    """Product of each row of a matrix, of any numeric type, with a float32 vector, as float32."""
    import numpy

    out = numpy.empty(len(rows), "f4")
    for first in range(0, len(rows), _BLOCK):
        block = rows[first : first + _BLOCK].astype("f4", copy=False)
        numpy.dot(block, query, out=out[first : first + _BLOCK])
    return out


def cosines(vectors: Sequence[bytes], query: bytes) -> list[float]:
    """Cosine of the query with each vector (float32 bytes of unit length), -1 to 1."""
    if not vectors:
        return []
    try:
        import numpy
    except ModuleNotFoundError:
        wanted = struct.unpack(f"<{len(query) // 4}f", query)
        return [sum(map(float.__mul__, wanted, struct.unpack(f"<{len(vector) // 4}f", vector))) for vector in vectors]
    matrix = numpy.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)
    scores: list[float] = dots(matrix, numpy.frombuffer(query, dtype="<f4")).tolist()
    return scores


def half_cosines(vectors: Sequence[bytes], query: bytes) -> list[float]:
    """Cosine of the query (float32 bytes) with each vector (float16 bytes), both of unit length."""
    if not vectors:
        return []
    try:
        import numpy
    except ModuleNotFoundError:
        size = len(query) // 4
        wanted = struct.unpack(f"<{size}f", query)
        return [sum(map(float.__mul__, wanted, struct.unpack(f"<{size}e", vector))) for vector in vectors]
    matrix = numpy.frombuffer(b"".join(vectors), dtype="<f2").reshape(len(vectors), -1)
    scores: list[float] = dots(matrix, numpy.frombuffer(query, dtype="<f4")).tolist()
    return scores


def unit(vector: bytes, what: str) -> bytes:
    """Scale a vector to unit length. Raises ``MemoryContractError`` for one that is zero or not finite."""
    values = struct.unpack(f"<{len(vector) // 4}f", vector)
    length = math.hypot(*values)
    if not 0 < length < math.inf:
        raise MemoryContractError(f"{what} has no direction (zero, infinite or not a number)")
    if abs(length - 1) < 1e-6:
        return vector
    return struct.pack(f"<{len(values)}f", *[value / length for value in values])
