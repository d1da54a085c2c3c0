"""What EXPLAIN says as data: the schema of its JSON (docs/explain.md). Within one version, fields
are only ever added."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

EXPLANATION_VERSION = 1
"""Of the schema. A program that knows an older one reads a newer one by what it knows."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class ExplainedRows(_Part):
    """How many rows match: never fewer than `least`, never more than `most`."""

    least: int
    expected: float
    most: int


class ExplainedCost(_Part):
    """What is expected of reading one slice, or those of a query of which something is expected.

    Attributes:
        slices: How many slices this is the sum of; absent for a single one.
        rows: That match.
        pages, bytes: Data pages that hold them, of all columns read, and their compressed bytes.
        index_bytes: To be fetched of indexes first.
        index_ms, scan_ms: What reading by index takes, and what a scan takes.
        scan_bytes: What a scan reads.
        ms: What the plan takes: by index or by scan, as it says.
        by_history: Whether what earlier queries of the shape had is in it.
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
    """What reading one slice really took.

    Attributes:
        access: How it was read in the end.
        candidates: Row ids that the index gave; absent where it was not asked.
        rows: That match.
        rows_checked: That were read, and held against the predicate.
        pages, bytes: Read by row id; read of the base file.
        index_requests, index_bytes: What was fetched of indexes.
        lookup_ms, ms: What asking the index took; what the slice took, that included.
        note: Why the access differs from the plan, if it does.
    """

    access: str
    candidates: int | None = None
    rows: int
    rows_checked: int
    pages: int
    bytes: int
    index_requests: int
    index_bytes: int
    lookup_ms: float
    ms: float
    note: str


class ExplainedSlice(_Part):
    """One file slice.

    Attributes:
        name: The base file's path, or the file group's name.
        access: How it is read: ``index``, ``scan``, ``merge`` or ``skip``.
        index_types: Of the entries that may be asked.
        reason, rule: Why, and by which of the optimizer's rules; ``coverage`` if none had to say.
        covered: Whether entries could serve it; absent where nobody looked.
        expected: Absent where nothing is known.
        actual: With ANALYZE, unless it was not read.
    """

    name: str
    access: str
    index_types: tuple[str, ...]
    reason: str
    rule: str
    covered: bool | None = None
    expected: ExplainedCost | None = None
    actual: ExplainedReading | None = None


class ExplainedNote(_Part):
    """Why a slice was read in another way than planned."""

    name: str
    note: str


class ExplainedRun(_Part):
    """What the whole query really took.

    Attributes:
        seconds: By the clock.
        slices: How many were read in each way.
        notes: Of slices that were read in another way than planned.
    """

    seconds: float
    rows_returned: int
    rows_checked: int
    pages: int
    bytes: int
    index_requests: int
    index_bytes: int
    slices: dict[str, int]
    notes: tuple[ExplainedNote, ...]


class ExplainedFiles(_Part):
    """How many slices entries could serve (`covered`) and could not (`uncovered`), and how many
    nobody looked at (`unknown`): partitions that are left out, and all without an index allowed."""

    covered: int
    uncovered: int
    unknown: int


class ExplainedQuery(_Part):
    """The whole explanation.

    Attributes:
        version: Of this schema.
        where: The predicate as written; absent for every row.
        reader: ``slices`` where the service reads, ``spark`` where Spark's reader does.
        reason: Why Spark's reader; "" otherwise.
        uses_index: Whether any slice is read through an index, or left out on its word.
        instant: Of the snapshot. This and what follows is absent where Spark's reader serves.
        base_files_only: Whether log files are left out.
        shape: The predicate without its literals.
        files: How far entries reach.
        expected: The sum over the slices of which something is expected.
        slices: Each of them.
        actual: With ANALYZE.
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
    slices: tuple[ExplainedSlice, ...] | None = None
    actual: ExplainedRun | None = None
