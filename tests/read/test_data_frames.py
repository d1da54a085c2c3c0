"""A scan's rows as a stream or data frame of other libraries, and what notebooks show."""

from collections.abc import Iterator

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.errors import ConfigInvalid, PredicateInvalid
from hudi_index_service.read import scan as scan_module
from tests.same_rows import assert_same_rows

WHERE = "amount < 300"


@pytest.fixture(scope="module")
def table(golden, tmp_path_factory) -> Iterator[IndexedTable]:
    """Four base files in two partitions, with an index on two of them."""
    path = golden("four_base_files").put(tmp_path_factory.mktemp("frames"))
    with open_table(path) as table:
        table.create_index("by_amount", ["amount"], using="btree")
        table.build(strategy="all", partitions=["2026-01-01"]).raise_for_failures()
        yield table


def test_arrow_takes_a_scan_as_it_is(table):
    expected = table.scan(WHERE).to_arrow()
    assert expected.num_rows > 0

    streamed = pa.table(table.scan(WHERE))

    assert streamed.schema == expected.schema
    assert_same_rows(streamed, expected)
    assert pa.table(table.scan("amount < 0")) == expected.schema.empty_table()
    assert pa.table(table.scan(WHERE, limit=3)).num_rows == 3
    assert pa.table(table.scan(WHERE, columns=["id"])).column_names == ["id"]


def test_an_error_before_the_first_batch_is_our_own(table):
    with pytest.raises(PredicateInvalid):
        pa.table(table.scan("amount <"))


def test_other_libraries_take_a_scan_as_it_is(table):
    expected = table.scan(WHERE).to_arrow()
    keys = sorted(expected["id"].to_pylist())
    messages = table.scan(WHERE)  # noqa: F841 - DuckDB finds it by its name
    (found,) = duckdb.sql("SELECT count(*), sum(amount) FROM messages").fetchall()
    assert found == (expected.num_rows, sum(expected["amount"].to_pylist()))
    for frame in (table.scan(WHERE).to_polars(), table.scan(WHERE).to_pandas()):
        assert sorted(frame["id"]) == keys
    polars = pl.DataFrame(table.scan(WHERE)).sort("id")
    assert polars.equals(table.scan(WHERE).to_polars().sort("id"))
    assert len(pd.DataFrame.from_arrow(table.scan(WHERE))) == len(keys)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named_with_its_extra(package, table, monkeypatch):
    monkeypatch.setattr(scan_module, "find_spec", lambda name: None)
    with pytest.raises(ConfigInvalid, match=f"The package {package} is not installed") as raised:
        getattr(table.scan(WHERE), f"to_{package}")()
    assert raised.value.remedy == f"Install it: pip install 'hudi-index-service[{package}]'."


def test_notebooks_show_scans_explanations_and_status(table):
    scan = table.scan("msg < '<b>'", columns=["id", "msg"])
    shown = scan._repr_html_()
    assert "<td>msg &lt; &#x27;&lt;b&gt;&#x27;</td>" in shown
    assert "<td>id, msg</td>" in shown
    assert "last run" not in shown
    rows = scan.to_arrow().num_rows
    assert f"<td>rows of the last run</td><td>{rows}</td>" in scan._repr_html_()

    explanation = table.scan(WHERE).explain()
    assert explanation._repr_html_().startswith("<pre>where    amount &lt; 300\n")

    status = table.status()._repr_html_()
    assert f"<caption>{table.uri}, build 000001 finished</caption>" in status
    assert "<td>by_amount</td><td>btree</td><td>amount</td><td>50.0%</td><td>4</td>" in status
