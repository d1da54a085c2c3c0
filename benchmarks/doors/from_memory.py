"""`hudi-index` as it is, but that what was read once is sent from memory. `python -m
benchmarks.doors.from_memory serve --config …`."""

from functools import cache

import pyarrow as pa

from hudi_index_service.cli import main
from hudi_index_service.fleet.reads import questions
from hudi_index_service.table import IndexedTable


@cache
def _read(table: IndexedTable, columns: tuple[str, ...], limit: int) -> pa.Table:
    return table.scan(columns=columns, limit=limit).to_arrow()


def _answer(question: questions.RowsQuestion, table: IndexedTable) -> questions.Rows:
    rows = _read(table, tuple(question.columns or ()), question.limit or 0)
    return questions.Rows(rows.schema, iter(rows.to_batches()))


if __name__ == "__main__":
    questions.RowsQuestion.answer = _answer  # type: ignore[method-assign]
    main()
