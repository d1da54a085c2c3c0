"""Measures the optimizer's constants, shows them, and stores them in the state folder, where the
service reads them: `python -m benchmarks.calibrate [--seconds N] [--dry-run]`. Run it while the
machine is idle."""

import argparse
import os
from collections.abc import Sequence

from benchmarks.calibrate import MEANINGS, calibrate
from benchmarks.calibrate.sample import ROWS
from hudi_index_service.config import settings


def main(arguments: Sequence[str] | None = None, *, rows: int = ROWS) -> None:
    """Runs it.

    Args:
        rows: Number of rows of the Parquet file that is measured.
    """
    parser = argparse.ArgumentParser(prog="benchmarks.calibrate")
    parser.add_argument("--seconds", type=float, default=15.0, help="approximate time to measure")
    parser.add_argument("--dry-run", action="store_true", help="only show the result")
    options = parser.parse_args(arguments)
    result = calibrate(settings(), seconds=options.seconds, dry_run=options.dry_run, rows=rows)
    old, new = result.old.model_dump(), result.new.model_dump()
    print(f"{'constant':20} {'old':>12} {'new':>12}  milliseconds for")
    for name in new:
        measured = f"{new[name]:.3g}" if name in result.measured else "not measured"
        print(f"{name:20} {old[name]:12.3g} {measured:>12}  {MEANINGS[name]}")
    stored = "nothing was written" if result.path is None else f"stored in {result.path}"
    print(f"Measured in {result.seconds:.0f} s; {stored}.")


if __name__ == "__main__":
    # Pages that are kept are not read again.
    os.environ["HUDI_INDEX_READ__PAGE_CACHE_MB"] = "0"
    main()
