"""The overhead of IndexSession over bare Spark: `make bench-sql`.

The 22 queries of TPC-H at scale 0.1, on Hudi tables of which `orders` and `lineitem` are clustered
and indexed (tests/tpch), and ten selective ones. Each query runs in both sessions of one process
in turn, round by round; the session that comes first alternates. Earlier rounds, in which the JVM
compiles the code, are not counted. Differences are medians over the rounds. These are not TPC-H
results as defined by the TPC.

- `whole_ms`: from the text of the query to its result in Python.
- `plan_ms`: until the optimized plan is ready, decisions included; measured in further rounds. For
  a query that uses no index, IndexSession returns Spark's own DataFrame, so all of its overhead
  falls in this time, and is smaller than the variation of whole queries between runs. The limit is
  20 ms or 5 % of the whole query, whichever is more (`allowed_ms`, `reached`).
- `times_as_fast`: of a query that uses the index, the median of the rounds' ratios of `whole_ms`.

Written to benchmarks/results/sql.json. A small run to try things out:
`python -m benchmarks.sql --queries q1,q6 --rounds 1 --output /tmp/bench`.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.bench_table import ROOT, spark_session
from benchmarks.bench_targets import Target, at_least, at_most
from benchmarks.build import environment, log
from hudi_index_service.sql import IndexSession
from tests.tpch import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RESULTS = ROOT / "benchmarks" / "results"
QUERIES = ROOT / "tests" / "tpch"
WARM_UP_ROUNDS = 2
PLANS_A_ROUND = 12
ALLOWED_MS, ALLOWED_PART = 20.0, 0.05

RunSql = Callable[[str], "DataFrame"]


def until_plan(run_sql: RunSql, query: str) -> float:
    """Milliseconds until the optimized plan is ready."""
    started = perf_counter()
    run_sql(query)._jdf.queryExecution().optimizedPlan()
    return (perf_counter() - started) * 1000


def whole(run_sql: RunSql, query: str) -> float:
    """Milliseconds of the whole query."""
    started = perf_counter()
    run_sql(query).collect()
    return (perf_counter() - started) * 1000


def in_turn(
    session: IndexSession, work: Callable[[RunSql, str], float], query: str, rounds: int
) -> list[tuple[float, float]]:
    """The milliseconds in the bare session and in ours, for each round."""
    pairs = []
    for number in range(rounds):
        if number % 2:
            bare, ours = work(session.spark.sql, query), work(session.sql, query)
        else:
            ours, bare = work(session.sql, query), work(session.spark.sql, query)
        pairs.append((bare, ours))
    return pairs


def measured(session: IndexSession, name: str, query: str, rounds: int) -> dict[str, Any]:
    """One row of the results."""
    in_turn(session, whole, query, WARM_UP_ROUNDS)
    in_turn(session, until_plan, query, PLANS_A_ROUND * WARM_UP_ROUNDS)
    wholes = in_turn(session, whole, query, rounds)
    plans = in_turn(session, until_plan, query, rounds * PLANS_A_ROUND)
    used = [use.table.rpartition("/")[2] for use in session.relations if use.by_index]
    result: dict[str, Any] = {"query": name, "uses_index_of": used}
    for kind, pairs in (("whole", wholes), ("plan", plans)):
        result[f"{kind}_ms"] = {
            "spark": _median(bare for bare, _ in pairs),
            "session": _median(ours for _, ours in pairs),
            "over": _median(ours - bare for bare, ours in pairs),
        }
    if used:
        ratio = statistics.median(bare / ours for bare, ours in wholes)
        return result | {"times_as_fast": round(ratio, 2)}
    allowed = round(max(ALLOWED_MS, ALLOWED_PART * result["whole_ms"]["spark"]), 1)
    return result | {"allowed_ms": allowed, "reached": result["plan_ms"]["over"] <= allowed}


def _median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 1)


def prepared(spark: "SparkSession", session: IndexSession, folder: Path) -> None:
    """Writes and indexes the tables."""
    tables.generate(folder / "generated")
    for name in tables.KEYS:
        log(f"Writing {name} …")
        tables.write_table(spark, folder / "generated", folder, name, "COPY_ON_WRITE")
        if name in tables.CLUSTERED_BY:
            log(f"Indexing {name} …")
            tables.index(session, folder, name)


def query_files(names: str) -> list[Path]:
    """The files of the selected queries, TPC-H's first."""
    tpch = [QUERIES / "queries" / f"q{number}.sql" for number in range(1, 23)]
    every = [*tpch, *sorted((QUERIES / "selective").glob("*.sql"))]
    selected = names.split(",")
    return [each for each in every if not names or each.stem in selected]


def summary(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The overhead of the queries that use no index, and the speed-up of the others."""
    unused = [row for row in results if not row["uses_index_of"]]
    over = [row["plan_ms"]["over"] for row in unused]
    return {
        "queries_without_index": len(unused),
        "reached": sum(row["reached"] for row in unused),
        "median_over_ms": _median(over) if over else None,
        "most_over_ms": max(over, default=None),
        "times_as_fast": [row["times_as_fast"] for row in results if row["uses_index_of"]],
    }


def targets(results: list[dict[str, Any]]) -> list[Target]:
    """A query without an index costs little more, and one with an index is faster."""
    return [
        at_least(f"{row['query']}: times as fast", 1.0, row["times_as_fast"])
        if row["uses_index_of"]
        else at_most(
            f"{row['query']}: ms more until the plan", row["allowed_ms"], row["plan_ms"]["over"]
        )
        for row in results
    ]


def line(row: dict[str, Any]) -> str:
    """A query's line in the log."""
    whole_ms, plan_ms = row["whole_ms"], row["plan_ms"]
    served = ", ".join(row["uses_index_of"]) or "no table"
    return (
        f"{row['query']}: {whole_ms['spark']:g} ms, {whole_ms['session']:g} in IndexSession; until "
        f"the plan {plan_ms['spark']:g} and {plan_ms['over']:+g} ms; index of {served}"
    )


def parse_arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", default="", help="names, separated by commas; empty: all")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--scratch", type=Path, help="folder for tables; a temporary one if absent")
    return parser.parse_args()


def main() -> None:
    """Measures, prints and writes the results."""
    arguments = parse_arguments()
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.scratch) as name:
        folder = Path(name)
        spark = spark_session(folder)
        # As many as there are cores.
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        session = IndexSession(spark)
        prepared(spark, session, folder)
        with tables.registered(spark, "tpch", dict.fromkeys(tables.KEYS, folder)):
            for path in query_files(arguments.queries):
                results.append(measured(session, path.stem, path.read_text(), arguments.rounds))
                log(line(results[-1]))
        session.close()
        spark.stop()
    result = {
        "targets": targets(results),
        "summary": summary(results),
        "queries": results,
        "scale": tables.SCALE,
        "rounds": arguments.rounds,
        "environment": environment(),
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "sql.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
