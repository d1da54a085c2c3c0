"""Collects the keys of a column's values while its base file is indexed, for routing."""

import numpy as np
import pyarrow as pa

from hudi_index_service.index.metadata.segments.keys import Keys, distinct, exact_keys, hashes
from hudi_index_service.index.metadata.segments.run import Pairs

MOST_KEYS = 2**21
"""Keys of a column that are held at once, 16 MB; at most half as many values are routed."""


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
