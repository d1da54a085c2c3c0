"""Whatever is wrong with an entry, the answer stays right: the slice is scanned, and EXPLAIN says
so. Anything wrong with the table gives one clear error."""

import json
import logging
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_index_service import open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.errors import (
    ColumnNotFound,
    ConfigInvalid,
    IndexDefinitionInvalid,
    IndexExists,
    IndexNotFound,
    IndexRequired,
    IndexTypeUnknown,
    NotAHudiTable,
    PredicateInvalid,
    RowIdsUnavailable,
    SnapshotChanged,
    StorageFailed,
    StorageUnsupported,
    TableFeatureUnsupported,
    TableNotFound,
)
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.planner import ScanOptions
from hudi_index_service.read.query import Binding
from hudi_index_service.read.scan import Planner, Scan
from hudi_index_service.table import IndexedTable
from tests.golden.recipes.awkward import ROWS, awkward_rows
from tests.hudi_tables import BUCKET_INDEX_NON_BLOCKING, hudi_options, run_compaction, write
from tests.read.conftest import COLUMNS
from tests.read.damage import overwrite, overwrite_keeping_mtime

WHERE = "name = 'plain' AND amount > 100"


@pytest.fixture
def expected(awkward) -> list[str]:
    """The keys of the rows matching `WHERE`, by Spark."""
    return awkward("clustered, partitioned").ids(WHERE)


def keys(table: IndexedTable, where: str = WHERE) -> list[str]:
    """The keys of the matching rows."""
    return sorted(table.scan(where, columns=["id"]).to_arrow().column("id").to_pylist())


def entry_files(path: Path, suffix: str) -> Iterator[Path]:
    """The entries' files with this suffix."""
    return (path / ".hoodie" / ".index" / "lucene").rglob(f"*{suffix}")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"{",
        lambda data: b"",
        lambda data: data.replace(b'"rows": 2', b'"rows": 3'),
        lambda data: data.replace(b'"k', b'"l'),
        lambda data: data[:-20],
        lambda data: data.replace(b"[\n  1,", b"[\n  2,"),
    ],
    ids=["not json", "empty", "other number", "other name", "truncated", "newer format"],
)
def test_a_damaged_manifest_means_a_scan(damage, copied, expected):
    for manifest in entry_files(copied, ".json"):
        manifest.write_bytes(damage(manifest.read_bytes()))
    table = open_table(copied)
    assert keys(table) == expected


def test_a_missing_data_file_means_a_scan(copied, expected):
    for data in entry_files(copied, ".pack"):
        data.unlink()
    table = open_table(copied)
    scan = table.scan(WHERE, columns=["id"])
    assert sorted(scan.to_arrow().column("id").to_pylist()) == expected
    assert scan.statistics.count(Access.SCAN) == 3
    assert "missing" in str(scan.explain())


def test_flipped_bits_are_detected_or_harmless(copied, expected):
    dice = random.Random(20)
    for data in entry_files(copied, ".pack"):
        content = bytearray(data.read_bytes())
        for _ in range(20):
            content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        data.unlink()  # a mapped file is never changed in place
        data.write_bytes(content)
    table = open_table(copied)
    assert keys(table) == expected
    assert table.scan(WHERE).count() == len(expected)
    assert len(table.verify().unrepaired) == 3


@pytest.mark.parametrize("damage", [overwrite, overwrite_keeping_mtime])
def test_a_data_file_overwritten_while_open_means_a_scan(damage, copied, expected):
    table = open_table(copied)
    assert table.scan(WHERE).count() == len(expected)
    for data in entry_files(copied, ".pack"):
        damage(data)
    scan = table.scan(WHERE)
    assert scan.count() == len(expected)
    assert scan.statistics.count(Access.SCAN) == 3
    assert (
        table.scan(WHERE).row_ids() == open_table(copied).scan(WHERE, use_index="never").row_ids()
    )
    assert keys(table) == expected


def test_a_restored_data_file_is_used_again(copied, expected):
    table = open_table(copied)
    assert keys(table) == expected
    for data in entry_files(copied, ".pack"):
        data.write_bytes(data.read_bytes())  # as restoring a backup does
    required = table.scan(WHERE, columns=["id"], use_index="require")
    assert sorted(required.to_arrow().column("id").to_pylist()) == expected


def test_a_base_file_of_another_length_is_not_read_by_index(copied):
    manifest = json.loads(next(entry_files(copied, ".json")).read_bytes())
    path = manifest["base_file"]["path"]
    with (copied / path).open("ab") as file:
        file.write(b"PAR1")
    plan = open_table(copied).scan(WHERE).explain().plan
    reasons = {each.file_slice.name: each.reason for each in plan.slices}
    assert "was built from" in reasons[path]
    assert plan.count(Access.INDEX) == 2


@pytest.mark.parametrize(
    "run",
    [lambda scan: scan.to_arrow(), lambda scan: scan.explain(analyze=True)],
    ids=["to_arrow", "explain analyze"],
)
def test_a_base_file_cleaned_during_the_read_gives_one_clear_error(run, copied):
    table = open_table(copied)
    table.scan(WHERE).count()  # plans, and caches the snapshot
    for path in copied.glob("p*/*.parquet"):
        path.unlink()
    with pytest.raises((SnapshotChanged, TableFeatureUnsupported)) as raised:
        run(table.scan(WHERE))
    assert raised.value.code in ("SNAPSHOT_CHANGED", "TABLE_FEATURE_UNSUPPORTED", "NEEDS_SPARK")
    assert raised.value.remedy


def test_the_index_can_be_avoided_required_or_switched_off(copied, expected):
    table = open_table(copied)
    never = table.scan(WHERE, columns=["id"], use_index="never")
    assert never.explain().uses_index is False
    assert sorted(never.to_arrow().column("id").to_pylist()) == expected
    off = open_table(copied, settings=Settings(read=ReadSettings(enabled=False)))
    assert "the settings switch indexes off (read.enabled=false)" in str(off.scan(WHERE).explain())
    assert keys(off) == expected
    with pytest.raises(IndexRequired):
        off.scan(WHERE, use_index="require").to_arrow()
    with pytest.raises(IndexRequired, match="no index narrows"):
        table.scan("id = '1'", use_index="require").count()
    with pytest.raises(ConfigInvalid):
        table.scan(WHERE, use_index="sometimes")


def test_a_damaged_required_index_is_an_error(copied):
    for data in entry_files(copied, ".pack"):
        content = data.read_bytes()
        data.unlink()  # a mapped file is never changed in place
        data.write_bytes(bytes(len(content)))
    table = open_table(copied)
    required = table.scan(WHERE, use_index="require")
    assert required.explain().uses_index  # the damage shows only when the entry is opened
    for run in (
        lambda: required.to_arrow(),
        lambda: list(required.to_batches()),
        lambda: required.count(),
        lambda: required.exists(),
        lambda: required.row_ids(),
    ):
        with pytest.raises(IndexRequired, match=r"cannot be read through an index: .*damaged"):
            run()
    assert table.scan(WHERE).count() > 0


def test_a_required_index_reads_pages_at_any_cost(copied):
    table = open_table(copied)
    where = "amount >= 0 OR amount < 0"  # nearly every row
    cheapest, required = table.scan(where), table.scan(where, use_index="require")
    assert cheapest.to_arrow().num_rows == required.to_arrow().num_rows
    assert cheapest.statistics.count(Access.SCAN) == 3
    assert required.statistics.count(Access.INDEX) == 3


def test_a_table_property_switches_the_index_off(copied, expected):
    with (copied / ".hoodie" / "hoodie.properties").open("a") as file:
        file.write("\nhoodie.index.read.enabled=false\n")
    table = open_table(copied)
    plan = table.scan(WHERE).explain().plan
    assert {(each.access, each.rule) for each in plan.slices} == {
        (Access.SCAN, "index_switched_off")
    }
    assert "hoodie.index.read.enabled=false" in plan.slices[0].reason
    assert keys(table) == expected


def test_a_disabled_index_serves_no_reader_until_it_is_enabled(copied, expected):
    reader, owner = open_table(copied), open_table(copied)
    used = reader.scan(WHERE).explain().plan
    assert used.uses_index

    owner.disable()
    owner.disable()  # changes nothing

    assert reader.is_disabled
    plan = reader.scan(WHERE).explain().plan
    assert {(each.access, each.rule) for each in plan.slices} == {
        (Access.SCAN, "index_switched_off")
    }
    assert "hudi-index disable" in plan.slices[0].reason
    assert keys(reader) == expected
    with pytest.raises(IndexRequired):
        reader.scan(WHERE, use_index="require").count()

    owner.enable()
    assert reader.scan(WHERE, use_index="require").explain().plan is not None
    assert keys(reader) == expected
    names = sorted(each.name for each in copied.rglob("reading-switch-*"))
    assert names == ["reading-switch-0001.json", "reading-switch-0002.json"]


def test_a_damaged_switch_disables(copied, expected):
    table = open_table(copied)
    table.disable()
    (switch,) = copied.rglob("reading-switch-0001.json")
    switch.write_bytes(b"{")
    assert table.is_disabled
    assert keys(table) == expected
    table.enable()
    assert not table.is_disabled


def test_literals_stay_out_of_the_log(copied, caplog):
    caplog.set_level(logging.INFO)
    where = "name = 'plain' AND amount < 98765432"
    assert open_table(copied).scan(where).count() > 0
    next(entry_files(copied, ".pack")).unlink()
    assert open_table(copied).scan(where).count() > 0

    assert "Query on amount, name: " in caplog.text
    assert "is scanned: " in caplog.text
    assert "plain" not in caplog.text
    assert "98765432" not in caplog.text


def test_too_many_predicates_mean_a_scan(copied):
    where = " OR ".join(f"amount = {number}" for number in range(11))
    plan = open_table(copied).scan(where).explain().plan
    assert {each.rule for each in plan.slices} == {"too_many_predicates"}


def test_log_only_file_groups_need_spark(spark, tmp_path):
    path = tmp_path / "log_only"
    options = hudi_options(
        "log_only", "MERGE_ON_READ", partition_column="part", **BUCKET_INDEX_NON_BLOCKING
    )
    write(awkward_rows(spark, 0, 50), path, options)
    with pytest.raises(TableFeatureUnsupported) as raised:
        open_table(path).scan("name = 'plain'").to_arrow()
    assert raised.value.code == "NEEDS_SPARK"
    assert "spark=" in raised.value.remedy
    scan = open_table(path, spark=spark).scan("name = 'plain'", columns=["id", "name"])
    by_spark = spark.read.format("hudi").load(str(path)).where("name = 'plain'")
    expected = sorted(row["id"] for row in by_spark.collect())
    assert sorted(scan.to_arrow().column("id").to_pylist()) == expected
    assert scan.count() == len(expected) > 0
    assert scan.explain().reader == scan.explain(analyze=True).reader == "spark"
    with pytest.raises(RowIdsUnavailable):
        scan.row_ids()


def test_invalid_tables_columns_and_arguments_are_refused(copied, tmp_path):
    with pytest.raises(TableNotFound):
        open_table(tmp_path / "nothing")
    with pytest.raises(NotAHudiTable):
        open_table(tmp_path)
    with pytest.raises(StorageUnsupported):
        open_table("oss://bucket/table")
    table = open_table(copied)
    for call, error in [
        (lambda: table.create_index("all_columns", ["name"]), IndexExists),
        (lambda: table.create_index("other", ["nme"]), ColumnNotFound),
        (lambda: table.create_index("other", ["name"], using="nothing"), IndexTypeUnknown),
        (lambda: table.create_index("other", []), IndexDefinitionInvalid),
        (lambda: table.create_index("other", ["name", "NAME"]), IndexDefinitionInvalid),
        (lambda: table.create_index("../other", ["name"]), IndexDefinitionInvalid),
        (lambda: table.scan("nme = 'x'"), ColumnNotFound),
        (lambda: table.scan(columns=["nme"]), ColumnNotFound),
        (lambda: table.scan(limit=-1), ConfigInvalid),
        (lambda: table.build(strategy="some"), ConfigInvalid),
        # Values that are not text, or half a surrogate pair.
        (lambda: table.create_index(3, ["name"]), IndexDefinitionInvalid),
        (lambda: table.create_index("other", [3]), ColumnNotFound),
        (lambda: table.create_index("other", "name"), ConfigInvalid),
        (lambda: table.create_index("other", ["\ud800"]), ColumnNotFound),
        (lambda: table.create_index("other", ["name"], using=[3]), IndexTypeUnknown),
        (lambda: table.alter_index("all_columns", drop=[3]), ColumnNotFound),
        (lambda: table.drop_index([]), IndexNotFound),
        (lambda: table.scan(5), PredicateInvalid),
        (lambda: table.scan(columns=[3]), ColumnNotFound),
        (lambda: table.scan(columns="name"), ConfigInvalid),
        (lambda: table.scan(columns=["\ud800"]), ColumnNotFound),
        (lambda: table.scan(as_of=3), ConfigInvalid),
        (lambda: table.scan(limit="3"), ConfigInvalid),
        (lambda: table.search(None, "x"), ColumnNotFound),
        (lambda: table.search("msg", None), ConfigInvalid),
        (lambda: table.tag_location("key"), ConfigInvalid),
        (lambda: table.tag_location([3]), ConfigInvalid),
        (lambda: table.build(partitions=[3]), ConfigInvalid),
    ]:
        with pytest.raises(error) as raised:
            call()
        assert raised.value.code
        assert raised.value.remedy
    assert [each.name for each in table.indexes()] == ["all_columns"]
    again = table.create_index("all_columns", ["name"], if_not_exists=True)
    assert len(again.columns) == len(COLUMNS)


def test_a_base_file_cleaned_after_planning_means_a_new_plan(spark, copied):
    table = open_table(copied)
    queries = table._queries
    binding = Binding(WHERE, ["id"], "UTC")
    query, before = queries.planner.plan(binding, ScanOptions())
    plans = [before]  # made before the files were deleted
    options = hudi_options(
        "clustered", partition_column="part", **{"hoodie.clean.commits.retained": "1"}
    )
    for version in (
        1,
        2,
        3,
    ):  # rewrites every base file until Hudi's cleaner deletes the planned ones
        write(awkward_rows(spark, 0, ROWS, version), copied, options)
    gone = [s.file_slice.name for s in before.slices if not (copied / s.file_slice.name).exists()]
    assert gone
    bindings = []

    def plan(binding):
        bindings.append(binding)
        if plans:
            return Execution(plans.pop(), queries.slice_reader(query, before))
        now, present = queries.planner.plan(binding, ScanOptions())
        return Execution(present, queries.slice_reader(now, present))

    planner = Planner(table.schema, plan, None, pytest.fail, queries.planner.turn)
    found = Scan(binding, planner, limit=None).to_arrow()
    assert len(bindings) == 2
    rows = spark.read.format("hudi").load(str(copied)).where(WHERE).select("id").collect()
    assert sorted(found.column("id").to_pylist()) == sorted(row["id"] for row in rows)


def test_partitions_sharing_file_ids_have_separate_entries(spark, tmp_path):
    path = tmp_path / "shared_ids"
    options = hudi_options(
        "shared_ids", "MERGE_ON_READ", partition_column="part", **BUCKET_INDEX_NON_BLOCKING
    )
    write(awkward_rows(spark, 0, 60), path, options)
    run_compaction(spark, path)
    table = open_table(path)
    table.create_index("by_name", ["name", "amount"])
    build = table.build(strategy="all").raise_for_failures()
    base_files = [due.base_file for due in build.due]
    assert len({(file.file_id, file.instant) for file in base_files}) < len(base_files)
    scan = table.scan("name = 'plain' OR amount = 33", columns=["id"], use_index="require")
    rows = spark.read.format("hudi").load(str(path)).where("name = 'plain' OR amount = 33")
    expected = sorted(row["id"] for row in rows.select("id").collect())
    assert sorted(scan.to_arrow().column("id").to_pylist()) == expected
    assert expected


def test_the_error_names_a_damaged_base_file(copied):
    table = open_table(copied)
    plan = table.scan(WHERE, use_index="never").explain().plan
    path = copied / plan.slices[0].file_slice.name
    content = bytearray(path.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for start, end in ((4, footer), (footer, len(content) - 8)):  # the pages; the metadata
        damaged = bytearray(content)
        damaged[start:end] = b"\xff" * (end - start)
        path.write_bytes(damaged)
        with pytest.raises(StorageFailed, match=path.name):
            table.scan(WHERE, use_index="never").to_arrow()
