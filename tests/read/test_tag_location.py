"""Locations of record keys: as in Spark's meta columns, and as Hudi's own look-up finds them."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import ReadSettings, Settings
from hudi_index_service.errors import ConfigInvalid, TableFeatureUnsupported
from hudi_index_service.hudi.spark import collected
from hudi_index_service.optimizer.plan import Access
from tests.hudi_tables import (
    BUCKET_INDEX_NON_BLOCKING,
    NO_METADATA_TABLE,
    as_if_changed_on_read,
    hudi_options,
    numbered_rows,
    read_rows,
    run_compaction,
    write,
)
from tests.indexed import indexed
from tests.read.by_pages import BY_PAGES
from tests.read.key_locations import Location, by_spark, locations, search
from tests.read.spark_jobs import jobs_so_far, last_stage, rows_shuffled_since
from tests.same_rows import assert_same_rows


@pytest.fixture(scope="module")
def path(golden, tmp_path_factory) -> Path:
    """Two partitions with two base files each, the older ones indexed by key; the keys 3000 to
    3009 are in both partitions."""
    keys = golden("keys_in_four_base_files")
    path = keys.put(tmp_path_factory.mktemp("keys"), "written")
    indexed(path, ["_hoodie_record_key"], name="by_key")
    return keys.put(path)


@pytest.fixture
def table(path) -> Iterator[IndexedTable]:
    """The table."""
    with open_table(path, settings=BY_PAGES) as opened:
        yield opened


def assert_row_ids_match_the_keys(path: Path, answer: pa.Table, key: str) -> None:
    """Reads the key at each row id from its base file."""
    for row in answer.to_pylist():
        if row["row_id"] is not None:
            name = f"{row['file_id']}_*_{row['instant']}.parquet"
            (file,) = (path / row["partition"]).glob(name)
            keys = pq.ParquetFile(file).read(columns=[key]).column(key)
            assert keys[row["row_id"]].as_py() == row["record_key"]


@pytest.fixture
def located(golden) -> dict[tuple[str, str], Location]:
    """Where the table's keys are, by Spark."""
    return by_spark(golden("keys_in_four_base_files").rows())


def test_keys_are_where_spark_shows_them(located, path, table):
    everywhere: dict[str, list[Location]] = {}
    for (_, key), location in sorted(located.items()):
        everywhere.setdefault(key, []).append(location)
    assert len(everywhere["3005"]) == 2
    nowhere = [(None, None, None)]
    for keys in (
        ["17", "4000", "nobody", "2999", "17", "3005", ""],
        [str(number) for number in range(-50, 6000, 7)],
    ):
        answer = table.tag_location(keys)
        assert locations(answer) == [
            (key, location) for key in keys for location in everywhere.get(key, nowhere)
        ]
        assert answer.column("row_id").null_count == answer.column("file_id").null_count
        assert_row_ids_match_the_keys(path, answer.slice(0, 40), "_hoodie_record_key")
        without = open_table(path, settings=Settings(read=ReadSettings(enabled=False)))
        assert without.tag_location(keys).equals(answer)
    assert table.tag_location([]).num_rows == 0


def test_a_key_with_a_partition_is_looked_up_only_there(located, table):
    pairs = [
        ("2026-01-02", "3005"),
        ("2026-01-01", "3005"),
        ("2026-01-01", "2"),
        ("2026-01-02", "2"),  # even numbers are in the other partition
        ("2026-01-01", "nobody"),
        ("nowhere", "2"),
    ]
    absent = [(key, located.get((day, key), (day, None, None))) for day, key in pairs]
    assert locations(table.tag_location(pairs)) == absent
    named = {
        "_hoodie_record_key": pa.array([key for _, key in pairs]).dictionary_encode(),
        "_hoodie_partition_path": pa.array([day for day, _ in pairs], pa.large_string()),
    }
    assert locations(table.tag_location(pa.table(named))) == absent
    unknown = pa.table({"record_key": [None, "2"], "partition": ["2026-01-01", None]})
    assert table.tag_location(unknown).column("file_id").null_count == 2


def sorted_rows(answer: pa.Table) -> list[str]:
    """The rows, sorted."""
    return sorted(repr(row) for row in answer.to_pylist())


def test_many_keys_take_one_spark_job(spark, path, table):
    keys = [str(number) for number in range(100_000)]
    expected = table.tag_location(keys)
    assert expected.num_rows - expected.column("file_id").null_count == 3000 + 1000 + 20
    before = jobs_so_far(spark)
    answer = table.tag_location(keys, spark=spark)
    assert jobs_so_far(spark) - before == 1
    assert answer.equals(expected)
    pairs = pa.table({"record_key": ["2", "2"], "partition": ["2026-01-01", "2026-01-02"]})
    assert table.tag_location(pairs, spark=spark).equals(table.tag_location(pairs))


@pytest.fixture(params=["by each task", "by groups"])
def small_or_large(request, monkeypatch) -> str:
    """How the keys of a DataFrame are located."""
    if request.param == "by groups":
        monkeypatch.setattr("hudi_index_service.optimizer.decide.ROWS_PER_TASK", 0)
    return str(request.param)


def test_keys_from_a_dataframe(spark, located, table, small_or_large):
    # Half of them are above the maximum key of each base file.
    keys = [str(number) if number < 50_000 else f"x{number}" for number in range(100_000)]
    requested = spark.range(0, 100_000, 1, 2).selectExpr(
        "concat(if(id < 50000, '', 'x'), id) AS record_key"
    )
    expected = table.tag_location(keys)
    spark.conf.set("spark.sql.adaptive.enabled", "false")  # with it, each shuffle counts as a job
    try:
        before, stage = jobs_so_far(spark), last_stage(spark)
        answer = collected(table.tag_location(requested))
        assert jobs_so_far(spark) - before == 1
        shuffled = rows_shuffled_since(spark, stage)
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    assert sorted_rows(answer) == sorted_rows(expected)
    # Shuffled are the keys once, the matches, and each key to the base files that may hold it: with
    # an index, only if it is within their minimum and maximum keys.
    first, *_ = table.hudi_table.completed_instants()
    of_file: dict[str | None, list[str]] = {}
    for (_, key), (_, file_id, instant) in located.items():
        if instant == first.requested:
            of_file.setdefault(file_id, []).append(key)
    ends = [(min(keys), max(keys)) for keys in of_file.values()]
    sent = sum(low <= key <= high for low, high in ends for key in keys)
    without_index = 2 * 100_000
    assert sent < 100_000
    by_groups = 100_000 + 4020 + sent + without_index
    assert shuffled == (by_groups if small_or_large == "by groups" else 100_000)
    several = ["17", None, "nobody", "3005", "17", None, "nobody", "2"]
    repeated = spark.createDataFrame([(key,) for key in several], "record_key string").coalesce(1)
    assert sorted_rows(collected(table.tag_location(repeated))) == sorted_rows(
        table.tag_location(pa.table({"record_key": several}))
    )
    assert collected(table.tag_location(requested.limit(0))).num_rows == 0
    few = [
        ("2026-01-01", "2"),
        ("2026-01-02", "2"),
        ("2026-01-02", "3005"),
        ("none", "1"),
        (None, "1"),
        ("2026-01-01", None),
        ("2026-01-02", "3005"),
    ]
    named = "_hoodie_partition_path string, _hoodie_record_key string"
    by_partition = table.tag_location(spark.createDataFrame(few, named))
    assert sorted_rows(collected(by_partition)) == sorted_rows(
        table.tag_location(
            pa.table([*map(pa.array, zip(*few, strict=True))], ["partition", "record_key"])
        )
    )
    with pytest.raises(ConfigInvalid, match="no column record_key"):
        table.tag_location(requested.withColumnRenamed("record_key", "key"))


def test_tables_that_need_spark_give_no_row_ids(spark, path, tmp_path):
    copy = shutil.copytree(path, tmp_path / "table")
    as_if_changed_on_read(copy)
    keys = ["17", "nobody", "3005", "4001"]
    with pytest.raises(TableFeatureUnsupported):
        open_table(copy).tag_location(keys)
    answer = open_table(copy, spark=spark).tag_location(keys)
    assert locations(answer) == locations(open_table(path).tag_location(keys))
    assert answer.column("row_id").null_count == answer.num_rows == 5
    requested = spark.createDataFrame([(key,) for key in keys], "record_key string")
    frame = open_table(copy).tag_location(requested)
    assert sorted_rows(collected(frame)) == sorted_rows(answer)


def test_a_key_index_avoids_reading_other_pages(table):
    answer, read = search(table, ["17", "18", "nobody"])
    assert answer.column("file_id").null_count == 1
    by_access = {each.slice_name: each for each in read.slices}
    assert [each.access for each in by_access.values()].count(Access.INDEX) == 2
    for each in by_access.values():
        if each.access is Access.INDEX:
            assert (each.keys, each.candidates, each.pages) == (1, 1, 1)
        else:  # no index, but Hudi's Bloom filter
            assert each.bytes_read == 0
            assert each.note == "its Bloom filter has none of the keys"


def test_keys_outside_the_key_range_are_not_looked_up(table):
    answer, read = search(table, ["nobody", "!", "😀"])
    assert answer.column("file_id").null_count == 3
    assert read.count(Access.SKIP) == 2
    for each in read.slices:
        assert (each.keys or 0, each.candidates) == (0 if each.access is Access.SKIP else 3, None)


def test_many_keys_are_found_by_a_scan(table):
    _, read = search(table, [str(number) for number in range(1000)])
    assert read.count(Access.INDEX) == 0
    assert read.pages == 0


def test_keys_with_log_files_are_located_as_by_hudi(spark, tmp_path):
    path = tmp_path / "logs"
    options = hudi_options(
        "logs", "MERGE_ON_READ", partition_column="dt", **BUCKET_INDEX_NON_BLOCKING
    )
    write(numbered_rows(spark, 0, 40), path, options)
    run_compaction(spark, path)
    before = by_spark(collected(read_rows(spark, path)))
    table = indexed(path, ["id"])
    # In log files: 30 to 39 change, 40 to 49 are new, 0 to 9 are deleted, 1 moves to the other day.
    write(numbered_rows(spark, 30, 50, version=1), path, options)
    write(numbered_rows(spark, 0, 10, version=2), path, options, "delete")
    moved = numbered_rows(spark, 1, 2, version=3).replace("2026-01-02", "2026-01-01", "dt")
    write(moved, path, options)

    keys = [str(number) for number in range(60)]
    answer = table.tag_location(keys)
    frame = spark.createDataFrame([(key,) for key in keys], "record_key string")
    assert sorted_rows(collected(table.tag_location(frame))) == sorted_rows(answer)
    assert_row_ids_match_the_keys(path, answer, "_hoodie_record_key")
    found = {row["record_key"]: row for row in answer.to_pylist()}
    assert len(found) == answer.num_rows
    in_base_files = {key: location for (_, key), location in before.items()}
    for key, location in locations(answer):
        if int(key) in range(40) and key != "1":
            assert (
                location == in_base_files[key]
            )  # a deleted key's next version is written there, too
        assert (found[key]["row_id"] is not None) == (int(key) in range(40) and key != "1")
        assert (location[1] is not None) == (int(key) < 50)
    assert found["1"]["partition"] == "2026-01-01"
    # Given its old partition, the moved row is found where Hudi would look for it.
    pairs = [("2026-01-02", "1"), ("2026-01-01", "1")]
    both = table.tag_location(pairs).to_pylist()
    assert [row["row_id"] is not None for row in both] == [True, False]
    # Hudi's own look-up finds the keys in base files at the same locations.
    requested = [(day, str(n)) for n in range(60) for day in ("2026-01-01", "2026-01-02")]
    ours = table.tag_location(requested).to_pylist()
    hudis = hudi_locations(spark, path, requested)
    assert sum(each is not None for each in hudis) == 40
    for row, location in zip(ours, hudis, strict=True):
        if row["row_id"] is not None or location is not None:
            assert (row["partition"], row["file_id"]) == location


def hudi_locations(
    spark: SparkSession, path: Path, keys: list[tuple[str, str]]
) -> list[tuple[str, str] | None]:
    """Partition and file id of each key by Hudi's Bloom index, which looks at base files."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    java = spark.sparkContext._jsc
    context = jvm.org.apache.hudi.client.common.HoodieSparkEngineContext(java)
    client = jvm.org.apache.hudi.client.HoodieReadClient(context, str(path))
    listed = jvm.java.util.ArrayList()
    for partition, key in keys:
        listed.add(jvm.org.apache.hudi.common.model.HoodieKey(key, partition))
    found = {}
    for pair in client.checkExists(java.parallelize(listed, 1)).collect():
        key, location = pair._1(), pair._2()
        if location.isPresent():
            where = location.get()
            found[key.getPartitionPath(), key.getRecordKey()] = (where.getLeft(), where.getRight())
    return [found.get(key) for key in keys]


@pytest.mark.parametrize("name", ["keys_of_two_columns", "keys_of_two_columns_not_stored"])
def test_keys_of_several_columns(name, golden, tmp_path):
    path = golden(name).put(tmp_path)
    table = indexed(path, ["id", "number"], settings=BY_PAGES)

    keys = ["id:k7,number:7", "id:__empty__,number:20", "id:k7,number:8", "k7", "id:k7,number:07"]
    answer, read = search(table, keys[:3])
    assert answer.column("row_id").is_valid().to_pylist() == [True, True, False]
    assert read.count(Access.INDEX) == 1
    (file,) = path.glob("*.parquet")
    numbers = pq.ParquetFile(file).read(columns=["number"]).column("number")
    assert [numbers[row].as_py() for row in answer.column("row_id").to_pylist()[:2]] == [7, 20]
    assert table.tag_location(keys).column("row_id").null_count == 3
    # Such a key can be parsed in two ways.
    odd, read = search(table, ["id:a,number:31,number:31", "id:k7,number:7"])
    assert odd.column("row_id").null_count == 0
    assert read.count(Access.INDEX) == 0


def test_virtual_keys_of_one_column(spark, tmp_path):
    path = tmp_path / "table"
    virtual = {**NO_METADATA_TABLE, "hoodie.populate.meta.fields": "false"}
    rows = spark.range(0, 400).selectExpr("id", "1L AS ts", "concat('p', id % 2) AS part")
    options = hudi_options("t", partition_column="part", **virtual)
    write(rows, path, options, "bulk_insert")
    table = open_table(path, settings=BY_PAGES)
    requested = ["7", "399", "400", "07", "nobody"]
    scanned, read = search(table, requested)
    assert scanned.column("row_id").is_valid().to_pylist() == [True, True, False, False, False]
    assert {each.note for each in read.slices} == {""}  # Hudi wrote no Bloom filter
    indexed(table, ["id"])
    answer, read = search(table, requested)
    assert read.count(Access.SCAN) == 0
    # The segments know which base file holds 7 and which 399; none of p0 holds either.
    assert [each.keys for each in read.slices] == [None, None, 1, 1]
    assert read.count(Access.SKIP) == 2
    assert answer.equals(scanned)
    keys = spark.createDataFrame([(key,) for key in requested], "record_key string")
    assert sorted_rows(collected(table.tag_location(keys))) == sorted_rows(answer)
    # Scans do not need the meta columns either.
    scan = table.scan("id < 3 OR id = 399", columns=["id", "part"])
    assert sorted(scan.to_arrow()["id"].to_pylist()) == [0, 1, 2, 399]
    assert_same_rows(collected(scan.to_spark(spark)), scan.to_arrow())


def test_virtual_keys_with_several_text_forms_are_refused(golden, tmp_path):
    path = golden("days_as_keys_not_stored").put(tmp_path)
    with pytest.raises(TableFeatureUnsupported, match="column id of type date32"):
        open_table(path).tag_location(["2026-01-01"])


def test_locate_on_the_command_line(path, table, command):
    def locate(*arguments):
        printed = command("locate", path, *arguments, "-o", "json")
        return [json.loads(line) for line in printed.splitlines()]

    assert locate("17", "nobody") == table.tag_location(["17", "nobody"]).to_pylist()
    pair = ("2026-01-01", "3005")
    assert locate(pair[1], "--partition", pair[0]) == table.tag_location([pair]).to_pylist()


@pytest.mark.parametrize(
    "keys",
    [
        [1, 2],
        ["a", ("p", "a")],
        [("p", "a", "b")],
        pa.table({"key": ["a"]}),
        pa.table({"record_key": [1]}),
    ],
    ids=["numbers", "some pairs", "triples", "another column", "a column of numbers"],
)
def test_invalid_keys_are_refused(keys, table):
    with pytest.raises(ConfigInvalid) as raised:
        table.tag_location(keys)
    assert "record keys" in raised.value.remedy


@pytest.mark.parametrize("column", ["_hoodie_record_key", "id"])
def test_keys_are_looked_for_in_the_base_files_that_hold_them(golden, many, tmp_path, column):
    path = Path(shutil.copytree(many, tmp_path / "table"))
    if column != "_hoodie_record_key":  # the table's key column
        with open_table(path) as table:
            table.drop_index("by_key", purge=True)
            indexed(table, [column])
    truth = by_spark(golden("hundred_base_files").rows())
    places = {key: place for (_, key), place in truth.items()}
    requested = [*sorted(places)[::37], "nobody", f"{column}:7", *sorted(places)[:2]]
    with open_table(path, settings=BY_PAGES) as table:
        answer, statistics = search(table, requested)
        assert locations(answer) == [
            (key, places.get(key, (None, None, None))) for key in requested
        ]
        holding = {places[key] for key in requested if key in places}
        looked_into = len(statistics.slices) - statistics.count(Access.SKIP)
        assert len(holding) <= looked_into < 2 * len(holding), "ranges of keys hardly overlap"
        in_partitions = [(places[key][0] or "", key) for key in requested if key in places]
        assert table.tag_location(in_partitions).equals(
            answer.filter(pa.compute.is_valid(answer.column("file_id")))
        )


def test_damaged_segments_cost_time_and_no_key(many, tmp_path):
    path = Path(shutil.copytree(many, tmp_path / "table"))
    keys = [str(number) for number in range(0, 200, 3)]
    with open_table(many, settings=BY_PAGES) as table:
        right = table.tag_location(keys)
    for file in path.glob(".hoodie/.index/_service/segments/lucene/*"):
        file.write_bytes(file.read_bytes()[:-100])
    with open_table(path, settings=BY_PAGES) as table:
        answer, statistics = search(table, keys)
    assert answer.equals(right)
    assert statistics.count(Access.SKIP) > 0, "by the ranges in manifests"
