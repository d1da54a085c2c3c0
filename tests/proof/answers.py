"""The three answers to a predicate: by index, by scan, by Spark."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.errors import PredicateUnsupported, TableFeatureUnsupported
from hudi_index_service.optimizer.plan import Access

Rows = tuple[int, ...]

COUNTED = 4  # every so many-th predicate is counted by the index alone as well


@dataclass(frozen=True)
class OurAnswer:
    """What the service says; rows are sorted values of the column `row`.

    Attributes:
        refused: Why the predicate is not answered; nothing else is set then.
        by_index: With the index.
        by_scan: Without.
        counted: `count()` with the index; None where it was not asked.
        slices: Of the table.
        indexed: Slices that were read by row ids, or not at all on their entry's word.
        merged: Slices merged with log files.
    """

    refused: str = ""
    by_index: Rows = ()
    by_scan: Rows = ()
    counted: int | None = None
    slices: int = 0
    indexed: int = 0
    merged: int = 0


_tables: dict[tuple[Path, str], IndexedTable] = {}


def opened(path: Path, time_zone: str) -> IndexedTable:
    """The table, opened once a process. Rows are read by their pages however small the table."""
    if (path, time_zone) not in _tables:
        read = ReadSettings(
            scan_fraction=1, max_predicates=1_000, parallelism=1, time_zone=time_zone
        )
        _tables[path, time_zone] = open_table(path, settings=Settings(read=read))
    return _tables[path, time_zone]


def our_answers(path: Path, time_zone: str, wheres: Sequence[str]) -> list[OurAnswer]:
    """What the service says to each predicate."""
    table = opened(path, time_zone)
    answers = []
    for number, where in enumerate(wheres):
        try:
            answers.append(_our_answer(table, where, count=number % COUNTED == 0))
        except Exception as error:
            error.add_note(f"{where} on {path}")
            raise
    return answers


def _our_answer(table: IndexedTable, where: str, *, count: bool) -> OurAnswer:
    try:
        scan = table.scan(where, columns=["row"])
        by_index = _sorted(scan.to_arrow())
    except (PredicateUnsupported, TableFeatureUnsupported) as error:
        return OurAnswer(refused=str(error))
    statistics = scan.statistics
    assert statistics is not None
    never = table.scan(where, columns=["row"], use_index="never")
    return OurAnswer(
        by_index=by_index,
        by_scan=_sorted(never.to_arrow()),
        counted=scan.count() if count else None,
        slices=len(statistics.slices),
        indexed=statistics.count(Access.INDEX) + statistics.count(Access.SKIP),
        merged=statistics.count(Access.MERGE),
    )


def _sorted(found: pa.Table) -> Rows:
    return tuple(sorted(found.column("row").to_pylist()))


# Compiling hundreds of expressions takes far longer than interpreting them.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def time_zone_of(spark: SparkSession, time_zone: str) -> AbstractContextManager[None]:
    """Spark's session in a time zone, as long as the block lasts."""
    return _settings(spark, {"spark.sql.session.timeZone": time_zone})


@contextmanager
def _settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    previous = {key: spark.conf.get(key) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in previous.items():
            spark.conf.set(key, value)


class SparksAnswers:
    """What Spark says, asked about many predicates in one job.

    Args:
        frame: All rows of the tables, with the columns `table` and `row`.
    """

    def __init__(self, frame: DataFrame, time_zone: str) -> None:
        self._frame = frame
        self._spark = frame.sparkSession
        self._time_zone = time_zone

    def ask(self, wheres: Sequence[str]) -> list[dict[int, Rows] | None]:
        """For each predicate, by table the sorted values of `row`; None where Spark refuses."""
        with _settings(self._spark, INTERPRETED), time_zone_of(self._spark, self._time_zone):
            return self._asked(wheres)

    def _asked(self, wheres: Sequence[str]) -> list[dict[int, Rows] | None]:
        try:
            truths = [f"({where}) AS p{number}" for number, where in enumerate(wheres)]
            rows = self._frame.selectExpr("`table`", "`row`", *truths).collect()
        except PySparkException:
            if len(wheres) == 1:
                return [None]
            half = len(wheres) // 2
            return self._asked(wheres[:half]) + self._asked(wheres[half:])
        answers = []
        for number in range(len(wheres)):
            found: dict[int, list[int]] = {}
            for row in rows:
                if row[number + 2]:
                    found.setdefault(row[0], []).append(row[1])
            answers.append({table: tuple(sorted(each)) for table, each in found.items()})
        return answers
