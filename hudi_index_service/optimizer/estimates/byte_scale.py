"""Places a text or byte string between two others as PostgreSQL does (`convert_string_to_scalar`
in its `selfuncs.c`): as a number with one digit per byte, without the common prefix, assuming only
bytes of the same kinds as those seen."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

_DIGITS = 8  # digits of base 95 that a double can distinguish
_KINDS = ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A))  # digits, capitals, small letters


@dataclass(frozen=True, slots=True)
class ByteScale:
    """Make it by `between`.

    Attributes:
        shared: The length of the common prefix in bytes.
        low, base: The least byte that counts as a digit, and the number of digits.
        first, width: The position of the least value, and its distance to the greatest.
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
        digits = least[shared : shared + _DIGITS] + greatest[shared : shared + _DIGITS]
        low, high = min(digits, default=0), max(digits, default=255)
        for begin, end in _KINDS:
            if low <= end and high >= begin:
                low, high = min(low, begin), max(high, end)
        base = high - low + 1
        first = _place(least, shared, low, base)
        return cls(shared, low, base, first, _place(greatest, shared, low, base) - first)

    def share(self, value: bytes, *, above: bool) -> float:
        """The share of values below `value`; with `above`, including those that begin with it."""
        place = _place(value, self.shared, self.low, self.base, above)
        return min(max((place - self.first) / self.width, 0.0), 1.0) if self.width > 0 else 0.5


@lru_cache(maxsize=1_024)  # the base files of a table mostly have the same scale
def _place(value: bytes, shared: int, low: int, base: int, above: bool = False) -> float:
    place, unit = 0.0, 1.0
    for byte in value[shared : shared + _DIGITS]:
        unit /= base
        place += unit * min(max(byte - low, 0), base)
        if not 0 <= byte - low < base:
            break  # bytes after one of another kind are ignored
    return place + unit if above else place
