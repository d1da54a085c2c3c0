"""Base files without a table: just what a build's tasks need."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_index_service.build.entry.task import BuildTask
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.storage.store import Storage

OPTIONS = {"msg": {"analyzer": "standard"}}


def numbered_rows(rows: int) -> pa.Table:
    """`id` is the row's position; `sender` and `msg` repeat; some `amount` are NULL."""
    numbers = np.arange(rows)
    amounts = pa.array(numbers * 0.5, mask=numbers % 10 == 3)
    return pa.table(
        {
            "id": numbers,
            "sender": [f"User{number % 97}" for number in numbers],
            "msg": [f"buying car {number % 1013}" for number in numbers],
            "amount": amounts,
        }
    )


def write_base_file(
    storage: Storage, table: pa.Table, name: str = "f1", **options: int
) -> BaseFile:
    """Stores the rows as a base file."""
    path = f"{name}_0-1-2_20260101000000000.parquet"
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_index=True, **options)
    data = sink.getvalue().to_pybytes()
    storage.create(path, data)
    return BaseFile(path, "", name, "20260101000000000", len(data))


def build_task(
    storage: Storage,
    base_file: BaseFile,
    schema: pa.Schema,
    using: str = "lucene",
    **settings: object,
) -> BuildTask:
    """A task that indexes the columns of `schema`, in parts even if the file is small."""
    kind, options = index_type(using), OPTIONS if using == "lucene" else {}
    specs = tuple(
        ColumnSpec(f.name, f.type, kind.fields(f.name, f.type, options.get(f.name, {})))
        for f in schema
    )
    due = DueEntry(base_file, using, specs, {"some": "0"})
    made = {"memory_mb": 16, "batch_rows": 1000, "part_bytes": 1, **settings}
    return BuildTask(storage, due, "000007", **made)  # type: ignore[arg-type]


def stored_below(storage: Storage, using: str = "lucene") -> list[str]:
    """The names of all files of all entries of an index type."""
    return sorted(Path(file.path).name for file in storage.files(f".hoodie/.index/{using}"))
