"""Vectors of one owner's rows: a sign code to find the nearest by, a byte a dimension to look again, and the vectors.

A search counts differing signs, compares some percent of the rows by bytes, and the best of those in full. Few rows are
compared in full at once. Source of the codes with further looks: the usual quantisation with rescoring; how far it
agrees with the whole comparison is measured by ``bench/store_latency.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wakeful.stores.sidecar.best import best
from wakeful.stores.vectors import dots

SECOND_LOOK = 800
"""Rows nearest by their codes that are looked at again, at least."""
SECOND_LOOK_SHARE = 0.02
"""Share of all rows that is looked at again, up to ``SECOND_LOOK_MOST``. Source: on turns of people who talk, a second
look at 2 % of the rows gives 0.97 of the exact first ten, one at 4 % gives 0.99."""
SECOND_LOOK_MOST = 4_000
THIRD_LOOK = 3
"""Times the limit that is compared in full. A byte a dimension misses a cosine by less than 0.001."""
TALLIED = 16_384
"""Rows, evenly spread, whose distances tell how far to reach for a second look."""
EXACT_BELOW = 2_000
"""Rows up to which every vector is compared in full."""
_HIDDEN = 0xFFFF


class Vectors:
    """The vectors, by slot."""

    def __init__(self, np: Any, width: int, room: int) -> None:
        self._np = np
        self.width = width
        """Dimensions."""
        self.embedded = np.zeros(room, "?")
        """Which slots have a vector."""
        self._whole = np.zeros((room, width), "f2")
        self._bytes = np.zeros((room, width), "i1")
        self._scale = np.zeros(room, "f4")
        self._codes = np.zeros((-(-width // 64), room), "u8")
        self._few: Any = None
        """The vectors as float32, while they are few."""

    @property
    def size(self) -> int:
        """Bytes held."""
        return sum(int(each.nbytes) for each in (self._whole, self._bytes, self._scale, self._codes, self.embedded))

    def reserve(self, room: int) -> None:
        """Make room for so many slots."""
        np, held = self._np, len(self.embedded)
        for name in ("embedded", "_whole", "_bytes", "_scale"):
            array = getattr(self, name)
            grown = np.zeros((room, *array.shape[1:]), array.dtype)
            grown[:held] = array
            setattr(self, name, grown)
        codes = np.zeros((len(self._codes), room), "u8")
        codes[:, :held] = self._codes
        self._codes = codes

    def add(self, slots: Sequence[int], data: Sequence[bytes]) -> None:
        """Put vectors (float16 bytes of the right size) into slots."""
        np = self._np
        places = np.array(slots)
        matrix = np.frombuffer(b"".join(data), "<f2").reshape(len(data), -1)
        self._whole[places] = matrix
        self._codes[:, places] = self._code(matrix).T
        whole = matrix.astype("f4")
        scale = np.abs(whole).max(axis=1) / 127
        self._scale[places] = scale
        self._bytes[places] = np.rint(whole / np.where(scale > 0, scale, 1)[:, None])
        self.embedded[places] = True
        self._few = None

    def _code(self, matrix: Any) -> Any:
        """One bit a dimension: its sign."""
        np = self._np
        bits = np.packbits(matrix > 0, axis=1)
        padded = np.zeros((len(matrix), len(self._codes) * 8), "u1")
        padded[:, : bits.shape[1]] = bits
        return padded.view("u8")

    def nearest(self, query: Any, shown: Any, limit: int) -> tuple[Any, Any]:
        """Shown slots nearest to a query (float32, unit length) by cosine, and their cosines; more on ties."""
        np = self._np
        shown = shown & self.embedded[: len(shown)]
        look = max(SECOND_LOOK, 4 * limit, min(SECOND_LOOK_MOST, int(SECOND_LOOK_SHARE * len(shown))))
        if len(shown) <= max(EXACT_BELOW, look):
            if self._few is None or len(self._few) < len(shown):
                self._few = self._whole[: len(shown)].astype("f4")
            slots = np.flatnonzero(shown)
            return best(np, slots, dots(self._few[: len(shown)], query)[slots], limit)
        slots = self._close(query, shown, look)
        if len(slots) > THIRD_LOOK * limit:
            about = dots(self._bytes[slots], query) * self._scale[slots]
            slots, _ = best(np, slots, about, THIRD_LOOK * limit)
        return best(np, slots, dots(self._whole[slots], query), limit)

    def _close(self, query: Any, shown: Any, look: int) -> Any:
        """About ``look`` shown slots whose codes differ least from the query's."""
        np, slots = self._np, len(shown)
        code = self._code(query[None, :])[0]
        far = np.zeros(slots, "u2")
        for word, bits in zip(code, self._codes, strict=True):
            far += popcount(np, bits[:slots] ^ word)
        if not shown.all():
            far[~shown] = _HIDDEN
        for step in (max(1, slots // TALLIED), 1):
            tally = np.bincount(far[::step])[:_HIDDEN]
            reach = int(np.searchsorted(np.cumsum(tally), -(-look // step)))
            found = np.flatnonzero(far <= min(reach, 64 * len(self._codes)))
            if step == 1 or len(found) >= look // 2:
                break
        return found


def popcount(np: Any, words: Any) -> Any:
    """Count the set bits of 64-bit words; numpy before 2 has no such function."""
    if hasattr(np, "bitwise_count"):
        return np.bitwise_count(words)
    halves = words.view("u2").reshape(len(words), 4)
    global _bits_of_half
    if _bits_of_half is None:
        _bits_of_half = np.array([number.bit_count() for number in range(1 << 16)], "u1")
    return _bits_of_half[halves].sum(axis=1, dtype="u2")


_bits_of_half: Any = None
