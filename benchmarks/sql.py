"""Plain queries with the optimizer rule against bare Spark: `make bench-sql`.

The 22 queries of TPC-H at scale 0.1, on Hudi tables of which `orders` and `lineitem` are clustered
and indexed (tests/tpch), ten selective ones, and two of which an index serves a small part. Each
query runs in two sessions of one process in turn, round by round: one where `enable` has put the
rule, and one where it is turned off. The session that comes first alternates. Earlier rounds, in
which the JVM compiles the code, are not counted. Differences are medians over the rounds. These are
not TPC-H results as defined by the TPC.

- `whole_ms`: from the text of the query to its result in Python.
- `plan_ms`: until the optimized plan is ready, decisions included; measured in further rounds. For
  a query that uses no index this is all of the overhead. The limit is 20 ms or 5 % of the whole
  query, whichever is more (`allowed_ms`, `reached`).
- `times_as_fast`: of a query that uses the index, the median of the rounds' ratios of `whole_ms`.
- `decisions`: milliseconds that the optimizer takes longer with the rule, for a query without a
  Hudi table, with a condition that it has just seen, and with one that it has not.

Written to benchmarks/results/sql.json. A small run to try things out:
`python -m benchmarks.sql --queries q1,q6 --rounds 1 --output /tmp/bench`.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.bench_table import ROOT, spark_session
from benchmarks.bench_targets import Target, at_least, at_most
from benchmarks.build import environment, log
from hudi_index_service.sql import enable, last_queries
from tests.tpch import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RESULTS = ROOT / "benchmarks" / "results"
QUERIES = ROOT / "tests" / "tpch"
WARM_UP_ROUNDS = 2
PLANS_A_ROUND = 12
ALLOWED_MS, ALLOWED_PART = 20.0, 0.05

SHUFFLE_PARTITIONS = "2"  # as many as there are cores
DECISION_ROUNDS = 150
WARM_UP_DECISIONS = 50

MOST_OF_PLAIN = 1.05
"""How many times as long as in Spark a query may take of which an index serves a small part."""

PARTLY = {
    "urgent_orders_or_those_of_an_in": (
        "SELECT o_orderstatus, count(*) AS orders FROM orders WHERE o_comment = 'none' OR "
        "o_orderkey IN (SELECT l_orderkey FROM lineitem WHERE l_orderkey = 32) "
        "GROUP BY o_orderstatus"
    ),
    "a_join_with_a_windowed_side": (
        "SELECT l_linenumber, number FROM lineitem JOIN (SELECT o_orderkey, row_number() OVER "
        "(PARTITION BY o_custkey ORDER BY o_orderdate) AS number FROM orders) "
        "ON l_orderkey = o_orderkey WHERE l_orderkey = 32"
    ),
}

IN_INDEX_SESSION = {
    "a_day_of_shipping": 2.87,
    "a_week_of_orders": 2.86,
    "buyers_of_a_part": 2.62,
    "comments_that_begin_alike": 4.79,
    "late_lines_of_a_supplier": 5.22,
    "latest_line_of_each_order": 3.85,
    "one_order": 3.92,
    "one_order_with_its_lines": 2.62,
    "orders_of_a_customer": 3.13,
    "orders_shipped_early": 4.22,
}
"""How many times as fast as Spark queries were in `IndexSession`, before the rule."""

MORE_THAN_BEFORE = 1.2

RunSql = Callable[[str], "DataFrame"]


@dataclass(frozen=True, slots=True)
class Sessions:
    """Two sessions on the same tables: without the rule, and with it."""

    bare: "SparkSession"
    ours: "SparkSession"

    @classmethod
    def of(cls, spark: "SparkSession") -> "Sessions":
        """A session, which gets no rule, and a new one beside it."""
        spark.conf.set("spark.hudi.index.enabled", "false")
        ours = spark.newSession()
        enable(ours)
        for session in (spark, ours):
            session.conf.set("spark.sql.shuffle.partitions", SHUFFLE_PARTITIONS)
        ours.catalog.setCurrentDatabase(spark.catalog.currentDatabase())
        return cls(spark, ours)

    def in_turn(
        self, work: Callable[[RunSql, str], float], query: str, rounds: int
    ) -> list[tuple[float, float]]:
        """The milliseconds without and with the rule, for each round."""
        pairs = []
        for number in range(rounds):
            if number % 2:
                bare, ours = work(self.bare.sql, query), work(self.ours.sql, query)
            else:
                ours, bare = work(self.ours.sql, query), work(self.bare.sql, query)
            pairs.append((bare, ours))
        return pairs


def until_plan(run_sql: RunSql, query: str) -> float:
    """Milliseconds until the optimized plan is ready."""
    started = perf_counter()
    run_sql(query)._jdf.queryExecution().optimizedPlan()
    return (perf_counter() - started) * 1000


def optimized(run_sql: RunSql, query: str) -> float:
    """Milliseconds of the optimizer alone."""
    execution = run_sql(query)._jdf.queryExecution()
    execution.analyzed()
    started = perf_counter()
    execution.optimizedPlan()
    return (perf_counter() - started) * 1000


def whole(run_sql: RunSql, query: str) -> float:
    """Milliseconds of the whole query."""
    started = perf_counter()
    run_sql(query).collect()
    return (perf_counter() - started) * 1000


def measured(sessions: Sessions, name: str, query: str, rounds: int) -> dict[str, Any]:
    """One row of the results."""
    sessions.in_turn(whole, query, WARM_UP_ROUNDS)
    sessions.in_turn(until_plan, query, PLANS_A_ROUND * WARM_UP_ROUNDS)
    wholes = sessions.in_turn(whole, query, rounds)
    uses = last_queries(sessions.ours)[-1]
    used = [use.table.rpartition("/")[2] for use in uses if use.by_index]
    plans = sessions.in_turn(until_plan, query, rounds * PLANS_A_ROUND)
    result: dict[str, Any] = {"query": name, "uses_index_of": used}
    for kind, pairs in (("whole", wholes), ("plan", plans)):
        result[f"{kind}_ms"] = {
            "spark": _median(bare for bare, _ in pairs),
            "rule": _median(ours for _, ours in pairs),
            "over": _median(ours - bare for bare, ours in pairs),
        }
    if used:
        ratio = statistics.median(bare / ours for bare, ours in wholes)
        return result | {"times_as_fast": round(ratio, 2)}
    allowed = round(max(ALLOWED_MS, ALLOWED_PART * result["whole_ms"]["spark"]), 1)
    return result | {"allowed_ms": allowed, "reached": result["plan_ms"]["over"] <= allowed}


def decisions(sessions: Sessions) -> dict[str, dict[str, float]]:
    """Milliseconds that the optimizer takes longer with the rule: the median, and the one that 5 %
    of the queries exceed."""
    sessions.bare.range(10).createOrReplaceGlobalTempView("numbers")
    queries: dict[str, Callable[[int], str]] = {
        "no Hudi table": "SELECT * FROM global_temp.numbers WHERE id = 3".format,
        "known": "SELECT * FROM orders WHERE o_orderkey = 32".format,
        "new": "SELECT * FROM orders WHERE o_orderkey = {}".format,
    }
    over: dict[str, list[float]] = {kind: [] for kind in queries}
    for number in range(WARM_UP_DECISIONS + DECISION_ROUNDS):
        for kind, query in queries.items():
            [(bare, ours)] = sessions.in_turn(optimized, query(number), 1)
            if number >= WARM_UP_DECISIONS:
                over[kind].append(ours - bare)
    results = {
        kind: {
            "median": round(statistics.median(each), 2),
            "p95": round(sorted(each)[int(0.95 * len(each))], 2),
        }
        for kind, each in over.items()
    }
    log(f"decisions: {results}")
    return results


def _median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 1)


def prepared(spark: "SparkSession", folder: Path) -> None:
    """Writes and indexes the tables."""
    tables.generate(folder / "generated")
    for name in tables.KEYS:
        log(f"Writing {name} …")
        tables.write_table(spark, folder / "generated", folder, name, "COPY_ON_WRITE")
        if name in tables.CLUSTERED_BY:
            log(f"Indexing {name} …")
            tables.index(folder, name)


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


def targets(results: list[dict[str, Any]], over: dict[str, dict[str, float]]) -> list[Target]:
    """A query without an index costs little more, and one with an index is faster than before."""
    return [
        at_most("no Hudi table: ms more", 0.3, over["no Hudi table"]["median"]),
        at_most("a known decision: ms more", 0.5, over["known"]["median"]),
        at_most("a new decision: ms more", 2, over["new"]["median"]),
        at_most("a new decision, 95 of 100: ms more", 12, over["new"]["p95"]),
        *map(_target, results),
    ]


def _target(row: dict[str, Any]) -> Target:
    name = row["query"]
    if name in PARTLY:
        return at_most(
            f"{name}: over Spark",
            MOST_OF_PLAIN,
            round(row["whole_ms"]["rule"] / row["whole_ms"]["spark"], 3),
        )
    if row["uses_index_of"]:
        wanted = round(MORE_THAN_BEFORE * IN_INDEX_SESSION.get(name, 1), 2)
        return at_least(f"{name}: times as fast", wanted, row["times_as_fast"])
    allowed, over = row["allowed_ms"], row["plan_ms"]["over"]
    return at_most(f"{name}: ms more until the plan", allowed, over)


def line(row: dict[str, Any]) -> str:
    """A query's line in the log."""
    whole_ms, plan_ms = row["whole_ms"], row["plan_ms"]
    served = ", ".join(row["uses_index_of"]) or "no table"
    return (
        f"{row['query']}: {whole_ms['spark']:g} ms, {whole_ms['rule']:g} with the rule; until "
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
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.scratch) as scratch:
        folder = Path(scratch)
        spark = spark_session(folder)
        prepared(spark, folder)
        with tables.registered(spark, "tpch", dict.fromkeys(tables.KEYS, folder)):
            sessions = Sessions.of(spark)
            over = decisions(sessions)
            texts = {each.stem: each.read_text() for each in query_files(arguments.queries)}
            for name, query in (texts | PARTLY).items():
                results.append(measured(sessions, name, query, arguments.rounds))
                log(line(results[-1]))
        spark.stop()
    result = {
        "targets": targets(results, over),
        "decisions": over,
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
