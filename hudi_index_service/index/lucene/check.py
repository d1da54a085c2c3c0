"""Verifies a packed Lucene index with Lucene's own CheckIndex and against the manifest."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from hudi_index_service.index.contract import PackedIndex, StoredColumn
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.lucene.directory import packed_directory
from hudi_index_service.index.lucene.fields import (
    KEYWORD,
    NULLS,
    NUMBER,
    lucene_field,
)
from hudi_index_service.wording import first_line


def check_index(index: PackedIndex, columns: Sequence[StoredColumn]) -> list[str]:
    """The defects of the index, one sentence each; see `IndexType.verify`."""
    lucene = jvm.attach()
    try:
        directory = packed_directory(index)
        try:
            return _by_lucene(directory) or list(_by_manifest(directory, index.rows, columns))
        finally:
            directory.close()
    except lucene.JavaError as error:
        return [f"Lucene cannot read it: {first_line(str(error))}."]


def _by_lucene(directory: Any) -> list[str]:
    """The defects that CheckIndex finds by verifying all checksums, postings and points."""
    from java.io import ByteArrayOutputStream, PrintStream
    from org.apache.lucene.index import CheckIndex

    report = ByteArrayOutputStream()
    check = CheckIndex(directory)
    try:
        check.setInfoStream(PrintStream(report))
        check.setThreadCount(1)
        status = check.checkIndex()
    finally:
        check.close()
    if status.clean:
        return []
    errors = [line.strip() for line in str(report).splitlines() if "ERROR" in line.upper()]
    return [
        f"Lucene's CheckIndex finds {status.numBadSegments} of {status.numSegments} segments bad: "
        f"{first_line(without_terms(errors[0])) if errors else 'no reason given'}."
    ]


def _by_manifest(directory: Any, rows: int, columns: Sequence[StoredColumn]) -> Iterator[str]:
    """The differences between the index and the manifest."""
    from org.apache.lucene.index import DirectoryReader, Term

    reader = DirectoryReader.open(directory)
    try:
        if reader.maxDoc() != rows or reader.numDocs() != rows:
            yield f"it holds {reader.numDocs()} rows, not {rows}."
            return
        leaves = [leaf.reader() for leaf in reader.leaves()]
        for column in columns:
            nulls = int(reader.docFreq(Term(lucene_field(NULLS, column.name), "1")))
            if nulls != column.null_count:
                yield (
                    f"column {column.name} is NULL in {nulls} rows; the manifest says "
                    f"{column.null_count}."
                )
            values = _rows_with_values(leaves, column)
            if values is not None and values + nulls != rows:
                yield f"column {column.name} has {values} values and {nulls} NULLs in {rows} rows."
    finally:
        reader.close()


def _rows_with_values(leaves: list[Any], column: StoredColumn) -> int | None:
    """The number of rows with a value in the index; None if a non-NULL row may have no value."""
    if pa.types.is_nested(column.type):
        return None
    if KEYWORD in column.fields:
        structures = [leaf.terms(lucene_field(KEYWORD, column.name)) for leaf in leaves]
    elif NUMBER in column.fields:
        structures = [leaf.getPointValues(lucene_field(NUMBER, column.name)) for leaf in leaves]
    else:
        return None
    return sum(int(each.getDocCount()) for each in structures if each is not None)


def without_terms(line: str) -> str:
    """A line of CheckIndex's report without the values that it may contain: terms, mostly in hex,
    and points."""
    return re.sub(r"\[[0-9a-f, -]*\]|(?i:term)=.*", "…", line)
