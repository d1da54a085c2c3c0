"""The TPC-H tables: all copy-on-write, and two of them merge-on-read too."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from hudi_index_service.sql import IndexSession
from tests.tpch import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

Decisions = dict[str, dict[str, list[str]]]
DECISIONS = Path(__file__).with_name("decisions.json")


class Answer(NamedTuple):
    """A query's schema and its rows in order, each as a text that distinguishes all values."""

    schema: "StructType"
    rows: list[str]


@dataclass
class Tpch:
    """The tables, by name in the session's current database.

    Attributes:
        variant: ``cow``; or ``mor``, where orders and lineitem are merge-on-read tables and some of
            their indexed base files have log files.
        spark: Queries by Spark alone.
        session: Queries through the index.
    """

    variant: str
    spark: "SparkSession"
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


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Path]]:
    """Variant → table → folder, with indexes on the clustered tables."""
    folder = tmp_path_factory.mktemp("tpch")
    shutil.copytree(tables.written(), folder, dirs_exist_ok=True)
    for variant in ("cow", "mor"):
        for name in tables.CLUSTERED_BY:
            tables.index(folder / variant, name)
    cow = dict.fromkeys(tables.KEYS, folder / "cow")
    return {"cow": cow, "mor": cow | dict.fromkeys(tables.CLUSTERED_BY, folder / "mor")}


@pytest.fixture(scope="module", params=("cow", "mor"))
def tpch(
    request: pytest.FixtureRequest, spark: "SparkSession", folders: dict[str, dict[str, Path]]
) -> Iterator[Tpch]:
    """The tables of one variant. Their database is the current one, so it must not outlive the
    module: the tests of other folders create tables in it otherwise."""
    enabled = spark.newSession()
    enabled.conf.set("hoodie.enable.data.skipping", "false")
    enabled.conf.set("spark.hudi.index.decideMillis", "60000")  # machines under test are busy
    session = IndexSession(enabled)
    with tables.registered(spark, f"tpch_{request.param}", folders[request.param]):
        enabled.catalog.setCurrentDatabase(spark.catalog.currentDatabase())
        yield Tpch(request.param, spark, session)
    session.close()


@pytest.fixture(scope="session")
def decisions(request: pytest.FixtureRequest) -> Iterator[Decisions]:
    """Variant → query → how each of its Hudi relations is read, and why."""
    known = json.loads(DECISIONS.read_text())
    yield known
    if request.config.getoption("--write-decisions"):
        DECISIONS.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
