"""Base files whose lists have no level for their elements, as Hudi's Avro writer stores them."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hudi_index_parquet import Footer, read_columns, read_rows, stripped_footer

from hudi_index_service.optimizer.plan import Access
from tests.golden.recipes.lists import IN_TWO_LEVELS, NESTINGS
from tests.indexed import indexed
from tests.same_rows import assert_same_rows


@pytest.fixture
def path(golden, tmp_path) -> Path:
    return golden("nested_in_two_levels").put(tmp_path)


def base_file(path: Path) -> Path:
    (found,) = path.glob("*.parquet")
    return found


@pytest.mark.parametrize("column", NESTINGS)
def test_every_nesting_is_read_by_row(path, column):
    file = base_file(path)
    # Arrow knows both layouts. NULL and empty values, and every row alone.
    expected = pq.read_table(file, columns=[column]).column(0).to_pylist()
    assert None in expected
    footer = Footer(stripped_footer(file))
    rows = np.arange(len(expected))
    table, _ = footer.read(file, rows, [column])
    assert table.column(0).to_pylist() == expected
    for row in rows:
        table, _ = read_rows(file, rows[row : row + 1], [column, "name"])
        assert table.column(0).to_pylist() == [expected[row]]
    read = read_columns([(file, None)], [column])
    assert read[0].column(0).to_pylist() == expected


def test_an_index_serves_beside_lists_of_maps(golden, path):
    table = indexed(path, ["id", "name"], using="btree")
    shape = golden("nested_in_two_levels")
    for where in IN_TWO_LEVELS:
        for use_index in ("auto", "never"):
            scan = table.scan(where, use_index=use_index)
            assert_same_rows(scan.to_arrow(), shape.answer(where))
    by_index = table.scan("id = '7'", use_index="require")
    assert by_index.to_arrow().num_rows == 1
    (did,) = by_index.statistics.slices
    assert (did.access, did.rows_checked, did.note) == (Access.INDEX, 1, "")
    assert table.verify().problems == ()
