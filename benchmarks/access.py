"""Reading rows by position against reading the whole file: from which share on is a scan cheaper?

Both contestants read the same columns of the same gzip file (as Hudi writes it: a page index, pages
of 20,000 rows) and keep the same rows; they run in turn. Written to
benchmarks/results/access.json: per number of rows (`measured`) the pages' share of the bytes, and
the time by rows over the time by scan (median of the rounds). `read.scan_fraction` follows from it.
"""

import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import hudi_index_parquet
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.bench_targets import Target, at_most
from hudi_index_service.config import ReadSettings

ROWS = 1_000_000
ROW_COUNTS = (1, 10, 30, 100, 1_000, 10_000, 100_000, 1_000_000)
ROUNDS = 7
RESULTS = Path(__file__).parent / "results" / "access.json"


def write_file(path: Path) -> None:
    """Four columns: a key, a text, an integer and a double; the same in every run."""
    dice = np.random.default_rng(3)
    numbers = dice.integers(0, 10**9, ROWS)
    table = pa.table(
        {
            "key": [f"k{number:012d}" for number in range(ROWS)],
            "text": [f"buying {number} new {number % 97}" for number in numbers],
            "amount": dice.integers(0, 10**6, ROWS),
            "price": dice.normal(size=ROWS),
        }
    )
    pq.write_table(table, path, compression="gzip", write_page_index=True, max_rows_per_page=20_000)


def by_scan(path: Path, rows: np.ndarray) -> int:
    """Reads the whole file, batch by batch, and keeps the rows; returns how many."""
    mask = np.zeros(ROWS, dtype=bool)
    mask[rows] = True
    start = kept = 0
    with pq.ParquetFile(path, pre_buffer=True) as file:
        for batch in file.iter_batches(65_536):
            kept += batch.filter(pa.array(mask[start : start + batch.num_rows])).num_rows
            start += batch.num_rows
    return kept


def seconds(work: Callable[[], int], expected: int) -> float:
    """The seconds of one call, whose result is checked."""
    started = perf_counter()
    if work() != expected:
        raise SystemExit("The contestants do not agree.")
    return perf_counter() - started


def targets(measured: list[dict[str, Any]]) -> list[Target]:
    """One row is read at once, and reading pages takes no longer than a scan."""
    few, *others = measured
    fraction = ReadSettings().scan_fraction
    return [
        at_most("one row: time over a scan", 0.05, few["rows_over_scan"]),
        *(
            at_most(
                f"{each['rows']:,} rows: time over a scan",
                1.1,
                each["rows_over_scan"],
            )
            for each in others
            if each["page_fraction"] <= fraction
        ),
    ]


def main() -> None:
    """Measures, prints and writes the results."""
    dice = np.random.default_rng(20)
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "file.parquet")
        print(f"Writing a file of {ROWS:,} rows …", file=sys.stderr)
        write_file(path)
        metadata = hudi_index_parquet.stripped_footer(path)
        for count in ROW_COUNTS:
            rows = np.sort(dice.choice(ROWS, count, replace=False)).astype(np.int64)
            plan = hudi_index_parquet.Footer(metadata).plan(rows)

            def by_rows(rows: np.ndarray = rows) -> int:
                table, _ = hudi_index_parquet.read_rows(path, rows, metadata=metadata)
                return table.num_rows

            pairs = [
                (seconds(by_rows, count), seconds(lambda r=rows: by_scan(path, r), count))
                for _ in range(ROUNDS)
            ]
            results.append(
                {
                    "rows": count,
                    "page_fraction": round(plan.page_bytes / plan.total_bytes, 3),
                    "rows_over_scan": round(statistics.median(a / b for a, b in pairs), 3),
                }
            )
            print(results[-1], file=sys.stderr)
    report = {"targets": targets(results), "measured": results}
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
