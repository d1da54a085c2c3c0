"""Which base files can hold which of the requested keys, by the table's segments.

A file that can hold no key is not opened, nor is its entry listed. The others are searched only for
the keys that they can hold. Without facts of the key's column, every file may hold every key.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import as_truths, numbers_array, truths_array
from hudi_index_service.hudi.files.log_file import RECORD_KEY
from hudi_index_service.index.metadata.segments.exclusion import LocatedValues
from hudi_index_service.index.metadata.segments.segment import ColumnKey
from hudi_index_service.read.base_file.record_keys import RecordKeys
from hudi_index_service.read.keys.key_range import LONG_NUMBER, NUMBER
from hudi_index_service.read.planner import BaseFiles

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyValues:
    """The column values that stand for record keys.

    Attributes:
        values: Values of the column's type, some of them perhaps in no row.
        keys: The position of the key that each belongs to.
        anywhere: The positions of keys that may have other values, too.
    """

    column: ColumnKey
    values: pa.Array
    keys: Numbers
    anywhere: Numbers


def key_values(keys: RecordKeys, search_keys: pa.StringArray) -> Iterator[KeyValues]:
    """The values of the columns that alone tell which row has a key; the best column first."""
    every, none = np.arange(len(search_keys)), np.zeros(0, dtype=np.int64)
    if keys.stored:
        type = keys.columns.field(RECORD_KEY).type
        if pa.types.is_string(type):
            yield KeyValues((RECORD_KEY, str(type)), search_keys, every, none)
    if len(keys.fields) != 1:
        return
    ((key_column, field),) = keys.fields.items()
    # Some releases of ComplexKeyGenerator print the column's name before a single column's value.
    prefix = f"{key_column}:"
    prefixed = np.flatnonzero(as_truths(pc.starts_with(search_keys, prefix)))
    rest = pc.utf8_slice_codeunits(search_keys.take(numbers_array(prefixed)), len(prefix))
    texts = pa.concat_arrays([search_keys, rest])
    positions = np.concatenate([every, prefixed])
    column = (field.name, str(field.type))
    if pa.types.is_string(field.type):
        yield KeyValues(column, texts, positions, none)
    elif pa.types.is_int64(field.type) or pa.types.is_int32(field.type):
        are_numbers = as_truths(pc.match_substring_regex(texts, NUMBER))
        # Numbers of 19 digits may fit or not; other texts are no key of this column.
        doubtful = as_truths(pc.match_substring_regex(texts, LONG_NUMBER))
        values = texts.filter(truths_array(are_numbers)).cast(pa.int64())
        if pa.types.is_int32(field.type):
            fits = as_truths(pc.equal(values, values.cast(pa.int32(), safe=False).cast(pa.int64())))
            values = values.filter(truths_array(fits)).cast(pa.int32())
            chosen = positions[are_numbers][fits]
        else:
            chosen = positions[are_numbers]
        yield KeyValues(column, values, chosen, np.unique(positions[doubtful]))


@dataclass(frozen=True, slots=True)
class RoutedKeys:
    """The keys that the base files of a snapshot may hold, by the values of one column.

    Attributes:
        values: The keys' values in the column.
        located: Which of these values each slice's base file may hold, by the slice's number.
    """

    values: KeyValues
    located: LocatedValues

    def of_slice(self, number: int) -> Numbers | None:
        """The positions of the keys that a slice's base file may hold; None for any."""
        if not self.located.is_known[number]:
            return None
        return np.union1d(
            self.values.keys[self.located.routed.of_file(number)], self.values.anywhere
        )


def routed_keys(
    base_files: BaseFiles, keys: RecordKeys, search_keys: pa.StringArray
) -> list[RoutedKeys]:
    """The keys that base files may hold, by each index type's segments and each column that tells
    which row has a key; the best first.

    Args:
        search_keys: Distinct, without NULL.
    """
    if base_files.folder is None:
        return []
    return [
        RoutedKeys(each, base_files.segment_slices.located(segments, each.column, each.values))
        for name, segments in base_files.folder.segments.items()
        for each in key_values(keys, search_keys)
        if segments and each.column in base_files.columns[name]
    ]
