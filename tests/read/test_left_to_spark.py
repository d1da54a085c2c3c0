"""Predicates that are not evaluated here are left to Spark, if there is a session."""

import pytest

from hudi_index_service import open_table
from hudi_index_service.errors import (
    ColumnNotFound,
    PredicateUnsupported,
    RowIdsUnavailable,
    StorageFailed,
)
from hudi_index_service.hudi.spark import collected
from tests.hudi_tables import read_rows
from tests.same_rows import assert_same_rows

pytestmark = pytest.mark.fast

COLUMNS = ["id", "name", "amount"]
LOOK_AHEAD = "msg RLIKE 'new (?=car)' AND amount < 300"


@pytest.mark.parametrize(
    "where", [LOOK_AHEAD, "upper(name) = 'PLAIN'", "amount * 2 > 1000 AND small IN (1, 2, 3)"]
)
def test_spark_answers_with_a_session(where, spark, awkward):
    table = awkward("clustered")
    expected = collected(read_rows(spark, table.path).where(where).select(*COLUMNS))
    assert expected.num_rows > 0
    scan = open_table(table.path, spark=spark).scan(where, columns=["ID", "name", "amount"])
    assert_same_rows(scan.to_arrow(), expected)
    assert_same_rows(collected(scan.to_spark(spark)), expected)
    assert sum(batch.num_rows for batch in scan.to_batches()) == expected.num_rows
    assert (scan.count(), scan.exists()) == (expected.num_rows, True)
    assert scan.statistics is None
    assert str(scan.explain()).splitlines()[1].startswith("reader   Spark: ")
    limited = open_table(table.path, spark=spark).scan(where, limit=2)
    assert limited.to_arrow().num_rows == 2
    with pytest.raises((PredicateUnsupported, RowIdsUnavailable)):
        scan.row_ids()


def test_spark_answers_as_of_an_instant(spark, awkward):
    instants = awkward("half covered").table.hudi_table.completed_instants()
    table = open_table(awkward("half covered").path, spark=spark)
    where = "msg RLIKE 'new (?=home)' AND ts = 1"
    assert (
        table.scan(where).count()
        == read_rows(spark, awkward("half covered").path).where(where).count()
        > 0
    )
    assert table.scan(where, as_of=instants[0].requested).count() == 0


def test_without_a_session_the_error_names_the_remedy(awkward):
    with pytest.raises(PredicateUnsupported) as raised:
        awkward("clustered").table.scan(LOOK_AHEAD)
    assert "pass spark=" in raised.value.remedy


def test_only_plain_row_filters_are_left_to_spark(spark, awkward):
    table = open_table(awkward("clustered").path, spark=spark)
    for where in (
        "reflect('java.lang.System', 'getenv', 'HOME') = name",
        "id IN (SELECT id FROM other)",
        "match(name, 'plain')",  # no index holds its words
    ):
        with pytest.raises(PredicateUnsupported):
            table.scan(where)
    with pytest.raises(PredicateUnsupported):
        table.scan(LOOK_AHEAD, use_index="require")
    for options in ({"fast": True}, {"only_if_covered_to": "2026-01-01"}):  # Spark covers nothing
        with pytest.raises(PredicateUnsupported) as raised:
            table.scan(LOOK_AHEAD, **options)
        assert "spark=" not in raised.value.remedy
    with pytest.raises(ColumnNotFound):
        table.scan(LOOK_AHEAD, columns=["nothing"])
    with pytest.raises(StorageFailed, match="nothing"):
        table.scan("upper(nothing) = 'X'").to_arrow()
