"""What an agent may ask of tables, and what it is told: plain values of limited size.

Values of rows, and names that somebody else has chosen, may hold instructions. They are data in an
answer's fields, and part of no text that says what something is.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Protocol

import pyarrow as pa
from pydantic import BaseModel, Field

from hudi_index_service.errors import TableNotFound
from hudi_index_service.read.freshness import left_out_of
from hudi_index_service.row_formats import plain_tree, python_rows
from hudi_index_service.table import IndexedTable
from hudi_index_service.wording import shortened

_OfFast = Annotated[int | None, Field(exclude_if=lambda value: value is None)]


class TableName(BaseModel):
    """A table."""

    name: str
    uri: str


class TableNames(BaseModel):
    """Tables that may be asked; `more` if there are others."""

    tables: list[TableName]
    more: bool


class ColumnOfTable(BaseModel):
    """A column; `type` is Arrow's."""

    name: str
    type: str


class IndexOfTable(BaseModel):
    """An index: of the base files of the present snapshot, so many have an entry."""

    name: str
    index_type: str
    columns: list[str]
    base_files: int
    covered: int


class Description(BaseModel):
    """A table's schema and indexes."""

    name: str
    columns: list[ColumnOfTable]
    record_key: list[str]
    partitioned_by: list[str]
    instant: str
    indexes: list[IndexOfTable]


class Rows(BaseModel):
    """Rows as lists in the order of the columns; `more` if there are others. Of a fast answer,
    `files_left_out` says how many files that may have rows were left out."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool
    files_left_out: _OfFast = None


class Count(BaseModel):
    """A number of rows. Of a fast answer, `files_left_out` says how many files that may have rows
    were left out: then there are at least so many."""

    count: int
    files_left_out: _OfFast = None


class Explained(BaseModel):
    """How a query would be read, and why."""

    text: str


class Advised(BaseModel):
    """What would make the queries of this user cheaper."""

    advice: list[str]


class Tables(Protocol):
    """The tables that an agent may ask. May be used in any thread."""

    def names(self) -> list[TableName]:
        """Their names."""

    def named(self, name: str) -> IndexedTable:
        """One of them. Raises TableNotFound, or why it cannot be opened."""


def no_table(name: str) -> TableNotFound:
    """The error of a name of no table that an agent may ask."""
    return TableNotFound(
        f"There is no table {shortened(name)!r}.", remedy="Ask for the list of tables."
    )


class Answers:
    """Answers an agent. May be used in any thread.

    Args:
        rows, kib: The most rows, and KiB of JSON, of an answer.
    """

    def __init__(self, tables: Tables, *, rows: int = 50, kib: int = 32) -> None:
        self._tables, self._rows, self._bytes = tables, rows, kib * 1024

    def names(self, containing: str | None) -> TableNames:
        """The tables, or those whose names contain a text; as many as an answer may have."""
        part, found, size = (containing or "").lower(), list[TableName](), 0
        for each in self._tables.names():
            if part not in each.name.lower():
                continue
            named = TableName(name=_text(each.name), uri=_text(each.uri))
            size += len(named.model_dump_json())
            if size > self._bytes:
                return TableNames(tables=found, more=True)
            found.append(named)
        return TableNames(tables=found, more=False)

    def describe(self, table: str) -> Description:
        """A table's schema and indexes. Raises what `IndexedTable.status` raises."""
        found = self._tables.named(table)
        status = found.status()
        return Description(
            name=table,
            columns=[ColumnOfTable(name=each.name, type=str(each.type)) for each in found.schema()],
            record_key=list(found.hudi_table.record_key_columns()),
            partitioned_by=list(found.hudi_table.partition_columns()),
            instant=status.instant,
            indexes=[
                IndexOfTable(
                    name=each.definition.name,
                    index_type=each.index_type,
                    columns=[column.name for column in each.definition.columns],
                    base_files=each.base_files,
                    covered=each.covered,
                )
                for each in status
            ],
        )

    def rows(
        self,
        table: str,
        where: str | None,
        columns: list[str] | None,
        limit: int | None,
        fast: bool = False,
    ) -> Rows:
        """The matching rows, as many as an answer may have. Raises what `IndexedTable.scan`
        raises."""
        most = self._rows if limit is None else max(0, min(limit, self._rows))
        scan = self._tables.named(table).scan(where, columns=columns, limit=most + 1, fast=fast)
        rows = self._limited(scan.columns, scan.to_batches(), most)
        return rows.model_copy(update={"files_left_out": scan.left_out})

    def search(
        self,
        table: str,
        column: str,
        text: str,
        where: str | None,
        limit: int | None,
        fast: bool = False,
    ) -> Rows:
        """The best matches of a text. Raises what `IndexedTable.search` raises."""
        most = self._rows if limit is None else max(1, min(limit, self._rows))
        found = self._tables.named(table).search(column, text, k=most, where=where, fast=fast)
        rows = self._limited(found.column_names, iter(found.to_batches()), most)
        return rows.model_copy(update={"files_left_out": left_out_of(found.schema)})

    def count(self, table: str, where: str | None, fast: bool = False) -> Count:
        """The number of matching rows. Raises what `Scan.count` raises."""
        scan = self._tables.named(table).scan(where, fast=fast)
        return Count(count=scan.count(), files_left_out=scan.left_out)

    def explain(self, table: str, where: str | None) -> Explained:
        """How the matching rows would be read. Raises what `Scan.explain` raises."""
        return Explained(text=str(self._tables.named(table).scan(where).explain()))

    def advise(self, table: str) -> Advised:
        """Advice from the history of this user's queries. Raises what `IndexedTable.advise`
        raises."""
        return Advised(advice=self._tables.named(table).advise().lines())

    def _limited(self, names: Sequence[str], batches: Iterator[pa.RecordBatch], most: int) -> Rows:
        rows: list[list[Any]] = []
        size = 0
        for row in python_rows(batches):
            values = plain_tree(row, _text)  # decimals are texts, which keep their digits
            size += len(json.dumps(values, ensure_ascii=False).encode("utf-8", "backslashreplace"))
            if len(rows) == most or size > self._bytes:
                return Rows(columns=list(names), rows=rows, more=True)
            rows.append(values)
        return Rows(columns=list(names), rows=rows, more=False)


def _text(text: str) -> str:
    """A text with what is no character escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
