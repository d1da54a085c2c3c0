"""Tables by their names in a Spark session's catalog."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_index_service import open_table
from hudi_index_service.errors import NotAHudiTable, TableAmbiguous, TableNotFound
from tests.golden.table import Golden

pytestmark = pytest.mark.fast


@pytest.fixture(scope="module")
def messages(
    spark: SparkSession, golden: Golden, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The table named.messages, in a session with other tables beside it."""
    path = golden("rfc_messages").put(tmp_path_factory.mktemp("catalog") / "messages")
    spark.sql("CREATE DATABASE named")
    spark.sql(f"CREATE TABLE named.messages USING hudi LOCATION '{path}'")
    spark.sql("CREATE TABLE named.plain (a INT) USING parquet")
    spark.sql("CREATE VIEW named.seen AS SELECT * FROM named.plain")
    yield path
    spark.sql("DROP DATABASE named CASCADE")


def test_a_table_is_opened_by_its_name(spark: SparkSession, messages: Path) -> None:
    for name in ("named.messages", "NAMED.Messages", "spark_catalog.named.messages"):
        assert open_table(name, spark=spark).uri == str(messages)


def test_what_is_not_a_hudi_table_is_refused(spark: SparkSession, messages: Path) -> None:
    for name, reason in (
        ("named.plain", "named.plain is not a Hudi table, but of format parquet"),
        ("named.seen", "named.seen is a view"),
    ):
        with pytest.raises(NotAHudiTable, match=reason):
            open_table(name, spark=spark)


def test_an_unknown_name_is_not_found(spark: SparkSession, messages: Path) -> None:
    with pytest.raises(TableNotFound, match=r"Spark's catalog has no table named\.massages"):
        open_table("named.massages", spark=spark)


def test_a_folder_of_that_name_wins_only_where_the_catalog_has_no_such_table(
    spark: SparkSession,
    messages: Path,
    golden: Golden,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    golden("rfc_messages").put(tmp_path / "named.others")
    assert open_table("named.others", spark=spark).uri == str(tmp_path / "named.others")
    golden("rfc_messages").put(tmp_path / "named.messages")
    with pytest.raises(TableAmbiguous, match=f"a table in Spark's catalog, at {messages}"):
        open_table("named.messages", spark=spark)
    assert open_table("./named.messages", spark=spark).uri == str(tmp_path / "named.messages")
