"""How the golden entries were made: ``python -m tests.index.golden.make <index type> <empty
folder>``.

They guard the disk format: ``format_1/`` was written by format 1.0, ``lucene_912/`` by the codec of
Lucene 9.12, ``btree_2/`` by version 2 of the B+ tree's layout. Every later release must read them
and answer from them, as long as its Lucene reads that codec. ``btree_1/`` was written by version 1,
which is not read. A new format, or codec, gets a folder of its own; these are never made again.
"""

import sys
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_index_service.build.entry.task import BuildTask, run_task
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import ColumnSpec, IndexType
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.definitions import Column, DefinitionStore, SeenTimeline
from hudi_index_service.storage.store import Storage

FOLDER = Path(__file__).parent / "format_1"
PARTITION, FILE_ID, INSTANT = "dt=2026-01-01", "0a1b2c3d-0000-4000-8000-000000000000-0", "20260101"
BASE_FILE = f"{PARTITION}/{FILE_ID}_0-1-0_{INSTANT}.parquet"
ANALYZED = {"name": {"analyzer": "standard"}}
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


LUCENE_FOLDER = Path(__file__).parent / "lucene_912"
LUCENE_OPTIONS = {
    "text": {"analyzer": "standard", "ranked": "true"},
    "words": {"analyzer": "english", "keyword": "false"},
}
_FEW = range(600)
LUCENE_ROWS = pa.table(
    {  # more rows than a block of postings (128), or a leaf of points (512), has
        "key": pa.array([f"user-{i * 7 % 600:03d}" for i in _FEW]),
        "city": pa.array([None if i % 100 == 0 else f"city {i % 3}" for i in _FEW]),
        "text": pa.array(
            [None if i == 9 else f"{('red', 'Green')[i % 2]} car {'car ' * (i % 4)}" for i in _FEW]
        ),
        "words": pa.array([f"{('running', 'runs', 'walks')[i % 3]} fast" for i in _FEW]),
        "raw": pa.array([None if i % 9 == 0 else bytes([i % 5, 255]) for i in _FEW]),
        "age": pa.array([None if i % 50 == 0 else i * i - 1000 for i in _FEW], pa.int64()),
        "member": pa.array([i % 2 == 0 for i in _FEW]),
        "score": pa.array([float("nan") if i % 99 == 0 else (i % 40 - 20) / 8 for i in _FEW]),
        "born": pa.array([date(1900 + i % 7, 1, 1) for i in _FEW]),
        "seen": pa.array([datetime(2026, 1, 1, i % 24) for i in _FEW], pa.timestamp("us", "UTC")),
        "wide": pa.array(
            [Decimal((i % 60 - 30) * 10**20).scaleb(-10) for i in _FEW], pa.decimal128(38, 10)
        ),
        "tags": pa.array(
            [None if i % 40 == 0 else [f"t{i % 7}", None][: i % 3] for i in _FEW],
            pa.list_(pa.string()),
        ),
    }
)

FIRST_BTREE_FOLDER = Path(__file__).parent / "btree_1"
BTREE_FOLDER = Path(__file__).parent / "btree_2"
BTREE_KEY = ("city", "age", "raw")
STORED = ("text", "wide")
_NUMBERS = range(3000)
BTREE_ROWS = pa.table(
    {  # sets and packed leaves, numbers of every width, keys stored, by LZ4 and by Zstandard
        "key": pa.array([f"user-{i * 7919 % 3000:04d}" for i in _NUMBERS]),
        "city": pa.array([None if i % 100 == 0 else f"city {i % 5}" for i in _NUMBERS]),
        "text": pa.array([f"{i % 70:02d} {'x' * (i % 700)}" for i in _NUMBERS]),
        "raw": pa.array(
            [sha256(str(i).encode()).digest()[:20] if i < 600 else None for i in _NUMBERS]
        ),
        "age": pa.array([None if i % 50 == 0 else i * i - 1000 for i in _NUMBERS], pa.int64()),
        "far": pa.array([(-1) ** i * (2**63 - 1 - i) for i in _NUMBERS], pa.int64()),
        "member": pa.array([i % 3 == 0 for i in _NUMBERS]),
        "score": pa.array([float("nan") if i % 9 == 0 else (i - 1500) / 8 for i in _NUMBERS]),
        "born": pa.array([date(1500 + i % 600, 1 + i % 12, 1) for i in _NUMBERS]),
        "seen": pa.array(
            [datetime(2026, 1, 1 + i % 28, i % 24) for i in _NUMBERS], pa.timestamp("us", "UTC")
        ),
        "wide": pa.array(
            [Decimal((i - 1500) * 10**30).scaleb(-10) for i in _NUMBERS], pa.decimal128(38, 10)
        ),
        "tags": pa.array(
            [None if i % 40 == 0 else [f"t{i % 7}", None][: i % 3] for i in _NUMBERS],
            pa.list_(pa.string()),
        ),
    }
)


def put(storage: Storage) -> Storage:
    """Stores the golden table; returns the store."""
    for path in FOLDER.rglob("*"):
        if path.is_file():
            storage.create(str(path.relative_to(FOLDER)), path.read_bytes())
    return storage


def base_file(folder: Path) -> BaseFile:
    """The golden table's only base file."""
    size = (folder / BASE_FILE).stat().st_size
    return BaseFile(BASE_FILE, PARTITION, FILE_ID, INSTANT, size)


def fields(kind: IndexType, column: pa.Field, options: Mapping[str, str]) -> tuple[str, ...]:
    """The fields of a column: its own, and in a B+ tree those of a composite key and of values."""
    own = kind.fields(column.name, column.type, options)
    if kind.name == "btree" and column.name in BTREE_KEY:
        own = (*own, kind.key_field(column.name, column.type, BTREE_KEY))
    return (*own, "stored") if kind.name == "btree" and column.name in STORED else own


def make(name: str, folder: Path) -> None:
    """Writes the base file, the definition and the entry."""
    rows, options = (LUCENE_ROWS, LUCENE_OPTIONS) if name == "lucene" else (BTREE_ROWS, {})
    path = folder / BASE_FILE
    path.parent.mkdir(parents=True)
    pq.write_table(rows, path, compression="gzip", write_page_index=True)
    storage, kind = Storage(folder), index_type(name)
    columns = tuple(
        ColumnSpec(f.name, f.type, fields(kind, f, options.get(f.name, {}))) for f in rows.schema
    )
    definition = DefinitionStore(storage).create(
        "people",
        (name,),
        [Column(name=each, options=options.get(each, {})) for each in rows.column_names],
        SeenTimeline(start="20251231", instants=("20251231",)),
    )
    due = DueEntry(base_file(folder), name, columns, {"people": definition.fingerprint(name)})
    print(run_task(BuildTask(storage, due, "000001", memory_mb=16, batch_rows=4 + len(rows) // 2)))


if __name__ == "__main__":
    make(sys.argv[1], Path(sys.argv[2]))
