"""The spark-submit application: builds what is due for Hudi tables, as Spark jobs.

    spark-submit "$(python -c 'from hudi_index_service.submit import APPLICATION as a; print(a)')" \
        --table /data/messages

Run it after a compaction or clustering job, from a scheduler, or manually; or let it run Hudi's
procedure first (``--table-service``). Driver and executors need this package and its native
distributions.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence

from pyspark import SparkContext
from pyspark.sql import SparkSession

from hudi_index_service.build.strategy import Budget, Strategy
from hudi_index_service.errors import IndexNotFound, IndexServiceError
from hudi_index_service.hook.table_upkeep import TableUpkeep
from hudi_index_service.hook.write_options import read_write_config
from hudi_index_service.predicate.values import string_sql
from hudi_index_service.wording import counted


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds, prints one line of results per table, and returns the exit status: 0; 1 if any table
    had an error (code, message and remedy on stderr); 2 for wrong arguments."""
    args = argument_parser().parse_args(arguments)
    # Not by the active session: that is a thread's, and any thread may call this.
    builder = SparkSession.builder
    if is_own := SparkContext._active_spark_context is None:
        builder = builder.appName(f"hudi-index build {', '.join(args.table)}")
    spark = builder.getOrCreate()
    failed = False
    try:
        options = read_write_config(args.hoodie_conf, args.props)
        budget = Budget(
            files=args.max_files,
            bytes=args.max_bytes,
            minutes=args.max_minutes,
            requests_per_second=args.requests_per_second,
        )
        for table in args.table:
            try:
                print(_build(spark, table, args, options, budget))
            except IndexServiceError as error:  # the next table is built all the same
                print(error, file=sys.stderr)
                failed = True
    except IndexServiceError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if is_own:
            spark.stop()
    return int(failed)


def _build(
    spark: SparkSession,
    table: str,
    args: argparse.Namespace,
    options: Mapping[str, str],
    budget: Budget,
) -> str:
    with TableUpkeep(table, spark=spark, options=options) as upkeep:
        keys = upkeep.define()
        if args.require_index and keys.failure is None and not upkeep.table.indexes():
            raise IndexNotFound(f"The table {upkeep.uri} has no index.")
        if args.table_service:
            _serve(spark, upkeep.uri, args)
        build = upkeep.table.build(
            strategy=keys.strategy if args.strategy == "auto" else Strategy(args.strategy),
            partitions=args.partition,
            budget=budget,
        )
        # Before a failure ends this: an entry that cannot be built does not keep others' rest.
        cleaning = upkeep.table.clean() if args.clean else None
        build.raise_for_failures()
        if keys.failure is not None:
            raise keys.failure
        report = (
            f"{upkeep.uri}: built {counted(len(build.built), 'entry')} in {build.seconds:.1f} s"
        )
        if build.stopped_by is not None:
            report += f", {build.left} left ({build.stopped_by})"
        if cleaning is not None:
            report += (
                f", removed {counted(len(cleaning.removals), 'file')} ({cleaning.bytes} bytes)"
            )
    return report


def _serve(spark: SparkSession, uri: str, args: argparse.Namespace) -> None:
    """Has Hudi's procedure schedule and execute the table service. Raises what the procedure
    does."""
    given = {"op": "scheduleAndExecute", "path": uri, "options": args.service_options}
    arguments = ", ".join(f"{name} => {string_sql(text)}" for name, text in given.items() if text)
    instants = spark.sql(f"CALL run_{args.table_service}({arguments})").collect()
    print(f"{uri}: {args.table_service} of {counted(len(instants), 'instant')}")


def argument_parser() -> argparse.ArgumentParser:
    """The arguments of ``hudi-index-build``."""
    parser = argparse.ArgumentParser(
        prog="hudi-index-build", description="Build the index entries that are due for Hudi tables."
    )
    parser.add_argument(
        "--table",
        required=True,
        action="append",
        help="base path: the folder that holds .hoodie; may be repeated",
    )
    parser.add_argument(
        "--strategy",
        choices=["auto", *(strategy.value for strategy in Strategy)],
        default="auto",
        help="auto: the strategy in hoodie.index.strategy, or incremental; incremental: base files "
        "that clustering or compaction wrote since the index was defined; all: every base file; "
        "refresh: entries that no longer match their definition (default: %(default)s)",
    )
    parser.add_argument(
        "--partition",
        action="append",
        help="only this partition, or those that match a pattern; may be repeated",
    )
    parser.add_argument("--max-files", type=int, help="maximum number of entries, newest first")
    parser.add_argument("--max-bytes", type=int, help="maximum bytes of base files")
    parser.add_argument("--max-minutes", type=float, help="start no entry after this many minutes")
    parser.add_argument(
        "--requests-per-second", type=float, help="maximum rate of requests to the table's store"
    )
    parser.add_argument(
        "--props", help="a Hudi write config (properties file) with hoodie.index.* keys"
    )
    parser.add_argument(
        "--hoodie-conf",
        action="append",
        default=[],
        help="a hoodie.index.* key as key=value, or several on separate lines; may be repeated",
    )
    parser.add_argument(
        "--require-index",
        action="store_true",
        help="fail if a table has no index, and its keys define none",
    )
    parser.add_argument(
        "--table-service",
        choices=["clustering", "compaction"],
        help="run Hudi's procedure for it first; the session needs Hudi's extension",
    )
    parser.add_argument(
        "--service-options", default="", help="options of Hudi's for it: key=value,..."
    )
    parser.add_argument(
        "--clean",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="remove expired entries afterwards (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
