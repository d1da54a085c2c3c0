"""What Polars pushes means what it means to Polars: generated conditions on a table and on plain
Parquet with the same rows."""

from random import Random

import polars as pl
import pytest

from hudi_index_service import scan_hudi
from tests.engines.polars_predicates import polars_predicate


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 300), pytest.param(2, 5_000, marks=pytest.mark.slow)]
)
@pytest.mark.timeout(1800)
def test_polars_finds_the_rows_that_it_finds_in_plain_parquet(seed, count, table, plain, values):
    random, rows, frame = Random(seed), pl.read_parquet(plain), scan_hudi(table)
    found_any = 0
    for number in range(count):
        predicate = polars_predicate(random, values)
        query = frame.filter(predicate).select("id")
        try:
            expected = sorted(rows.filter(predicate)["id"])
        except pl.exceptions.InvalidOperationError as error:  # some types, before Polars 2
            with pytest.raises(type(error)):
                query.collect()
            continue
        found = query.collect(engine=random.choice(("in-memory", "streaming")))
        assert sorted(found["id"]) == expected, (number, str(predicate))
        found_any += 0 < len(expected) < len(rows)
    assert found_any > count / 2
