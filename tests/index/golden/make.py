"""How the golden entry was made: ``python -m tests.index.golden.make <empty folder>``.

It guards the disk format: what stands in ``format_1/`` was written by format 1.0 and must be read,
and answered from, by every later release. A new format gets a folder of its own; this one is never
made again.
"""

import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.build.task import BuildTask, run_task
from hudi_index_service.definitions import Column, DefinitionStore, SeenTimeline
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.storage import Storage
from hudi_index_service.table.protocol import BaseFile

FOLDER = Path(__file__).parent / "format_1"
PARTITION, FILE_ID, INSTANT = "dt=2026-01-01", "0a1b2c3d-0000-4000-8000-000000000000-0", "20260101"
BASE_FILE = f"{PARTITION}/{FILE_ID}_0-1-0_{INSTANT}.parquet"
ANALYSED = {"name": {"analyzer": "standard"}}
ROWS = pa.table(
    {
        "name": pa.array(["Ada", "Grace", None, "Buying a car", "I am Buying", "", "Ada", "日本"]),
        "age": pa.array([36, None, -1, 2**63 - 1, 0, 36, 7, 8], pa.int64()),
        "score": pa.array([0.5, float("nan"), -0.0, 0.0, None, float("inf"), 1.5, -2.5]),
        "member": pa.array([True, False, None, True, True, False, True, True]),
        "born": pa.array([date(1815, 12, 10), None, *[date(2026, 1, day) for day in range(1, 7)]]),
        "seen": pa.array(
            [datetime(2026, 1, 1, hour) for hour in range(7)] + [None], pa.timestamp("us", "UTC")
        ),
        "price": pa.array([Decimal(i).scaleb(-2) for i in range(8)], pa.decimal128(12, 2)),
    }
)


def base_file(folder: Path) -> BaseFile:
    """The golden table's only base file."""
    size = (folder / BASE_FILE).stat().st_size
    return BaseFile(BASE_FILE, PARTITION, FILE_ID, INSTANT, size)


def make(folder: Path) -> None:
    """Writes the base file, the definition and the entry."""
    path = folder / BASE_FILE
    path.parent.mkdir(parents=True)
    pq.write_table(ROWS, path, compression="gzip", write_page_index=True)
    storage, kind = Storage(folder), index_type("lucene")
    columns = tuple(
        ColumnSpec(f.name, f.type, kind.fields(f.name, f.type, ANALYSED.get(f.name, {})))
        for f in ROWS.schema
    )
    definition = DefinitionStore(storage).create(
        "people",
        ("lucene",),
        [Column(name=name, options=ANALYSED.get(name, {})) for name in ROWS.column_names],
        SeenTimeline(start="20251231", instants=("20251231",)),
    )
    due = DueEntry(
        base_file(folder), "lucene", columns, {"people": definition.fingerprint("lucene")}
    )
    print(run_task(BuildTask(storage, due, "000001", memory_mb=16, batch_rows=4)))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
