"""The schema of EXPLAIN's JSON (docs/explain.md). Within one version, fields are only added."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

EXPLANATION_VERSION = 1
"""The version of the schema. A program for an older version can read the fields that it knows."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class ExplainedRows(_Part):
    """The number of matching rows: never fewer than `least`, never more than `most`."""

    least: int
    expected: float
    most: int


class ExplainedCost(_Part):
    """The expected cost of reading one slice, or all slices of a query that have an estimate.

    Attributes:
        slices: The number of slices in the sum; absent for a single slice.
        rows: The matching rows.
        pages, bytes: Data pages that hold these rows, of all columns read, and their compressed
            bytes.
        index_bytes: Bytes of indexes to be fetched first.
        index_ms, scan_ms: Milliseconds of reading by index, and of a scan.
        scan_bytes: Bytes that a scan reads.
        ms: Milliseconds of the planned access, by index or by scan.
        by_history: Whether the estimate was corrected by earlier queries of the shape.
    """

    slices: int | None = None
    rows: ExplainedRows
    pages: float
    bytes: int
    index_bytes: int
    index_ms: float
    scan_bytes: int
    scan_ms: float
    ms: float
    by_history: bool


class ExplainedReading(_Part):
    """The actual cost of reading one slice.

    Attributes:
        access: The access that was used in the end.
        candidates: The number of row ids from the index; absent if it was not used.
        rows: The number of matching rows.
        rows_checked: The number of rows read and checked against the predicate.
        pages, bytes: Pages read by row id; bytes read of the base file.
        kept_pages: Those of these pages that were kept in memory, and not read from the file.
        index_requests, index_bytes: Requests for index data, and bytes fetched by them.
        lookup_ms, ms: Milliseconds of look-ups, and of the slice including look-ups.
        log_rows: The number of rows of record keys in log files, merged alone; absent if none were.
        stored: Whether rows were read from values stored beside the index, not from the base file.
        note: Why the access differs from the plan, if it does.
    """

    access: str
    candidates: int | None = None
    rows: int
    rows_checked: int
    pages: int
    kept_pages: int
    bytes: int
    index_requests: int
    index_bytes: int
    lookup_ms: float
    ms: float
    log_rows: int | None = None
    stored: bool
    note: str


class ExplainedSlice(_Part):
    """One file slice.

    Attributes:
        name: The base file's path, or the file group's name.
        access: How it is read: ``index``, ``scan``, ``merge``, ``logs`` or ``skip``.
        index_types: The index types of the entries that may be used.
        reason, rule: The reason, and the optimizer rule that decided; ``coverage`` if none had to.
        covered: Whether entries could serve it; absent if not checked.
        expected: The expected cost; absent if unknown.
        actual: The actual cost, with ANALYZE and unless the slice was skipped.
    """

    name: str
    access: str
    index_types: tuple[str, ...]
    reason: str
    rule: str
    covered: bool | None = None
    expected: ExplainedCost | None = None
    actual: ExplainedReading | None = None


class ExplainedGroup(_Part):
    """The slices that are read in one way, for one reason. Each slice is in one group.

    Attributes:
        slices: Their number.
        access, reason, rule: See `ExplainedSlice`.
        expected: The sum over those that have an estimate; absent without any.
        actual: With ANALYZE, the sums over those that were read; absent if none was.
    """

    slices: int
    access: str
    reason: str
    rule: str
    expected: ExplainedCost | None = None
    actual: "ExplainedGroupRun | None" = None


class ExplainedGroupRun(_Part):
    """The actual cost of a group of slices.

    Attributes:
        slices: The number of slices per access that was used in the end.
        rows, rows_checked, pages, bytes, ms: The sums of what `ExplainedReading` has.
    """

    slices: dict[str, int]
    rows: int
    rows_checked: int
    pages: int
    bytes: int
    ms: float


class ExplainedNote(_Part):
    """The reason why a slice was not read as planned."""

    name: str
    note: str


class ExplainedRun(_Part):
    """The actual cost of the whole query.

    Attributes:
        seconds: Elapsed time.
        slices: The number of slices per access.
        pages, kept_pages: Pages read by row id, and those of them that were kept in memory.
        stored: The number of slices whose rows were read from values stored beside the index.
        notes: Notes on slices that were not read as planned.
    """

    seconds: float
    rows_returned: int
    rows_checked: int
    pages: int
    kept_pages: int
    bytes: int
    index_requests: int
    index_bytes: int
    slices: dict[str, int]
    stored: int
    notes: tuple[ExplainedNote, ...]


class ExplainedFiles(_Part):
    """The number of slices that entries could serve (`covered`), could not serve (`uncovered`), and
    that were not checked (`unknown`): pruned partitions, or all slices if no index is allowed."""

    covered: int
    uncovered: int
    unknown: int


class ExplainedQuery(_Part):
    """The whole explanation.

    Attributes:
        version: Of this schema.
        where: The predicate as written; absent for every row.
        reader: ``slices`` if the service reads, ``spark`` if Spark's reader does.
        reason: Why Spark's reader is used; "" otherwise.
        uses_index: Whether any slice is read through an index, or skipped by an index's statistics.
        instant: The snapshot's instant. This field and the following are absent for Spark's reader.
        base_files_only: Whether log files are left out.
        shape: The predicate without its literals.
        files: The coverage by entries.
        expected: The sum over the slices that have an estimate.
        groups: The slices by the way in which they are read, the largest group first.
        slices: The slices.
        actual: The actual cost, with ANALYZE.
    """

    version: int = EXPLANATION_VERSION
    where: str | None = None
    reader: Literal["slices", "spark"]
    reason: str
    uses_index: bool
    instant: str | None = None
    base_files_only: bool | None = None
    shape: str | None = None
    files: ExplainedFiles | None = None
    expected: ExplainedCost | None = None
    groups: tuple[ExplainedGroup, ...] | None = None
    slices: tuple[ExplainedSlice, ...] | None = None
    actual: ExplainedRun | None = None
