"""What the values of a column are like, by a sample of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import integer_scalar
from hudi_index_service.predicate.comparison import is_binary, is_string


@dataclass(frozen=True, slots=True)
class SampledValues:
    """A summary of a column's sampled values; of an array, of its elements.

    Attributes:
        rows: Number of sampled rows, in the pieces of consecutive rows that the sample is made of.
        values: Number of values that are not NULL.
        distinct: Number of distinct values.
        single: Number of values that occur once.
        runs: Number of runs of equal values in consecutive rows.
        mean_bytes, mean_words: Average length of texts and binary values, and average number of
            words of texts; 0 for other types.
    """

    rows: int
    values: int
    distinct: int
    single: int
    runs: int
    mean_bytes: float
    mean_words: float

    def distinct_in(self, rows: int) -> int:
        """The estimated number of distinct values in a table with so many rows, by the estimator of
        guaranteed error: values that occur once in the sample stand for others that it missed
        (M. Charikar et al., *Towards Estimation Error Guarantees for Distinct Values*, PODS
        2000)."""
        if not self.rows:
            return 0
        factor = sqrt(max(1.0, rows / self.rows))
        return min(rows, round(factor * self.single + self.distinct - self.single))


def sampled_values(pieces: Iterable[pa.Array]) -> SampledValues:
    """Summarizes the values of pieces of consecutive rows of a column."""
    rows = runs = 0
    values = []
    for piece in pieces:
        rows += len(piece)
        elements = piece.flatten() if pa.types.is_nested(piece.type) else piece
        present = elements.drop_null()
        if len(present):
            changes = pc.not_equal(present.slice(1), present.slice(0, len(present) - 1))
            runs += 1 + (pc.sum(changes).as_py() or 0)
            values.append(present)
    if not values:
        return SampledValues(rows, 0, 0, 0, 0, 0.0, 0.0)
    present = pa.concat_arrays(values)
    counts = pc.value_counts(present).field("counts")
    return SampledValues(
        rows,
        len(present),
        len(counts),
        pc.sum(pc.equal(counts, integer_scalar(1, counts.type))).as_py() or 0,
        runs,
        _mean_bytes(present),
        _mean_words(present),
    )


def _mean_bytes(values: pa.Array) -> float:
    if is_string(values.type) or is_binary(values.type):
        return float(pc.mean(pc.binary_length(values)).as_py())
    return 0.0


def _mean_words(values: pa.Array) -> float:
    return (
        1 + float(pc.mean(pc.count_substring(values, " ")).as_py()) if is_string(values.type) else 0
    )
