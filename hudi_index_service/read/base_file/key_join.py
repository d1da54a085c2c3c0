"""Joins rows with search keys by the key of each row.

Arrow hashes all search keys for each call, so many rows are joined by one call. Until then, only
rows are kept whose key has the hash of a search key, as few other keys have.
"""

from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from hudi_index_parquet import polynomials

from hudi_index_service.arrow import as_numbers, as_truths, numbers_array

Numbers = npt.NDArray[np.int64]

FEWEST_ROWS = 65_536
_SLOTS_A_KEY = 16  # as many bytes for each search key, a power of two in all
_MIXER = np.uint64(0x9E37_79B9_7F4A_7C15)


class KeyJoin:
    """Rows that are joined with the same search keys. Safe to use from several threads."""

    def __init__(self, search_keys: pa.StringArray, columns: int) -> None:
        """Without rows as yet.

        Args:
            search_keys: Distinct, without NULL.
            columns: The number of columns of each row.
        """
        self.search_keys = search_keys
        bits = (_SLOTS_A_KEY * len(search_keys)).bit_length()
        self._shift = np.uint64(64 - bits)
        self._slots = np.zeros(1 << bits, dtype=bool)
        self._slots[self._slots_of(search_keys)] = True
        self._waiting: list[tuple[pa.StringArray, list[Numbers]]] = []
        self._count = 0
        none = np.zeros(0, dtype=np.int64)
        self._found: list[list[Numbers]] = [[none] * (1 + columns)]
        self._lock = Lock()

    def add(self, row_keys: pa.StringArray, *columns: npt.NDArray[Any]) -> None:
        """Adds rows.

        Args:
            row_keys: The key of each row.
            columns: What is to be known of each row, in integers or truths.
        """
        places = np.flatnonzero(self._slots[self._slots_of(row_keys)])
        rows = row_keys.take(numbers_array(places)), [each[places] for each in columns]
        with self._lock:
            self._waiting.append(rows)
            self._count += len(places)
            # Joining them takes longer than hashing the search keys, which each call does.
            if self._count >= max(len(self.search_keys), FEWEST_ROWS):
                self._join()

    def found(self) -> list[Numbers]:
        """For each row with one of the search keys: the position of that key, and the columns."""
        with self._lock:
            if self._waiting:
                self._join()
        return [np.concatenate(each) for each in zip(*self._found, strict=True)]

    def _slots_of(self, keys: pa.StringArray) -> npt.NDArray[np.uint64]:
        sums = np.frombuffer(polynomials(keys.cast(pa.binary())), dtype="<u8")
        slots: npt.NDArray[np.uint64] = ((sums ^ (sums >> np.uint64(32))) * _MIXER) >> self._shift
        return slots

    def _join(self) -> None:
        row_keys, columns = zip(*self._waiting, strict=True)
        self._waiting, self._count = [], 0
        keys = pa.chunked_array(row_keys, pa.string())
        places = pc.index_in(keys, value_set=self.search_keys).combine_chunks()
        is_found = as_truths(places.is_valid())
        self._found.append(
            [
                as_numbers(places.drop_null()).astype(np.int64),
                *(np.concatenate(each)[is_found] for each in zip(*columns, strict=True)),
            ]
        )
