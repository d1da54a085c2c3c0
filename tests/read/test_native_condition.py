"""The row reader tests conditions where values lie, with the results of the evaluator."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service.arrow import FALSE, as_truths
from hudi_index_service.errors import NeedsSpark
from hudi_index_service.predicate import evaluate, keep, negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import (
    BoundColumn,
    Compare,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Predicate,
)
from hudi_index_service.predicate.like import parse_like
from hudi_index_service.read.base_file.file_scan import FileScan
from hudi_index_service.read.base_file.native_condition import native_condition
from hudi_index_service.read.base_file.row_reader import RowReader
from tests.read.file_scans import NAME, footer_of, scan_of

ROWS, GROUP_ROWS, PAGE_ROWS = 6_000, 2_500, 200

Scanned = Callable[[list[str]], FileScan]


def unscaled(precision: int, scale: int, *numbers: int) -> pa.Array:
    kind = pa.decimal128(precision, scale)
    return pa.array([Decimal(number).scaleb(-scale) for number in numbers], kind)


def extremes() -> dict[str, pa.Array]:
    """Values of each type that the row reader compares, the literals among them."""
    reals = [math.nan, -math.inf, -1.5, -0.0, 0.0, 1e-40, 0.1, 1.5, math.inf]
    texts = ["", "a", "a%", "aa", "ab", "b\0", "bab", "é", "z" * 300, "𝄞"]
    moments = [-(2**62), -1, 0, 1, 2**62]
    return {
        "integer": pa.array([-(2**31), -1, 0, 1, 7, 2**31 - 1], pa.int32()),
        "bigint": pa.array([-(2**63), -1, 0, 1, 7, 2**63 - 1], pa.int64()),
        "flag": pa.array([False, True]),
        "date": pa.array([-(2**31), -719_529, 0, 19_000, 2**31 - 1], pa.int32()).cast(pa.date32()),
        "moment": pa.array(moments, pa.timestamp("us", "UTC")),
        "local": pa.array(moments, pa.timestamp("us")),
        "real": pa.array(reals, pa.float32()),
        "double": pa.array(reals, pa.float64()),
        "tiny": unscaled(1, 0, -9, -1, 0, 1, 9),
        "money": unscaled(9, 2, -(10**9 - 1), -1, 0, 1, 10**9 - 1),
        "large": unscaled(18, 4, -(10**18 - 1), -1, 0, 1, 10**18 - 1),
        "text": pa.array(texts, pa.string()),
        "bytes": pa.array([b"", b"\0", b"a", b"\xff", b"\xff\xfe", b"a" * 300], pa.binary()),
    }


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Some of the extremes in each row, and NULL in each tenth."""
    dice = np.random.default_rng(9)
    columns: dict[str, Any] = {"number": np.arange(ROWS)}
    for name, values in extremes().items():
        taken = dice.integers(0, len(values), ROWS)
        columns[name] = values.take(pa.array(taken, mask=dice.random(ROWS) < 0.1))
    return pa.table(columns)


@pytest.fixture(scope="module", params=["dictionary", "plain", "version 2"])
def scanned(table, tmp_path_factory, request) -> Scanned:
    """Scans of the table as a file."""
    folder = tmp_path_factory.mktemp("conditions")
    pq.write_table(
        table,
        folder / "f.parquet",
        compression="gzip",
        row_group_size=GROUP_ROWS,
        max_rows_per_page=PAGE_ROWS,
        write_page_index=True,
        use_dictionary=request.param != "plain",
        data_page_version="2.0" if request.param == "version 2" else "1.0",
    )
    return lambda columns: scan_of(
        folder, pa.schema([table.schema.field(each) for each in columns])
    )


def leaves(name: str, values: pa.Array) -> Iterator[Predicate]:
    """Each operator with each of the values."""
    column = BoundColumn(name, values.type)
    yield IsNull(column)
    for operator in Operator:
        for value in values:
            yield Compare(column, operator, value)
    for some in (values, values[:1], values[1:4]):
        yield In(column, some)
        yield In(column, some, has_null=True)
    if pa.types.is_string(values.type):
        for pattern in (
            "%",
            "",
            "a",
            "a%",
            "%b",
            "%a%",
            "a%b",
            "%a%b%",
            "b%b",
            "a\\%",
            "%é%",
            "%z%z",
        ):
            yield Like(column, pattern, "\\", parse_like(pattern))


@pytest.mark.parametrize("name", extremes())
def test_each_operator_on_each_type_is_as_evaluated(name, table, scanned):
    file_scan = scanned(["number", name])
    path, footer = file_scan.storage.local_path(NAME), footer_of(file_scan)
    for leaf in leaves(name, extremes()[name]):
        for predicate in (leaf, Not(leaf)):
            condition = native_condition(negation_normal_form(predicate), footer.schema)
            assert condition is not None, str(predicate)
            assert condition.is_whole, str(predicate)
            expected = as_truths(evaluate(predicate, table).fill_null(FALSE))
            for rows in (np.arange(ROWS), np.arange(3, ROWS, 41)):
                found = footer.matching(path, rows, condition.condition, ["number"])
                assert found.positions.to_pylist() == rows[expected[rows]].tolist(), str(predicate)
                numbers = [number for each in found.rows for number in each["number"].to_pylist()]
                assert numbers == found.positions.to_pylist()
                counted = footer.count(path, rows, condition.condition)
                assert counted[0] == found.count == len(found.positions), str(predicate)


@pytest.mark.parametrize(
    "where",
    [
        "integer = 7",
        "integer > 0 AND integer < 7 AND money <> 0",
        "text LIKE '%a%' OR double > 1",
        "(text = 'a' OR integer IS NULL) AND (date > DATE'2020-01-01' OR real = 0)",
        "NOT (text <=> 'a' OR integer BETWEEN 0 AND 7)",
        "text RLIKE '^a' AND integer >= 1",
        "text LIKE '_b' OR integer = 1",
        "text LIKE 'a_' AND large IN (0, 1)",
        "text RLIKE '^a' OR integer >= 1",
        "bytes = X'FF' AND tiny = 9",
        "number > 5900 AND text IS NOT NULL",
        "integer = 7 AND integer = 1",
        "TRUE",
        "FALSE",
    ],
)
def test_rows_are_those_of_the_predicate(where, table, scanned):
    predicate = parse_predicate(where, table.schema, time_zone="UTC")
    columns = [*sorted(predicate.columns() - {"number"}), "number"]
    for limit in (None, 10):
        file_scan = replace(scanned(columns), limit=limit)
        found = []
        for row_ids, batch, are_results in file_scan.candidates(negation_normal_form(predicate)):
            assert batch["number"].to_pylist() == list(row_ids)
            left = any(each in where for each in ("RLIKE", "'_b'", "'a_'"))
            assert are_results is not (left or where == "TRUE")
            kept = batch if are_results else keep(predicate, batch)
            found += kept["number"].to_pylist()
        assert found == keep(predicate, table)["number"].to_pylist()
        rows = replace(file_scan, numbered=False).candidates(negation_normal_form(predicate))
        unnumbered = [
            number
            for _, batch, are_results in rows
            for number in (batch if are_results else keep(predicate, batch))["number"].to_pylist()
        ]
        assert unnumbered == found
        counted = 0
        counting = replace(file_scan, output=[], numbered=False)
        for _, batch, are_results in counting.candidates(negation_normal_form(predicate)):
            counted += (batch if are_results else keep(predicate, batch)).num_rows
        assert counted == len(found)


def test_columns_of_the_predicate_alone_are_not_handed_over(table, scanned):
    for where, handed_over in (
        ("integer >= 0 OR text IS NULL", ["number"]),
        ("integer >= 0 OR text RLIKE '^a'", ["number", "integer", "text"]),
        ("integer >= 0 AND text RLIKE '^a'", ["number", "integer", "text"]),
    ):
        predicate = parse_predicate(where, table.schema, time_zone="UTC")
        file_scan = replace(scanned(["number", "integer", "text"]), output=["number"])
        names = {tuple(read.batch.schema.names) for read in file_scan.candidates(predicate)}
        assert names == {tuple(handed_over)}, where


def test_other_columns_are_read_only_where_a_row_matches(table, scanned):
    predicate = parse_predicate("bigint = 7 AND number < 1000", table.schema, time_zone="UTC")
    file_scan = scanned(["bigint", "number", "text"])
    rows = [row for row_ids, *_ in file_scan.candidates(predicate) for row in row_ids]
    assert rows == keep(predicate, table)["number"].to_pylist()
    footer = footer_of(file_scan)
    pages = footer.plan(np.array(rows), ["text"]).page_bytes
    tested = footer.plan(np.arange(1_000), ["bigint", "number"]).page_bytes
    assert file_scan.statistics.bytes_read <= pages + tested
    assert file_scan.statistics.rows_checked == 1_000 - len(rows)


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        (pa.decimal128(9, 2), pa.decimal128(18, 4)),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
        (pa.decimal128(38, 2), pa.decimal128(38, 2)),
        (pa.bool_(), pa.bool_()),
        (pa.int16(), pa.int32()),
        (pa.int32(), pa.int64()),
    ],
)
def test_values_stored_otherwise_are_left_to_the_evaluator(stored, read, tmp_path):
    numbers = [0, 1, None, 1, 0] * 100
    if pa.types.is_decimal(stored):
        values = pa.array([each and Decimal(each) for each in numbers], stored)
    else:
        values = pa.array(numbers, pa.int64()).cast(stored)
    pq.write_table(pa.table({"v": values}), tmp_path / "f.parquet", write_page_index=True)
    file_scan = scan_of(tmp_path, pa.schema([("v", read)]))
    column = BoundColumn("v", read)
    predicate = Compare(column, Operator.EQ, values.cast(read)[1])
    read = list(file_scan.candidates(predicate))
    is_tested = stored in (pa.bool_(), pa.int32())
    assert [each.are_results for each in read] == [is_tested]
    assert sum(each.batch.num_rows for each in read) == (200 if is_tested else 500)
    assert sum(keep(predicate, each.batch).num_rows for each in read) == 200


def test_text_that_is_not_utf8_is_tested_as_bytes(tmp_path):
    texts = [b"fine", b"\xff\xfe", b"other", b"more", b"and more"] * 20_000
    table = pa.table({"number": np.arange(len(texts)), "city": pa.array(texts, pa.binary())})
    city = table["city"].combine_chunks().view(pa.string())  # text, whatever the bytes are
    pq.write_table(
        pa.table([table["number"], city], ["number", "city"]),
        tmp_path / "f.parquet",
        store_schema=False,
        write_page_index=True,
    )
    schema = pa.schema([("number", pa.int64()), ("city", pa.string())])
    file_scan = scan_of(tmp_path, schema)
    predicate = parse_predicate("city = 'other'", schema, time_zone="UTC")
    found = list(file_scan.candidates(predicate))
    assert sum(each.batch.num_rows for each in found) == 20_000
    predicate = parse_predicate("city > 'other'", schema, time_zone="UTC")
    read = list(file_scan.candidates(predicate))
    assert not any(each.are_results for each in read), "Arrow reads the broken texts"
    assert sum(keep(predicate, each.batch).num_rows for each in read) == 20_000
    read = list(replace(file_scan, output=["number"]).candidates(predicate))
    assert all(each.are_results for each in read), "the texts need not be decoded"
    assert sum(each.batch.num_rows for each in read) == 20_000


def test_reading_as_a_narrower_type_is_refused(tmp_path):
    numbers = pa.table({"v": pa.array([0, 1, 2], pa.int64())})
    pq.write_table(numbers, tmp_path / "f.parquet", write_page_index=True)
    file_scan = replace(scan_of(tmp_path, pa.schema([("v", pa.int32())])), output=[])
    predicate = parse_predicate("v = 1", file_scan.columns, time_zone="UTC")
    with pytest.raises(NeedsSpark, match="int64"):
        list(file_scan.candidates(predicate))


def test_candidates_are_tested_before_other_columns_are_read(table, scanned):
    file_scan = scanned(["number", "bigint", "text"])
    footer = footer_of(file_scan)
    reader = RowReader(file_scan.storage, file_scan.base_file, footer, file_scan.columns)
    candidates = np.arange(0, ROWS, 7)
    predicate = parse_predicate("bigint = 7 AND number < 1000", table.schema, time_zone="UTC")
    for output in (["text"], []):
        (read,) = reader.batches(candidates, predicate=predicate, output=output)
        matching = as_truths(evaluate(predicate, table).fill_null(FALSE))
        expected = candidates[matching[candidates]]
        assert list(read.rows) == expected.tolist()
        assert read.are_results
        assert read.count == len(candidates)
        assert all(batch.schema.names == output for batch in read.batches)
        pages = footer.plan(expected, output).pages
        assert read.did.pages <= pages + footer.plan(candidates, ["bigint", "number"]).pages
    (counted,) = reader.batches(candidates, predicate=predicate, output=[], numbered=False)
    assert (counted.found, counted.count) == (len(expected), len(candidates))
    others = parse_predicate("bigint = 7 AND text RLIKE '^a'", table.schema, time_zone="UTC")
    (read,) = reader.batches(candidates, predicate=others, output=["text"])
    assert not read.are_results, "what an index has found is left to the evaluator"
    assert read.found == len(candidates)


def test_counting_reads_no_other_pages_than_testing(table, scanned):
    file_scan = scanned(["number"])
    path, footer = file_scan.storage.local_path(NAME), footer_of(file_scan)
    for where in ("integer = 7", "integer = 7 AND text LIKE '%a%'", "integer = 7 OR double > 1"):
        predicate = parse_predicate(where, table.schema, time_zone="UTC")
        native = native_condition(negation_normal_form(predicate), footer.schema)
        tested = footer.matching(path, range(ROWS), native.condition, [])
        counted = footer.count(path, range(ROWS), native.condition)
        assert counted == (keep(predicate, table).num_rows, tested.stats), where


def test_portions_grow_where_few_rows_match(table, scanned):
    file_scan = scanned(["number"])
    footer = footer_of(file_scan)
    reader = RowReader(file_scan.storage, file_scan.base_file, footer, file_scan.columns)
    predicate = parse_predicate("integer = 7 AND number > 5000", table.schema, time_zone="UTC")
    read = list(reader.batches(range(ROWS), limit=100, predicate=predicate))
    assert [each.count for each in read] == [100, 200, 400, 800, 1_600, 2_900]
    expected = keep(predicate, table)["number"].to_pylist()
    assert [row for each in read for row in each.rows] == expected
