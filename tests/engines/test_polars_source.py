"""A table as a LazyFrame: what Polars reads of it, and when."""

import shutil
from inspect import signature

import polars as pl
import pytest
from polars.io.plugins import register_io_source

from hudi_index_service import explain_hudi, open_table, scan_hudi
from hudi_index_service.errors import ConfigInvalid, IndexServiceError
from hudi_index_service.read import scan as scan_module
from tests.read.by_pages import BY_PAGES

TABLES = ["nested_types", "awkward_with_logs_partitioned", "null_partitions", "wall_clock_times"]
FAILURES = (IndexServiceError, pl.exceptions.ComputeError)
"""A failure of a source: as it is, or before Polars 2 with its text."""

PRESENT = pl.col("amount") < 300


@pytest.mark.parametrize("name", TABLES)
def test_a_frame_has_the_rows_and_types_of_a_scan(name, golden, tmp_path):
    with open_table(golden(name).put(tmp_path)) as table:
        frame = scan_hudi(table)
        expected = pl.DataFrame(table.scan().to_arrow())
        key = expected.columns[1]  # the commit's number of the row
        assert frame.collect_schema() == expected.schema
        assert frame.collect().sort(key).equals(expected.sort(key))


def test_a_table_is_named_by_its_location(path):
    assert scan_hudi(str(path)).select(pl.len()).collect().item() == 600
    assert scan_hudi(path).filter(PRESENT & ~PRESENT).collect().shape == (0, 23)


def test_the_index_gets_the_filter_and_only_needed_columns_are_read(path):
    with open_table(path, settings=BY_PAGES) as table:
        [explained] = explain_hudi(table, lambda rows: rows.filter(amount=300).select("id"))
        assert explained.where == "`amount` = 300L"
        assert explained.uses_index
        [explained] = explain_hudi(table, lambda rows: rows.filter(pl.col("amount") % 7 == 1))
        assert explained.where is None
        [explained] = explain_hudi(
            table, lambda rows: rows.filter(pl.col("amount") % 7 == 1, PRESENT).group_by("id").len()
        )
        assert explained.where == "`amount` < 300L"


def test_a_condition_with_an_unknown_part_is_narrowed_by_the_rest(table):
    unknown = pl.col("name").str.to_uppercase() == "PLAIN"
    for query, where in (
        (unknown | PRESENT, None),
        (~(unknown & PRESENT), None),
        (~unknown & PRESENT, "`amount` < 300L"),
        (~(pl.col("amount").is_in([3, None])), None),
        (pl.col("amount").is_in([3, None]), "`amount` IN (3L)"),
        (pl.col("name").is_in(pl.lit(pl.Series(["plain"])).implode()), "`name` IN ('plain')"),
        (pl.col("msg").str.contains("%_!", literal=True), "`msg` LIKE '%!%!_!!%' ESCAPE '!'"),
    ):
        [explained] = explain_hudi(table, lambda rows, query=query: rows.filter(query))
        assert explained.where == where, str(query)


def test_words_inside_texts_are_found_by_lucene(golden_index):
    with open_table(golden_index("awkward_clustered", ["msg"]), settings=BY_PAGES) as table:
        frame = scan_hudi(table, use_index="require")
        query = frame.filter(pl.col("msg").str.contains("car 3", literal=True)).select("id", "msg")
        expected = table.scan("msg LIKE '%car 3%'", columns=["id", "msg"]).to_arrow()
        assert query.collect().sort("id").equals(pl.DataFrame(expected).sort("id"))
        with pytest.raises(FAILURES, match="INDEX_REQUIRED"):
            frame.filter(pl.col("msg").str.len_chars() > 3).collect()


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_the_first_rows_are_taken_before_or_after_the_filter(engine, table):
    frame = scan_hudi(table).select("id", "amount")
    assert frame.head(7).collect(engine=engine).height == 7
    assert frame.filter(PRESENT).head(7).collect(engine=engine).filter(PRESENT).height == 7
    first = frame.head(200).filter(PRESENT).collect(engine=engine)
    assert 0 < first.height < frame.filter(PRESENT).collect().height
    assert frame.head(0).filter(PRESENT).collect(engine=engine).height == 0
    assert frame.slice(590, 20).collect(engine=engine).height == 10


def test_queries_count_join_and_aggregate(table, plain):
    ours, rows = scan_hudi(table), pl.scan_parquet(plain)
    for query in (
        lambda rows: rows.select(pl.len()),
        lambda rows: rows.filter(PRESENT).select(pl.len()),
        lambda rows: rows.group_by("part").agg(pl.col("amount").sum()).sort("part"),
        lambda rows: rows.join(rows.filter(PRESENT), on="id").select("id", "cost").sort("id"),
        lambda rows: rows.with_columns(pl.col("place").struct.field("zip")).select("zip").sum(),
        lambda rows: rows.sql("SELECT id FROM self WHERE msg LIKE 'Buying%' ORDER BY id LIMIT 9"),
    ):
        assert query(ours).collect().equals(query(rows).collect())


def test_a_pinned_table_is_read_once_for_both_sides_of_a_join(table):
    def joined(rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows.select("id", "msg").join(rows.select("id", "msg"), on="id")

    instant = table.hudi_table.completed_instants()[-1].requested
    assert len(explain_hudi(table, joined)) == 2
    assert len(explain_hudi(table, joined, as_of=instant)) == 1


def test_a_frame_of_an_instant_stays_as_it_was(golden, tmp_path):
    table = open_table(golden("awkward_half_clustered").put(tmp_path, "clustered"))
    instant = table.hudi_table.completed_instants()[-1].requested
    pinned, latest = scan_hudi(table, as_of=instant), scan_hudi(table)
    golden("awkward_half_clustered").put(tmp_path)
    assert pinned.filter(pl.col("ts") == 1).collect().height == 0
    assert latest.filter(pl.col("ts") == 1).collect().height > 0


def test_a_column_that_has_changed_its_type_is_no_wrong_answer(golden, tmp_path):
    name = "columns_added_and_widened"
    table = open_table(golden(name).put(tmp_path, golden(name).steps[0]))
    frame, before = scan_hudi(table), table.schema()
    golden(name).put(tmp_path)
    after = table.schema()
    widened, *_ = [each.name for each in before if after.field(each.name).type != each.type]
    assert frame.select("id").collect().height > 0
    with pytest.raises(FAILURES, match=f"SNAPSHOT_CHANGED.*{widened}"):
        frame.select(widened).collect()
    with pytest.raises(FAILURES, match=f"SNAPSHOT_CHANGED.*{widened}"):
        frame.filter(pl.col(widened) == 1).select("id").collect()


def test_a_file_that_is_gone_fails_the_query(path, tmp_path):
    copy = shutil.copytree(path, tmp_path / "table")
    frame = scan_hudi(copy)
    for file in copy.rglob("*.parquet"):
        file.write_bytes(b"PAR1")
    with pytest.raises(FAILURES, match="STORAGE_FAILED"):
        frame.collect()


def test_polars_plan_names_the_table(table):
    plan = scan_hudi(table).filter(PRESENT).explain()
    if "explain_name" in signature(register_io_source).parameters:
        assert "PYTHON[HUDI] SCAN" in plan
        assert table.uri in plan
    assert 'col("amount")' in plan


def test_bad_arguments_and_a_missing_polars(table, monkeypatch):
    with pytest.raises(ConfigInvalid, match="use_index"):
        scan_hudi(table, use_index="sometimes")
    monkeypatch.setattr(scan_module, "find_spec", lambda name: None)
    with pytest.raises(ConfigInvalid, match="polars is not installed") as raised:
        scan_hudi(table)
    assert raised.value.remedy == "Install it: pip install 'hudi-index-service[polars]'."
