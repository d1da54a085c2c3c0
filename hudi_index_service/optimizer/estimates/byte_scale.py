"""Where a text or byte string stands between two others, as PostgreSQL reckons it
(`convert_string_to_scalar` in its `selfuncs.c`): as a number of which each byte is a digit, without
what all begin with, and as if only bytes occurred that are of the same kinds as those seen."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

_DIGITS = 8  # of base 95, a double tells them apart
_KINDS = ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A))  # digits, capitals, small letters


@dataclass(frozen=True, slots=True)
class ByteScale:
    """Make it by `between`.

    Attributes:
        shared: How many bytes all values begin with alike.
        low, base: The least byte that counts as a digit, and how many do.
        first, width: Where the least value stands, and how far from it the greatest.
    """

    shared: int
    low: int
    base: int
    first: float
    width: float

    @classmethod
    def between(cls, least: bytes, greatest: bytes) -> Self:
        """The scale of values between two."""
        shared = 0
        for one, other in zip(least, greatest, strict=False):
            if one != other:
                break
            shared += 1
        seen = least[shared : shared + _DIGITS] + greatest[shared : shared + _DIGITS]
        low, high = min(seen, default=0), max(seen, default=255)
        for begin, end in _KINDS:
            if low <= end and high >= begin:
                low, high = min(low, begin), max(high, end)
        base = high - low + 1
        first = _place(least, shared, low, base)
        return cls(shared, low, base, first, _place(greatest, shared, low, base) - first)

    def share(self, value: bytes, *, above: bool) -> float:
        """The share of the values that is below one of them; with `above`, below all that begin
        with it, too."""
        place = _place(value, self.shared, self.low, self.base, above)
        return min(max((place - self.first) / self.width, 0.0), 1.0) if self.width > 0 else 0.5


@lru_cache(maxsize=1_024)  # the base files of a table mostly have the same scale
def _place(value: bytes, shared: int, low: int, base: int, above: bool = False) -> float:
    place, unit = 0.0, 1.0
    for byte in value[shared : shared + _DIGITS]:
        unit /= base
        place += unit * min(max(byte - low, 0), base)
        if not 0 <= byte - low < base:
            break  # what follows a byte of another kind is not told apart
    return place + unit if above else place
