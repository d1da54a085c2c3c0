"""Whether an index on a column would pay: one rule per reason. The first rule with a verdict
decides."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from hudi_index_service.config import ReadSettings
from hudi_index_service.errors import ColumnNotIndexable
from hudi_index_service.index.contract import IndexType
from hudi_index_service.maintain.propose.values import SampledValues
from hudi_index_service.optimizer.cost.pages import PAGE_ROWS, pages_holding
from hudi_index_service.optimizer.decide import are_few
from hudi_index_service.predicate.comparison import is_binary

_LONG_BYTES = 200  # longer texts are read, not compared
_FEWEST_WORDS = 2  # of a text that words are searched in
_SENTENCE_WORDS = 4
_DISTINCT_SENTENCES = 0.5  # of those sampled; texts that repeat more often are rather names
_LONG_BINARY_BYTES = 64
_LEAST_PAGES = 10  # of a table that is large enough for pages to be skipped
_LONG_RUN = 100  # rows


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to index a column, and the reason.

    Attributes:
        is_text: Whether the column is one for full-text search, if it is asked for.
    """

    yes: bool
    reason: str
    is_text: bool = False


@dataclass(frozen=True)
class Candidate:
    """A column, or a field of a struct.

    Attributes:
        kind: The index type that would index it.
        is_key, is_partition: Whether it is a column of the record key, or partitions the table.
        indexed_by: The indexes that have it already.
        rows: About how many rows the table has.
        read: The settings of reading.
        sample: Returns a summary of some of its values.
    """

    name: str
    type: pa.DataType
    kind: IndexType
    is_key: bool
    is_partition: bool
    indexed_by: tuple[str, ...]
    rows: int
    read: ReadSettings
    sample: Callable[[], SampledValues]

    @cached_property
    def values(self) -> SampledValues:
        """A summary of some of its values."""
        return self.sample()

    @cached_property
    def distinct(self) -> int:
        """About how many distinct values the table has."""
        return max(1, self.values.distinct_in(self.rows))

    @property
    def rows_of_a_value(self) -> float:
        """About how many rows have the same value."""
        return self.rows / self.distinct

    def verdict(self) -> Verdict:
        """The verdict of the first rule that has one."""
        return next(verdict for rule in RULES if (verdict := rule(self)) is not None)


def _already_indexed(candidate: Candidate) -> Verdict | None:
    if not candidate.indexed_by:
        return None
    return Verdict(False, f"already in index {', '.join(candidate.indexed_by)}")


def _not_indexable(candidate: Candidate) -> Verdict | None:
    try:
        candidate.kind.fields(candidate.name, candidate.type, {})
    except ColumnNotIndexable:
        return Verdict(False, f"{candidate.kind.name} cannot hold this type")
    return None


def _partitions_the_table(candidate: Candidate) -> Verdict | None:
    if not candidate.is_partition:
        return None
    return Verdict(False, "it partitions the table, so that queries skip partitions by their path")


def _record_key(candidate: Candidate) -> Verdict | None:
    return Verdict(True, "the record key") if candidate.is_key else None


def _constant(candidate: Candidate) -> Verdict | None:
    if candidate.values.distinct > 1:
        return None
    if not candidate.values.values:
        return Verdict(False, "NULL in all sampled rows")
    return Verdict(False, "the same in all sampled rows")


def _payload(candidate: Candidate) -> Verdict | None:
    values = candidate.values
    length = f"{values.mean_bytes:,.0f} bytes on average"
    if is_binary(candidate.type):
        is_long = values.mean_bytes >= _LONG_BINARY_BYTES
        return Verdict(False, f"long binary values, {length}") if is_long else None
    is_sentence = (
        values.mean_words >= _SENTENCE_WORDS
        and values.distinct >= _DISTINCT_SENTENCES * values.values
    )
    if values.mean_bytes < _LONG_BYTES and not is_sentence:
        return None
    if values.mean_words < _FEWEST_WORDS:
        return Verdict(False, f"long texts, {length}")
    return Verdict(False, f"long texts, {length} ({values.mean_words:,.0f} words)", is_text=True)


def _few_values(candidate: Candidate) -> Verdict | None:
    if are_few(round(candidate.rows_of_a_value), candidate.rows):
        return None
    return Verdict(
        False,
        f"about {candidate.distinct:,} values: each is in so many rows that a scan is cheaper",
    )


def _in_runs(candidate: Candidate) -> Verdict | None:
    values = candidate.values
    if values.values < _LONG_RUN * values.runs:
        return None
    return Verdict(
        False,
        "equal values are in consecutive rows, which the minima and maxima of pages find already",
    )


def _in_all_pages(candidate: Candidate) -> Verdict | None:
    pages = candidate.rows / PAGE_ROWS
    touched = pages_holding(candidate.rows_of_a_value, pages)
    if pages < _LEAST_PAGES or touched <= candidate.read.scan_fraction * pages:
        return None
    return Verdict(
        False,
        f"about {candidate.distinct:,} values: each is in nearly every page, so that an index "
        "would help counts alone",
    )


def _selective(candidate: Candidate) -> Verdict:
    values = candidate.values
    if values.distinct == values.values == values.rows:
        return Verdict(True, "different in each sampled row")
    return Verdict(
        True,
        f"about {candidate.distinct:,} values, each in about {candidate.rows_of_a_value:,.0f} of "
        f"{candidate.rows:,} rows",
    )


RULES: tuple[Callable[[Candidate], Verdict | None], ...] = (
    _already_indexed,
    _not_indexable,
    _partitions_the_table,
    _record_key,
    _constant,
    _payload,
    _few_values,
    _in_runs,
    _in_all_pages,
    _selective,
)
"""The rules, in order; the last one always has a verdict."""
