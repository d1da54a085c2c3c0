"""Finds the least and greatest value of a column, for the manifest's statistics."""

import pyarrow as pa
import pyarrow.compute as pc


class Extremes:
    """Running minimum and maximum of a column, for planning.

    A column of arrays or with a NaN has neither. A bound is also missing if its value is long or
    cannot be written as text (a timestamp beyond the range that Arrow prints, bytes that are not
    text).
    """

    _LONGEST = 128

    def __init__(self) -> None:
        self._low: pa.Scalar | None = None
        self._high: pa.Scalar | None = None
        self._unknown = False

    @property
    def bounds(self) -> tuple[pa.Scalar | None, pa.Scalar | None]:
        """The least and the greatest value seen; None for a missing one."""
        return self._low, self._high

    @property
    def unknown(self) -> bool:
        """Whether a value was seen that makes both bounds unknown."""
        return self._unknown

    def merge(self, values: pa.Array, *, unknown: bool) -> None:
        """Adds another instance's bounds, and whether they are unknown."""
        self._unknown |= unknown
        self.add(values)

    def add(self, array: pa.Array) -> None:
        """Adds the next values."""
        if pa.types.is_nested(array.type):
            return
        if pa.types.is_floating(array.type) and pc.any(pc.is_nan(array)).as_py():
            self._unknown = True
        min_max = pc.min_max(array)
        if not min_max["min"].is_valid:
            return
        if self._low is not None:
            # Arrow compares the values, because Python's dates end with the year 9999.
            bounds = (self._low, self._high, min_max["min"], min_max["max"])
            min_max = pc.min_max(pa.concat_arrays([pa.repeat(each, 1) for each in bounds]))
        self._low, self._high = min_max["min"], min_max["max"]

    def _text(self, scalar: pa.Scalar | None) -> str | None:
        if scalar is None or self._unknown:
            return None
        try:
            text = str(scalar.cast(pa.string()).as_py())
        except (pa.ArrowInvalid, UnicodeDecodeError):
            return None
        if text.startswith("<value out of range"):
            return None
        return text if len(text.encode()) <= self._LONGEST else None

    @property
    def minimum(self) -> str | None:
        """The least value seen."""
        return self._text(self._low)

    @property
    def maximum(self) -> str | None:
        """The greatest value seen."""
        return self._text(self._high)
