"""Values of a column in many base files as arrays: the least and the greatest one of each file, and
the numbers that stand for values in a routing run.

An *exact* key is the value itself, moved into the unsigned 64-bit integers in Spark's order, which
only numbers, dates and the like have (`number_encoding`). A *hash* has `HASH_BITS` bits. Of numbers
it is drawn from the exact key, so that -0.0 and 0.0, and all NaNs, have one hash. Of texts and
binary values it is a polynomial of their bytes modulo 2^64 (of UTF-8 for texts). Both go through
the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), and the highest bits are kept.

Hashes are part of the disk format. Equal hashes of different values cost a look-up, not an answer.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from hudi_index_parquet import polynomials

from hudi_index_service.arrow import TRUE, as_numbers, as_truths, binary_scalar, integer_scalar
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.number_encoding import encode_array, encode_range, unsigned
from hudi_index_service.index.sorted_pairs import Keys as Keys
from hudi_index_service.index.sorted_pairs import is_new
from hudi_index_service.index.stored_column import is_number, parse_arrow_type
from hudi_index_service.predicate.expression import Compare, In, Operator
from hudi_index_service.predicate.values import bound_of

HASH_BITS = 48

_INCREMENT = 0x9E3779B97F4A7C15


def is_routed(type: pa.DataType) -> bool:
    """Whether values of this type have keys: not arrays, structs and decimals beyond 18 digits."""
    return is_number(type) or _is_bytes(type)


def _is_bytes(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_binary(type))


def distinct(keys: Keys) -> Keys:
    """The keys, sorted, each once. Faster than `numpy.unique`, which hashes them first."""
    ordered = np.sort(keys)
    return ordered[is_new(ordered)]


def count_distinct(ordered: Keys) -> int:
    """The number of different keys among sorted ones."""
    return int(np.count_nonzero(np.diff(ordered))) + 1 if len(ordered) else 0


def exact_keys(values: pa.Array) -> Keys | None:
    """The exact keys of values without NULL; None for a type that has none."""
    if not is_number(values.type):
        return None
    return unsigned(as_numbers(encode_array(values)))


def hashes(values: pa.Array) -> Keys:
    """The hashes of values without NULL, of a type for which `is_routed` holds."""
    exact = exact_keys(values)
    if exact is None:
        binary = values.view(pa.binary())  # texts of Spark are not always UTF-8
        exact = np.frombuffer(polynomials(binary), dtype="<u8").astype(np.uint64, copy=False)
    return hashes_of_exact(exact)


def hashes_of_exact(exact: Keys) -> Keys:
    """The hashes of numbers, by their exact keys."""
    mixed = exact + np.uint64(_INCREMENT)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) >> np.uint64(64 - HASH_BITS)


Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Spans:
    """For each base file, which of some sorted values lie within its bounds: those from `first` to
    before `end`. Without meaning where `is_known` is false."""

    first: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    is_known: Mask

    def any(self) -> Mask:
        """Where one of the values may be."""
        may_be: Mask = ~self.is_known | (self.first < self.end)
        return may_be


@dataclass(frozen=True, slots=True)
class NumberBounds:
    """Bounds of numbers, encoded as `encode_array` does. Where one of the two is not known,
    `is_known` is false, and both are without meaning."""

    least: npt.NDArray[np.int64]
    greatest: npt.NDArray[np.int64]
    is_known: Mask

    def compared(self, leaf: Compare) -> Mask:
        """Where a value may compare so."""
        is_unequal = leaf.operator is Operator.NE
        operator = Operator.EQ if is_unequal else leaf.operator
        sought = encode_range(operator, leaf.value, leaf.column.type)
        if sought is None or (is_unequal and sought.is_empty):
            return np.ones(len(self.least), dtype=bool)
        if sought.is_empty:
            return np.zeros(len(self.least), dtype=bool)
        if is_unequal:
            may: Mask = (self.least != sought.low) | (self.greatest != sought.low)
        else:
            may = (self.least <= sought.high) & (self.greatest >= sought.low)
        return may | ~self.is_known

    def ordered(self, leaf: In) -> npt.NDArray[Any]:
        """The listed values, sorted, as bounds compare with them."""
        return np.sort(self.sought(leaf.values))

    def sought(self, values: pa.Array) -> npt.NDArray[Any]:
        """Values of the column as bounds compare with them."""
        return as_numbers(encode_array(values))

    def spans(self, ordered: npt.NDArray[Any]) -> Spans:
        """Which of some sorted values lie within each file's bounds."""
        return _spans(ordered, self.least, self.greatest, self.is_known)

    def known(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The least values that are known, and the greatest, each sorted by itself."""
        return np.sort(self.least[self.is_known]), np.sort(self.greatest[self.is_known])


@dataclass(frozen=True, slots=True)
class ByteBounds:
    """Bounds of texts in UTF-8 and of binary values, NULL where one of the two is not known."""

    least: pa.Array
    greatest: pa.Array

    def compared(self, leaf: Compare) -> Mask:
        """Where a value may compare so."""
        limit = bound_of(leaf.value)
        if not isinstance(limit, bytes) or leaf.operator is Operator.NE:
            return np.ones(len(self.least), dtype=bool)
        value = binary_scalar(limit)
        match leaf.operator:
            case Operator.LT:
                return _true_or_null(pc.less(self.least, value))
            case Operator.GT:
                return _true_or_null(pc.greater(self.greatest, value))
            case Operator.LE:
                return _true_or_null(pc.less_equal(self.least, value))
            case Operator.GE:
                return _true_or_null(pc.greater_equal(self.greatest, value))
        least_is_below = pc.less_equal(self.least, value)
        return _true_or_null(pc.and_(least_is_below, pc.greater_equal(self.greatest, value)))

    def with_prefix(self, prefix: bytes) -> Mask:
        """Where a value may begin with the prefix."""
        value = binary_scalar(prefix)
        begins_below = pc.less_equal(pc.binary_slice(self.least, 0, len(prefix)), value)
        return _true_or_null(pc.and_(begins_below, pc.greater_equal(self.greatest, value)))

    def ordered(self, leaf: In) -> npt.NDArray[Any]:
        """The listed values, sorted, as bounds compare with them."""
        if leaf.ascending is not None:
            return np.array(leaf.ascending, dtype=object)
        return np.sort(self.sought(leaf.values))

    def sought(self, values: pa.Array) -> npt.NDArray[Any]:
        """Values of the column as bounds compare with them."""
        return np.array(values.cast(pa.binary()).to_pylist(), dtype=object)

    def spans(self, ordered: npt.NDArray[Any]) -> Spans:
        """Which of some sorted values lie within each file's bounds."""
        least, greatest = (
            np.array(each.fill_null(binary_scalar(b"")).to_pylist(), dtype=object)
            for each in (self.least, self.greatest)
        )
        return _spans(ordered, least, greatest, as_truths(self.least.is_valid()))

    def known(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The least values that are known, and the greatest, each sorted by itself."""
        least, greatest = (
            np.array(sorted(each.drop_null().to_pylist()), dtype=object)
            for each in (self.least, self.greatest)
        )
        return least, greatest


ColumnBounds: TypeAlias = NumberBounds | ByteBounds


def column_bounds(
    minimum: pa.ChunkedArray, maximum: pa.ChunkedArray, type_name: str
) -> ColumnBounds | None:
    """The bounds that manifests state as text; None if nothing is known of any base file.

    Args:
        minimum, maximum: A text for each base file, or NULL.
    """
    try:
        type = parse_arrow_type(type_name)
        least, greatest = (_parsed(each.combine_chunks(), type) for each in (minimum, maximum))
    except EntryInvalid:
        return None
    if least is None or greatest is None:
        return None
    is_known = pc.and_(least.is_valid(), greatest.is_valid())
    if is_number(type):
        zero = integer_scalar(0, pa.int64())
        low, high = (as_numbers(encode_array(each).fill_null(zero)) for each in (least, greatest))
        return NumberBounds(low, high, as_truths(is_known))
    if pa.types.is_string(type) or pa.types.is_binary(type):
        nothing = pa.nulls(len(least), pa.binary())
        return ByteBounds(
            *(pc.if_else(is_known, each.cast(pa.binary()), nothing) for each in (least, greatest))
        )
    return None


def _parsed(texts: pa.Array, type: pa.DataType) -> pa.Array | None:
    """The values that the texts stand for, NULL where a text is not as the value is written; None
    if one of the texts is none of the type."""
    try:
        values = texts.cast(type)
        as_written = pc.equal(values.cast(pa.string()), texts)
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    return pc.if_else(as_written, values, pa.nulls(len(texts), type))


def _spans(
    ordered: npt.NDArray[Any],
    least: npt.NDArray[Any],
    greatest: npt.NDArray[Any],
    is_known: Mask,
) -> Spans:
    first = np.searchsorted(ordered, least, "left")
    return Spans(first, np.searchsorted(ordered, greatest, "right"), is_known)


def _true_or_null(truth: pa.Array) -> Mask:
    return as_truths(truth.fill_null(TRUE) if truth.null_count else truth)
