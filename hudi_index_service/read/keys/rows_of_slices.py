"""Matches the keys of rows of many slices with search keys, whose locations these are.

Arrow hashes all search keys for each call, so the rows of many slices are matched by one call. Of
the rows, those are collected whose key's hash is that of a search key: few others are left.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from hudi_index_parquet import polynomials

from hudi_index_service.arrow import FALSE, as_numbers, as_truths, numbers_array, texts_array
from hudi_index_service.hudi.snapshot import FileSlice
from hudi_index_service.read.base_file.record_keys import Numbers
from hudi_index_service.read.base_file.row_reader import RowIds

_FEWEST_ROWS = 65_536
_SLOTS_A_KEY = 16  # as many bytes for each search key, a power of two in all
_MIXER = np.uint64(0x9E37_79B9_7F4A_7C15)

LOCATIONS = pa.schema(
    [
        ("record_key", pa.string()),
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("instant", pa.string()),
        ("row_id", pa.int64()),
        ("deleted", pa.bool_()),
    ]
)
"""The columns of each key found. ``deleted``: whether a log file is known to delete the row."""

KeysLocated = tuple[Numbers, pa.Table]
"""Positions in the search keys of the keys found, and the location (`LOCATIONS`) of each."""


def key_hashes(keys: pa.StringArray) -> npt.NDArray[np.uint64]:
    """A hash of each key, evenly distributed in its highest bits."""
    sums = np.frombuffer(polynomials(keys.cast(pa.binary())), dtype="<u8")
    hashes: npt.NDArray[np.uint64] = (sums ^ (sums >> np.uint64(32))) * _MIXER
    return hashes


class RowsOfSlices:
    """Rows of many slices without log files, collected to be matched with the same search keys."""

    def __init__(self, search_keys: pa.StringArray) -> None:
        """Without rows as yet.

        Args:
            search_keys: Distinct, without NULL.
        """
        self.search_keys = search_keys
        bits = (_SLOTS_A_KEY * len(search_keys)).bit_length()
        self._shift = np.uint64(64 - bits)
        self._slots = np.zeros(1 << bits, dtype=bool)
        self._slots[key_hashes(search_keys) >> self._shift] = True
        self._forget()

    def add(self, file_slice: FileSlice, row_ids: RowIds, row_keys: pa.StringArray) -> None:
        """Adds rows of a slice with a base file."""
        places = self._may_match(row_keys)
        self._add([file_slice], np.zeros(len(places), np.int64), row_ids[places], row_keys, places)

    def add_files(
        self, slices: Sequence[FileSlice], counts: Sequence[int], row_keys: pa.StringArray
    ) -> None:
        """Adds all rows of the base files of slices.

        Args:
            counts: The number of rows of each base file.
            row_keys: The keys of their rows, file by file.
        """
        places = self._may_match(row_keys)
        rows = np.array(counts, np.int64)
        ends = np.cumsum(rows)
        of_rows = np.searchsorted(ends, places, side="right")
        self._add(slices, of_rows, places - (ends - rows)[of_rows], row_keys, places)

    def _may_match(self, row_keys: pa.StringArray) -> Numbers:
        """The places of the rows whose key may be one of the search keys."""
        return np.flatnonzero(self._slots[key_hashes(row_keys) >> self._shift])

    def _add(
        self,
        slices: Sequence[FileSlice],
        of_rows: Numbers,
        row_ids: RowIds,
        row_keys: pa.StringArray,
        places: Numbers,
    ) -> None:
        """Adds rows of some slices.

        Args:
            of_rows: The number of each row's slice among the slices.
            places: The places of the rows' keys in `row_keys`.
        """
        self._of_rows.append(of_rows + len(self._slices))
        self._slices += slices
        self._row_ids.append(row_ids)
        self._row_keys.append(row_keys.take(numbers_array(places)))
        self._count += len(places)

    @property
    def are_many(self) -> bool:
        """Whether hashing the search keys takes no longer than matching the rows collected."""
        return self._count >= max(len(self.search_keys), _FEWEST_ROWS)

    def located(self) -> KeysLocated:
        """The keys located in the rows collected, which are then forgotten."""
        nothing = np.zeros(0, np.int64)
        row_ids = np.concatenate([nothing, *self._row_ids])
        of_rows = np.concatenate([nothing, *self._of_rows])
        row_keys = pa.chunked_array(self._row_keys, pa.string())
        places = pc.index_in(row_keys, value_set=self.search_keys).combine_chunks()
        found = as_truths(places.is_valid())
        key_positions = as_numbers(places.drop_null()).astype(np.int64)
        slices = numbers_array(of_rows[found])
        slice_values = (
            [each.partition for each in self._slices],
            [each.file_id for each in self._slices],
            [None if each.base_file is None else each.base_file.instant for each in self._slices],
        )
        locations = pa.table(
            [
                row_keys.filter(places.is_valid()),
                *(texts_array(each, pa.string()).take(slices) for each in slice_values),
                numbers_array(row_ids[found]),
                pa.repeat(FALSE, len(slices)),
            ],
            schema=LOCATIONS,
        )
        self._forget()
        return key_positions, locations

    def _forget(self) -> None:
        self._slices: list[FileSlice] = []
        self._of_rows: list[Numbers] = []
        self._row_ids: list[RowIds] = []
        self._row_keys: list[pa.StringArray] = []
        self._count = 0
