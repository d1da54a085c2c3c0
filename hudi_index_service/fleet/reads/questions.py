"""What may be asked of a table's rows, as models from which the API's description is made too, and
how each question is answered."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, TypeAlias

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, model_validator

from hudi_index_service.read.freshness import said
from hudi_index_service.read.scan import Scan
from hudi_index_service.table import IndexedTable

Columns: TypeAlias = Annotated[list[str], Field(min_length=1)] | None
Limit: TypeAlias = Annotated[int, Field(ge=0, lt=2**63)] | None

MOST_RANKED = 10_000
"""Rows of a search."""

MOST_WAIT = 60.0
"""Seconds for which a question may wait."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows, read as they are taken."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Question(_Model):
    """What somebody asks."""

    def answer(self, table: IndexedTable) -> "Answer":
        """Answers it; of rows, the first are read. Raises what `IndexedTable` raises."""
        raise NotImplementedError


class LeftOut(_Model):
    """Base files that may have rows, and were left out of the answer."""

    files_left_out: int


class _Told(_Model):
    """fast: Only in the answer to a question that is fast."""

    fast: LeftOut | None = None


class Count(_Told):
    """A number of rows; if the question is fast, there are at least so many."""

    count: int


class Exists(_Told):
    """Whether there is any row; if the question is fast, among those of covered base files."""

    exists: bool


class Explained(_Told):
    """How a query is read: as text for people, and as fields for programs."""

    text: str
    explanation: dict[str, Any]


Answer: TypeAlias = Rows | Count | Exists | Explained


class SnapshotQuestion(Question):
    """A question about the rows of a snapshot.

    as_of: A time to travel to, such as 2026-01-31 08:00:00.000.
    fast: Leave out base files that no index entry covers; the answer says how many.
    only_if_covered_to: Answer only if the table has this instant, and indexes cover what was
        written by then.
    wait: The seconds to wait for that.
    """

    as_of: str | None = None
    query_type: Literal["snapshot", "read_optimized"] = "snapshot"
    fast: bool = False
    only_if_covered_to: str | None = None
    wait: Annotated[float, Field(ge=0, le=MOST_WAIT, allow_inf_nan=False)] = 0.0

    @model_validator(mode="after")
    def _has_something_to_wait_for(self) -> Self:
        if self.wait and self.only_if_covered_to is None:
            raise ValueError("wait needs only_if_covered_to")
        return self

    @property
    def asks_coverage(self) -> bool:
        """Whether the answer depends on what indexes cover."""
        return self.fast or self.only_if_covered_to is not None


class _Scanned(SnapshotQuestion):
    """A condition on the rows of a snapshot.

    where: A Spark SQL predicate; without one, every row matches.
    """

    where: str | None = None
    use_index: Literal["auto", "never", "require"] = "auto"

    def _scan(
        self, table: IndexedTable, columns: list[str] | None = None, limit: int | None = None
    ) -> Scan:
        return table.scan(
            self.where,
            columns=columns,
            as_of=self.as_of,
            limit=limit,
            query_type=self.query_type,
            use_index=self.use_index,
            fast=self.fast,
            only_if_covered_to=self.only_if_covered_to,
        )


class RowsQuestion(_Scanned):
    """The matching rows, in no particular order.

    columns: Names, in the order of the result; without, all.
    limit: Maximum number of rows.
    """

    columns: Columns = None
    limit: Limit = None

    def answer(self, table: IndexedTable) -> Rows:
        return Rows(*self._scan(table, self.columns, self.limit).stream())


class CountQuestion(_Scanned):
    """The number of matching rows."""

    def answer(self, table: IndexedTable) -> Count:
        scan = self._scan(table)
        return Count(count=scan.count(), **_told(scan.left_out))


class ExistsQuestion(_Scanned):
    """Whether any row matches."""

    def answer(self, table: IndexedTable) -> Exists:
        scan = self._scan(table)
        return Exists(exists=scan.exists(), **_told(scan.left_out))


class ExplainQuestion(_Scanned):
    """How the rows would be read, and why. Reads no row."""

    columns: Columns = None
    limit: Limit = None

    def answer(self, table: IndexedTable) -> Explained:
        explained = self._scan(table, self.columns, self.limit).explain()
        left_out = None if explained.files is None else explained.files.left_out
        return Explained(text=str(explained), explanation=explained.to_dict(), **_told(left_out))


class SearchQuestion(SnapshotQuestion):
    """The rows that match a text best, the best first, with a last column _score.

    column: A string column of an index with the options analyzer and ranked.
    words: Rows with any or with all of the words.
    """

    column: str
    text: str
    k: Annotated[int, Field(ge=1, le=MOST_RANKED)] = 10
    where: str | None = None
    columns: Columns = None
    words: Literal["any", "all"] = "any"

    def answer(self, table: IndexedTable) -> Rows:
        return _rows(table.search(**self.model_dump(exclude={"wait"})))


class LocateQuestion(Question):
    """The locations of record keys in the latest snapshot, as Hudi's writers need them.

    keys: Record keys, or pairs of a partition and a key.
    """

    keys: list[str] | list[tuple[str, str]]

    def answer(self, table: IndexedTable) -> Rows:
        return _rows(table.tag_location(self.keys))


def _told(left_out: int | None) -> dict[str, LeftOut]:
    """The field of a fast answer; none of any other."""
    return {} if left_out is None else {"fast": LeftOut(**said(left_out))}


def _rows(table: pa.Table) -> Rows:
    return Rows(table.schema, iter(table.to_batches()))
