"""Tables with columns of the types VECTOR and BLOB, as SQL creates them."""

# ruff: noqa: S608 - the queries are the test's own

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from hudi_index_service.sql.rule.uses import RelationUse
from tests.indexed import indexed
from tests.spark_rule.conftest import Query, by_index


@pytest.fixture(scope="module", params=["cow", "mor"])
def table(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[str]:
    """An indexed table, with log files if it is merged on read."""
    name, path = f"typed_{request.param}", tmp_path_factory.mktemp("typed") / request.param
    columns = "id STRING, name STRING, floats VECTOR(2), doubles VECTOR(2, DOUBLE), "
    columns += "picture BLOB, ts BIGINT"
    spark.sql(
        f"CREATE TABLE {name} ({columns}) USING hudi LOCATION '{path}' "
        f"TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = '{request.param}')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT cast(id AS string), concat('name', id % 10), "
        "array(cast(id AS float), 1f), array(id / 3, double('nan')), named_struct('type', 'INLINE',"
        "'data', cast(cast(id AS string) AS binary), 'reference', NULL), 0L FROM range(100)"
    )
    spark.sql(f"UPDATE {name} SET ts = 1, floats = array(-1f, 0f) WHERE id IN ('3', '4')")
    indexed(path, ["id", "name"]).close()
    yield name
    spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("columns", ["*", "id, floats, doubles[0]", "count(floats), max(ts)"])
def test_values_are_sparks(
    agreed: Callable[[str | Query], tuple[RelationUse, ...]],
    costs: Callable[..., None],
    table: str,
    columns: str,
) -> None:
    costs(spark_scan_ms=1e12)
    uses = agreed(f"SELECT {columns} FROM {table} WHERE name = 'name3'")
    has_logs = table.endswith("_mor")
    assert by_index(uses) == [not has_logs]
    if has_logs:
        assert "column picture holds a BLOB" in uses[0].reason
