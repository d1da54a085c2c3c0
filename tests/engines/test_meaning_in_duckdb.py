"""What DuckDB pushes means what it means to DuckDB: generated conditions on a table and on a table
of DuckDB's own with the same rows."""

from random import Random

import duckdb
import pytest

from hudi_index_service import HudiDataset
from tests.engines.sql_predicates import sql_predicate

ZONES = ("UTC", "America/New_York", "Asia/Kolkata")


def found_by(rows: duckdb.DuckDBPyRelation) -> list[tuple[str]] | None:
    """The rows; None if they are refused, as where DuckDB 1 hands over x <= NaN without x."""
    try:
        return rows.fetchall()
    except duckdb.Error as error:
        if "PREDICATE_UNSUPPORTED" not in str(error):
            raise
        return None


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 300), pytest.param(2, 5_000, marks=pytest.mark.slow)]
)
@pytest.mark.timeout(1800)
def test_duckdb_finds_the_rows_that_it_finds_in_plain_parquet(seed, count, table, plain, values):
    random, found_any = Random(seed), 0
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute(f"CREATE TABLE own AS FROM '{plain}'")
        connection.register("ours", HudiDataset(table))
        for number in range(count):
            if number % 50 == 0:
                connection.execute(f"SET TimeZone = '{random.choice(ZONES)}'")
            predicate = sql_predicate(random, values)
            own, ours = (
                connection.view(name).filter(predicate).select("id") for name in ("own", "ours")
            )
            expected, found = own.fetchall(), found_by(ours)
            if found is None:
                assert duckdb.__version__.startswith("1."), predicate
                assert "'nan'" in predicate
                continue
            assert sorted(found) == sorted(expected), (number, predicate)
            found_any += 0 < len(expected) < 600
    assert found_any > count / 2
