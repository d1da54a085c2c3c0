"""What DuckDB pushes means what it means to DuckDB: generated conditions on a table and on a table
of DuckDB's own with the same rows."""

from pathlib import Path
from random import Random

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from hudi_index_service import HudiDataset
from tests.engines.sql_predicates import sql_predicate

ZONES = ("UTC", "America/New_York", "Asia/Kolkata")
FAILURES = (duckdb.InternalException, duckdb.NotImplementedException)
IS_FIRST = duckdb.__version__.startswith("1.")


class Tables:
    """The same rows in a table of DuckDB's own, and by a dataset, in a database in memory."""

    def __init__(self, plain: Path, dataset: ds.Dataset, zone: str) -> None:
        self._connection = duckdb.connect(config={"threads": 2})
        self._connection.execute(f"CREATE TABLE own AS FROM '{plain}'")
        self._connection.register("ours", dataset)
        self._connection.execute(f"SET TimeZone = '{zone}'")

    def ids(self, name: str, predicate: str) -> list[tuple[str]]:
        """The keys of the rows for which a condition is TRUE."""
        return sorted(self._connection.view(name).filter(predicate).select("id").fetchall())


def is_refused(error: duckdb.Error) -> bool:
    """Whether DuckDB 1 has written TRUE, as it does for x <= NaN, and seldom for other ranges."""
    return IS_FIRST and "PREDICATE_UNSUPPORTED" in str(error)


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 300), pytest.param(2, 5_000, marks=pytest.mark.slow)]
)
@pytest.mark.timeout(1800)
def test_duckdb_finds_the_rows_that_it_finds_in_plain_parquet(seed, count, table, plain, values):
    random, compared, refused, in_arrow = Random(seed), 0, 0, ds.dataset(pq.read_table(plain))
    dataset, tables = HudiDataset(table), None
    for number in range(count):
        if number % 50 == 0 or tables is None:
            zone = random.choice(ZONES)
            tables = Tables(plain, dataset, zone)
        predicate = sql_predicate(random, values)
        expected = tables.ids("own", predicate)
        try:
            found = tables.ids("ours", predicate)
        except FAILURES as error:  # of DuckDB 1, on any dataset
            assert IS_FIRST
            with pytest.raises(type(error)):
                Tables(plain, in_arrow, zone).ids("ours", predicate)
            tables = None
            continue
        except duckdb.Error as error:
            if not is_refused(error):
                raise
            refused += 1
            continue
        assert found == expected, (number, predicate)
        compared += 0 < len(expected) < 600
    assert compared > count / 2
    assert refused < count / 50
