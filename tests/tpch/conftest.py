"""The TPC-H tables: two of them merge-on-read, the others copy-on-write."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from hudi_index_service.sql import IndexSession
from tests.tpch import tables

Decisions = dict[str, list[str]]
DECISIONS = Path(__file__).with_name("decisions.json")


class Answer(NamedTuple):
    """A query's schema and its rows in order, each as a text that distinguishes all values."""

    schema: StructType
    rows: list[str]


@dataclass
class Tpch:
    """The tables, by name in the session's current database.

    Attributes:
        spark: Queries by Spark alone.
        session: Queries through the index.
    """

    spark: SparkSession
    session: IndexSession
    _answers: dict[Path, Answer] = field(default_factory=dict)

    def plain(self, query: Path) -> Answer:
        """The answer of plain Spark."""
        if query not in self._answers:
            frame = self.spark.sql(query.read_text())
            self._answers[query] = Answer(frame.schema, list(map(repr, frame.collect())))
        return self._answers[query]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-decisions",
        action="store_true",
        help="write the current decisions to decisions.json, for review before they are committed",
    )


@pytest.fixture(scope="module")
def tpch(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tpch]:
    """The tables, with indexes on the clustered ones. Their database is the current one, so it must
    not outlive the module: the tests of other folders create tables in it otherwise."""
    folder = shutil.copytree(tables.written(), tmp_path_factory.mktemp("tpch") / "tables")
    for name in tables.CLUSTERED_BY:
        tables.index(folder, name)
    enabled = spark.newSession()
    enabled.conf.set("hoodie.enable.data.skipping", "false")
    enabled.conf.set("spark.hudi.index.decideMillis", "60000")  # machines under test are busy
    session = IndexSession(enabled)
    with tables.registered(spark, "tpch", dict.fromkeys(tables.KEYS, folder)):
        enabled.catalog.setCurrentDatabase(spark.catalog.currentDatabase())
        yield Tpch(spark, session)
    session.close()


@pytest.fixture(scope="session")
def decisions(request: pytest.FixtureRequest) -> Iterator[Decisions]:
    """Query → how each of its Hudi relations is read, and why."""
    known = json.loads(DECISIONS.read_text())
    yield known
    if request.config.getoption("--write-decisions"):
        DECISIONS.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
