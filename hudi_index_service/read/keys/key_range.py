"""The range of a base file's record keys, from the least and greatest values in the manifests of
its entries. Other keys need not be searched in the file."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import as_truths, scalar, text_scalar
from hudi_index_service.hudi.files.log_file import RECORD_KEY
from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.read.base_file.record_keys import RecordKeys

NUMBER = "^(0|-?[1-9][0-9]{0,17})$"
"""A number as keys have it, surely of 64 bits."""

LONG_NUMBER = "^-?[1-9][0-9]{18}$"
"""A number that may have more than 64 bits."""

_ZERO = text_scalar("0")

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The least and the greatest key: text in UTF-8, or integers. Make it by `of_base_file`.

    Attributes:
        prefix: The optional prefix of a single-column key, which some key generators print.
    """

    least: bytes | int
    greatest: bytes | int
    prefix: str = ""

    @classmethod
    def of_base_file(cls, plan: SlicePlan, keys: RecordKeys) -> "KeyRange | None":
        """The range of a slice's base file; None if no entry that may serve it has bounds.

        Args:
            keys: The table's record keys.
        """
        prefixes: dict[str, str] = {}  # column → optional prefix of its values
        if keys.stored:
            prefixes[RECORD_KEY] = ""
        if len(keys.fields) == 1:
            ((key_column, field),) = keys.fields.items()
            if pa.types.is_string(field.type) or pa.types.is_integer(field.type):
                prefixes[field.name] = f"{key_column}:"
        for name, prefix in prefixes.items():
            for serving in plan.entries:
                if all(column.name != name for column in serving.columns):
                    continue
                bounds = serving.entry.manifest.bounds(name)
                if bounds.least is not None and bounds.greatest is not None:
                    return cls(bounds.least, bounds.greatest, prefix)
        return None

    @classmethod
    def around(cls, ranges: Iterable["KeyRange | None"]) -> "KeyRange | None":
        """The smallest range around all of these; None if one of them is not known."""
        all_ranges = list(ranges)
        known = [each for each in all_ranges if each is not None]
        if len(known) < len(all_ranges) or len({type(each.least) for each in known}) != 1:
            return None
        least, greatest = min(each.least for each in known), max(each.greatest for each in known)
        return cls(least, greatest, max(each.prefix for each in known))

    def holds(self, keys: pa.StringArray) -> Mask:
        """For each non-NULL key, whether it may lie in the range."""
        mask = self._within(keys)
        if self.prefix:
            prefixed = as_truths(pc.starts_with(keys, self.prefix))
            if prefixed.any():
                rest = pc.utf8_slice_codeunits(keys, len(self.prefix))
                mask |= prefixed & self._within(rest)
        return mask

    def _within(self, keys: pa.StringArray) -> Mask:
        if isinstance(self.least, bytes):
            return self._between(keys.cast(pa.binary()))
        numbers = pc.match_substring_regex(keys, NUMBER)
        values = pc.if_else(numbers, keys, _ZERO).cast(pa.int64())
        doubtful = pc.match_substring_regex(keys, LONG_NUMBER)
        mask: Mask = as_truths(numbers) & self._between(values) | as_truths(doubtful)
        return mask

    def _between(self, values: pa.Array) -> Mask:
        least, greatest = scalar(self.least, values.type), scalar(self.greatest, values.type)
        low, high = pc.greater_equal(values, least), pc.less_equal(values, greatest)
        mask: Mask = as_truths(pc.and_(low, high))
        return mask


class FirstKeys:
    """The first of some keys, sorted, to count those in the ranges of many base files."""

    def __init__(self, keys: pa.StringArray) -> None:
        """Sorts nothing as yet.

        Args:
            keys: Without NULL.
        """
        self._keys = keys
        self._sorted: dict[tuple[int, str], list[bytes]] = {}

    def within(self, key_range: KeyRange, first: int) -> int:
        """How many of the first so many keys may lie in the range, or rather more."""
        least, greatest, prefix = key_range.least, key_range.greatest, key_range.prefix
        if not (isinstance(least, bytes) and isinstance(greatest, bytes)):
            return int(np.count_nonzero(key_range.holds(self._keys[:first])))
        values = self._sorted.get((first, prefix))
        if values is None:
            keys = self._keys[:first].to_pylist()
            texts = [*keys, *(key.removeprefix(prefix) for key in keys if key.startswith(prefix))]
            values = sorted(text.encode() for text in (texts if prefix else keys))
            self._sorted[first, prefix] = values
        return bisect_right(values, greatest) - bisect_left(values, least)
