"""Lance as a contestant: B-trees on sender and amount, a bitmap on city, an inverted index on msg.

Run as a process of its own, with Lance on its path: `python bench_lance.py <base file> <folder>`.
Prints one JSON object: seconds of building the four indexes, and their bytes. Writing the columns
into Lance's own format, which it needs beforehand, is not counted.
"""

import json
import sys
from pathlib import Path
from time import perf_counter

import lance
import pyarrow as pa
import pyarrow.parquet as pq

INDEXES = {"sender": "BTREE", "amount": "BTREE", "city": "BITMAP", "msg": "INVERTED"}


def main(base_file: str, folder: str) -> None:
    """Writes the dataset, builds the indexes, and prints the seconds."""
    with pq.ParquetFile(base_file) as file:
        schema = pa.schema([file.schema_arrow.field(name) for name in INDEXES])
        batches = file.iter_batches(65_536, columns=schema.names)
        dataset = lance.write_dataset(batches, folder, schema=schema)
    seconds = {}
    for column, kind in INDEXES.items():
        started = perf_counter()
        dataset.create_scalar_index(column, kind)
        seconds[column] = perf_counter() - started
    files = [path for path in Path(folder, "_indices").rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    json.dump({"seconds": sum(seconds.values()), "each": seconds, "bytes": size}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
