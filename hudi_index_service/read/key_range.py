"""Between which record keys those of a base file lie, by the least and greatest values in the
manifests of its entries: other keys need not be looked for in it."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.optimizer.plan import SlicePlan
from hudi_index_service.read.record_keys import RECORD_KEY, RecordKeys

_NUMBER = "^(0|-?[1-9][0-9]{0,17})$"
_LONG_NUMBER = "^-?[1-9][0-9]{18}$"  # perhaps too long for 64 bits

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The least and the greatest key: text in UTF-8, or integers. Make it by `of_base_file`.

    Attributes:
        prefix: What may stand before a key of one column, as some key generators print it.
    """

    least: bytes | int
    greatest: bytes | int
    prefix: str = ""

    @classmethod
    def of_base_file(cls, plan: SlicePlan, keys: RecordKeys) -> "KeyRange | None":
        """The range of a slice's base file; None if no entry that may serve it tells.

        Args:
            keys: How the table's keys are told.
        """
        known: dict[str, str] = {}  # the column → what may stand before its values
        if keys.stored:
            known[RECORD_KEY] = ""
        if len(keys.fields) == 1:
            ((spelled, field),) = keys.fields.items()
            if pa.types.is_string(field.type) or pa.types.is_integer(field.type):
                known[field.name] = f"{spelled}:"
        for name, prefix in known.items():
            for serving in plan.entries:
                if all(column.name != name for column in serving.columns):
                    continue
                bounds = serving.entry.manifest.bounds(name)
                if bounds.least is not None and bounds.greatest is not None:
                    return cls(bounds.least, bounds.greatest, prefix)
        return None

    @classmethod
    def around(cls, ranges: Iterable["KeyRange | None"]) -> "KeyRange | None":
        """The range that holds all these; None if one of them is not known."""
        found: KeyRange | None = None
        for each in ranges:
            if each is None or (found is not None and type(found.least) is not type(each.least)):
                return None
            found = each if found is None else found._with(each)
        return found

    def _with(self, other: "KeyRange") -> "KeyRange":
        ends = [self.least, self.greatest, other.least, other.greatest]
        return KeyRange(min(ends), max(ends), self.prefix or other.prefix)

    def holds(self, keys: pa.StringArray) -> Mask:
        """For each key, none of them NULL, whether it may lie in the range."""
        found = self._within(keys)
        if self.prefix:
            prefixed = _numpy(pc.starts_with(keys, self.prefix))
            if prefixed.any():
                rest = pc.utf8_slice_codeunits(keys, len(self.prefix))
                found |= prefixed & self._within(rest)
        return found

    def _within(self, keys: pa.StringArray) -> Mask:
        if isinstance(self.least, bytes):
            values = keys.cast(pa.binary())
            return _numpy(self._between(values))
        numbers = pc.match_substring_regex(keys, _NUMBER)
        values = pc.if_else(numbers, keys, "0").cast(pa.int64())
        doubtful = pc.match_substring_regex(keys, _LONG_NUMBER)
        return _numpy(pc.or_(pc.and_(numbers, self._between(values)), doubtful))

    def _between(self, values: pa.Array) -> pa.BooleanArray:
        return pc.and_(pc.greater_equal(values, self.least), pc.less_equal(values, self.greatest))


def _numpy(mask: pa.BooleanArray) -> Mask:
    found: Mask = mask.to_numpy(zero_copy_only=False)
    return found
