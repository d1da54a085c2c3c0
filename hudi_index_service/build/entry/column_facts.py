"""What is learned of a column's values while its base file is indexed: the least and the greatest,
for the manifest's statistics, and their keys, for routing."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.index.metadata.segments.bounds import Keys, distinct, exact_keys, hashes
from hudi_index_service.index.metadata.segments.run import Pairs

MOST_KEYS = 2**21
"""Keys of a column that are held at once, 16 MB; at most half as many values are routed."""


class Extremes:
    """Running minimum and maximum of a column, for planning.

    A column of arrays or with a NaN has neither. A bound is also missing if its value is long or
    cannot be written as text (a timestamp beyond the range that Arrow prints, bytes that are not
    text).

    Attributes:
        low, high: The least and the greatest value seen; None for a missing one.
        unknown: Whether a value was seen that makes both bounds unknown.
    """

    LONGEST = 128

    def __init__(self) -> None:
        self.low: pa.Scalar | None = None
        self.high: pa.Scalar | None = None
        self.unknown = False

    def add(self, array: pa.Array) -> None:
        """Adds the next values."""
        if pa.types.is_nested(array.type):
            return
        if pa.types.is_floating(array.type) and pc.any(pc.is_nan(array)).as_py():
            self.unknown = True
        min_max = pc.min_max(array)
        if not min_max["min"].is_valid:
            return
        if self.low is not None:
            # Arrow compares the values, because Python's dates end with the year 9999.
            bounds = (self.low, self.high, min_max["min"], min_max["max"])
            min_max = pc.min_max(pa.concat_arrays([pa.repeat(each, 1) for each in bounds]))
        self.low, self.high = min_max["min"], min_max["max"]

    def _text(self, scalar: pa.Scalar | None) -> str | None:
        if scalar is None or self.unknown:
            return None
        try:
            text = str(scalar.cast(pa.string()).as_py())
        except (pa.ArrowInvalid, UnicodeDecodeError):
            return None
        if text.startswith("<value out of range"):
            return None
        return text if len(text.encode()) <= self.LONGEST else None

    @property
    def minimum(self) -> str | None:
        """The least value seen."""
        return self._text(self.low)

    @property
    def maximum(self) -> str | None:
        """The greatest value seen."""
        return self._text(self.high)


class ValueKeys:
    """The distinct keys of a column's values, unless there are too many."""

    def __init__(self) -> None:
        self._parts: list[Keys] = []
        self._count = 0
        self._by_value = False
        self._too_many = False

    def add(self, array: pa.Array) -> None:
        """Adds the next values, of a type that is routed."""
        if self._too_many:
            return
        values = array.drop_null()
        exact = exact_keys(values)
        self._by_value = exact is not None
        self._parts.append(distinct(hashes(values) if exact is None else exact))
        self._count += len(self._parts[-1])
        if self._count > MOST_KEYS:
            self._parts = [distinct(np.concatenate(self._parts))]
            self._count = len(self._parts[0])
            # If half of the room is left, further batches are not sorted with all others each time.
            self._too_many = self._count > MOST_KEYS // 2

    def pairs(self) -> Pairs | None:
        """The keys as pairs with file 0; None if there are too many."""
        if self._too_many:
            return None
        if len(self._parts) == 1:  # a small base file: its only part is sorted
            keys = self._parts[0]
        else:
            keys = distinct(np.concatenate([np.zeros(0, dtype=np.uint64), *self._parts]))
        return Pairs.of_file(keys, by_value=self._by_value)
