"""What may be asked of a table's rows, as models from which the API's description is made too, and
how each question is answered."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from hudi_index_service.read.scan import Scan
from hudi_index_service.table import IndexedTable

Columns: TypeAlias = Annotated[list[str], Field(min_length=1)] | None
Limit: TypeAlias = Annotated[int, Field(ge=0, lt=2**63)] | None

MOST_RANKED = 10_000
"""Rows of a search."""


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


class Count(_Model):
    """A number of rows."""

    count: int


class Exists(_Model):
    """Whether there is any row."""

    exists: bool


class Explained(_Model):
    """How a query is read: as text for people, and as fields for programs."""

    text: str
    explanation: dict[str, Any]


Answer: TypeAlias = Rows | Count | Exists | Explained


class _Scanned(Question):
    """A condition on the rows of a snapshot.

    where: A Spark SQL predicate; without one, every row matches.
    as_of: A time to travel to, such as 2026-01-31 08:00:00.000.
    """

    where: str | None = None
    as_of: str | None = None
    query_type: Literal["snapshot", "read_optimized"] = "snapshot"
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
        return Count(count=self._scan(table).count())


class ExistsQuestion(_Scanned):
    """Whether any row matches."""

    def answer(self, table: IndexedTable) -> Exists:
        return Exists(exists=self._scan(table).exists())


class ExplainQuestion(_Scanned):
    """How the rows would be read, and why. Reads no row."""

    columns: Columns = None
    limit: Limit = None

    def answer(self, table: IndexedTable) -> Explained:
        explained = self._scan(table, self.columns, self.limit).explain()
        return Explained(text=str(explained), explanation=explained.to_dict())


class SearchQuestion(Question):
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
    as_of: str | None = None
    query_type: Literal["snapshot", "read_optimized"] = "snapshot"

    def answer(self, table: IndexedTable) -> Rows:
        return _rows(table.search(**self.model_dump()))


class LocateQuestion(Question):
    """The locations of record keys in the latest snapshot, as Hudi's writers need them.

    keys: Record keys, or pairs of a partition and a key.
    """

    keys: list[str] | list[tuple[str, str]]

    def answer(self, table: IndexedTable) -> Rows:
        return _rows(table.tag_location(self.keys))


def _rows(table: pa.Table) -> Rows:
    return Rows(table.schema, iter(table.to_batches()))
