"""Least and greatest value of a column, for the manifest's statistics."""

import pyarrow as pa
import pyarrow.compute as pc


class Extremes:
    """Running minimum and maximum of a column, for planning; NaN and long values leave none."""

    _LONGEST = 128

    def __init__(self) -> None:
        self._low: pa.Scalar | None = None
        self._high: pa.Scalar | None = None
        self._unknown = False

    def add(self, array: pa.Array) -> None:
        """Takes in the next values."""
        if pa.types.is_floating(array.type) and pc.any(pc.is_nan(array)).as_py():
            self._unknown = True
        found = pc.min_max(array)
        low, high = found["min"], found["max"]
        if not low.is_valid:
            return
        if self._low is None or low.as_py() < self._low.as_py():
            self._low = low
        if self._high is None or high.as_py() > self._high.as_py():
            self._high = high

    def _spelled(self, scalar: pa.Scalar | None) -> str | None:
        if scalar is None or self._unknown:
            return None
        spelled = str(scalar.cast(pa.string()).as_py())
        return spelled if len(spelled.encode()) <= self._LONGEST else None

    @property
    def minimum(self) -> str | None:
        """The least value seen."""
        return self._spelled(self._low)

    @property
    def maximum(self) -> str | None:
        """The greatest value seen."""
        return self._spelled(self._high)
