"""The spark-submit application: builds what is due for one table, as a Spark job.

    spark-submit "$(python -c 'from hudi_index_service.submit import APPLICATION as a; print(a)')" \
        --table /data/messages

Run it after a compaction or clustering job, from a scheduler, or by hand. Driver and executors need
this package and its native distributions.
"""

import argparse
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.indexed_table import open_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds, prints a line that says what was done, and returns the exit status: 0, 1 for an
    error (code, message and remedy on stderr), 2 for wrong arguments."""
    asked = _parser().parse_args(arguments)
    running = SparkSession.getActiveSession()
    spark = running or SparkSession.builder.appName(f"hudi-index build {asked.table}").getOrCreate()
    try:
        print(_run(spark, asked.table, Strategy(asked.strategy), clean=asked.clean))
    except IndexServiceError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if running is None:
            spark.stop()
    return 0


def _run(spark: SparkSession, uri: str, strategy: Strategy, *, clean: bool) -> str:
    with open_table(uri, spark=spark) as table:
        build = table.build(strategy=strategy).raise_for_failures()
        report = f"{table.uri}: built {len(build.built)} entries in {build.seconds:.1f} s"
        if clean:
            cleaning = table.clean()
            report += f", removed {len(cleaning.removals)} files ({cleaning.bytes} bytes)"
    return report


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hudi-index-build",
        description="Build the index entries that are due for a Hudi table.",
    )
    parser.add_argument("--table", required=True, help="base path: the folder that holds .hoodie")
    parser.add_argument(
        "--strategy",
        choices=[strategy.value for strategy in Strategy],
        default=Strategy.INCREMENTAL.value,
        help="incremental: base files that clustering or compaction wrote since the index was "
        "defined; all: every base file (default: %(default)s)",
    )
    parser.add_argument("--clean", action="store_true", help="then remove entries that expired")
    return parser


if __name__ == "__main__":
    sys.exit(main())
