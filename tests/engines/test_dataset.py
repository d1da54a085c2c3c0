"""A table as a dataset: what DuckDB, Arrow, pandas and Polars read by it."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from hudi_index_service import HudiDataset, IndexedTable, open_table
from hudi_index_service.errors import DatasetUnsupported, IndexServiceError
from tests.read.by_pages import BY_PAGES
from tests.same_rows import assert_same_rows

TABLES = ["nested_types", "awkward_with_logs_partitioned", "null_partitions", "wall_clock_times"]
AMOUNT = pc.field("amount")


@pytest.fixture
def dataset(table) -> HudiDataset:
    return HudiDataset(table)


@pytest.fixture
def connection(dataset):
    with duckdb.connect() as connection:
        connection.register("rows", dataset)
        yield connection


@pytest.mark.parametrize("name", TABLES)
def test_duckdb_and_arrow_see_the_rows_of_a_scan(name, golden, tmp_path):
    with open_table(golden(name).put(tmp_path)) as table, duckdb.connect() as connection:
        dataset, expected = HudiDataset(table), table.scan().to_arrow()
        assert isinstance(dataset, ds.Dataset)
        assert dataset.schema == expected.schema
        assert_same_rows(dataset.to_table(), expected)
        ours, own = (connection.from_arrow(rows).to_arrow_table() for rows in (dataset, expected))
        assert_same_rows(ours, own)


def test_duckdb_finds_a_dataset_by_the_name_of_its_variable(path):
    messages = HudiDataset(path)  # noqa: F841 - DuckDB finds it by its name
    assert duckdb.sql("SELECT count(*) FROM messages").fetchall() == [(600,)]
    assert duckdb.sql("SELECT count(*) FROM messages WHERE amount = 300").fetchall() == [(1,)]


def test_duckdb_reads_by_the_index(golden_index, golden):
    options = {"using": "btree", "step": "clustered"}
    path = golden_index("awkward_clustered", ["amount", "place.zip", "name"], **options)
    with open_table(path, settings=BY_PAGES) as table, duckdb.connect() as connection:
        connection.register("ours", HudiDataset(table, use_index="require"))
        connection.register("own", golden("awkward_clustered").rows())
        wheres = ["amount = 300", "amount < 90", "place.zip = 7"]
        if not duckdb.__version__.startswith("1."):  # which hands over less
            wheres += [
                "amount IN (3, 6)",
                "NOT (amount >= 30 OR amount IS NULL) AND name IS NOT NULL",
                "amount = 3 OR name = 'plain'",
            ]
        for where in wheres:
            found, own = (
                connection.view(name).filter(where).count("*").fetchall()
                for name in ("ours", "own")
            )
            assert found == own > [(0,)], where
        with pytest.raises(duckdb.Error, match="INDEX_REQUIRED"):
            connection.execute("SELECT count(*) FROM ours WHERE amount % 7 = 1").fetchone()


def test_only_asked_columns_are_read(dataset, monkeypatch):
    asked, scan = [], IndexedTable.scan

    def recorded(table, where, *, columns, **options):
        asked.append(list(columns))
        return scan(table, where, columns=columns, **options)

    monkeypatch.setattr(IndexedTable, "scan", recorded)
    with duckdb.connect() as connection:
        connection.register("rows", dataset)
        connection.execute("SELECT id FROM rows LIMIT 3").fetchall()
    dataset.to_table(columns=["cost"], filter=AMOUNT == 300)
    dataset.to_table(columns=["cost"], filter=AMOUNT * 2 == 600)
    dataset.to_table(columns={"twice": AMOUNT * 2})
    assert asked[:3] == [["id"], ["cost"], ["amount", "cost"]]
    assert asked[3] == dataset.schema.names


def test_queries_limit_join_and_aggregate(connection, plain):
    connection.execute(f"CREATE TABLE own AS FROM '{plain}'")
    for query in (
        "SELECT count(*) FROM {}",
        "SELECT part, sum(amount), count(DISTINCT name) FROM {} GROUP BY ALL ORDER BY ALL",
        "SELECT a.id FROM {} a JOIN {} b USING (amount) WHERE b.cost < 9 ORDER BY 1",
        "SELECT id FROM {} WHERE amount IN (SELECT amount * 2 FROM {}) ORDER BY 1",
        "SELECT place.geo.lat, tags[1] FROM {} ORDER BY id",
        "SELECT id FROM {} ORDER BY price DESC, id LIMIT 20",
    ):
        ours, own = (
            connection.execute(query.replace("{}", name)).fetchall() for name in ("rows", "own")
        )
        assert repr(ours) == repr(own), query
    assert len(connection.execute("SELECT id, cost FROM rows LIMIT 1").fetchall()) == 1


def test_threads_query_one_dataset(dataset):
    def count(number: int) -> tuple[int]:
        with duckdb.connect() as connection:
            connection.register("rows", dataset)
            rows = connection.view("rows").filter(f"amount < {number * 3}")
            return rows.count("*").fetchall()[0]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(count, range(0, 600, 40)))
    own = [dataset.count_rows(filter=number * 3 > AMOUNT) for number in range(0, 600, 40)]
    assert found == [(each,) for each in own]


def test_nan_means_what_it_means_to_who_asks(connection, dataset, plain):
    prices = pl.read_parquet(plain)["price"].drop_nulls()
    numbers, nans = prices.filter(prices.is_not_nan() & (prices > 1)).len(), prices.is_nan().sum()
    assert nans > 0
    found = connection.execute("SELECT count(*) FROM rows WHERE price > 1").fetchone()
    assert found == (numbers + nans,)
    assert dataset.count_rows(filter=pc.field("price") > 1.0) == numbers
    assert dataset.to_table(filter=pc.field("price") > 1.0).num_rows == numbers


def test_the_explanation_shows_what_the_index_gets(dataset):
    assert dataset.explain(filter=AMOUNT == 300).where == "`amount` = 300L"
    assert dataset.explain(["id"], (AMOUNT == 300) & (AMOUNT * 2 > 3)).where == "`amount` = 300L"
    assert dataset.explain().where is None


def test_other_libraries_take_a_dataset(dataset):
    frame = dataset.to_table(filter=AMOUNT < 300, columns=["id"]).to_pandas()
    polars = pl.scan_pyarrow_dataset(dataset).filter(pl.col("amount") < 300).select("id").collect()
    assert sorted(frame["id"]) == sorted(polars["id"])
    assert sum(batch.num_rows for batch in dataset.to_batches(filter=AMOUNT < 300)) == len(frame)
    assert dataset.head(5, columns=["id"]).num_rows == 5
    assert dataset.count_rows() == 600


def test_every_method_of_a_dataset_works_or_says_that_it_does_not(dataset):
    """A method of the base class that is not overridden would look for files that are not there."""
    works = {"schema", "scanner", "count_rows"}
    by_scanner = {"to_table", "to_batches", "head"}
    methods = {name for name in dir(ds.FileSystemDataset) if not name.startswith("__")}

    def use(name: str) -> None:
        getattr(dataset, name)(*([None] * {"join": 2, "join_asof": 4}.get(name, 1)))

    others = {"_scan_options", "_scanner_options", "from_paths"}  # need no dataset
    refused = methods - works - by_scanner - others
    for name in refused:
        with pytest.raises(DatasetUnsupported, match="DATASET_UNSUPPORTED") as raised:
            use(name)
        assert isinstance(raised.value, NotImplementedError)
    with pytest.raises(DatasetUnsupported):
        pickle.dumps(dataset)
    assert repr(dataset).startswith("HudiDataset('")


def test_a_part_of_another_dataset_is_refused(dataset):
    with pytest.raises(DatasetUnsupported):
        ds.dataset([dataset, ds.dataset(dataset.head(1))])
    union = ds.UnionDataset(dataset.schema, [dataset])
    with pytest.raises(FileNotFoundError, match="a HudiDataset cannot be a part of another"):
        union.count_rows()


def test_a_column_that_has_changed_its_type_is_no_wrong_answer(golden, tmp_path):
    name = "columns_added_and_widened"
    table = open_table(golden(name).put(tmp_path, golden(name).steps[0]))
    dataset, before = HudiDataset(table), table.schema()
    golden(name).put(tmp_path)
    after = table.schema()
    widened, *_ = [each.name for each in before if after.field(each.name).type != each.type]
    for columns, where in (([widened], None), (["id"], pc.field(widened) == 1)):
        with pytest.raises(IndexServiceError, match=f"SNAPSHOT_CHANGED.*{widened}"):
            dataset.to_table(columns=columns, filter=where)
    assert dataset.to_table(columns=["id"]).num_rows == len(table.scan().to_arrow())


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
def test_no_table_has_views_which_duckdb_does_not_filter(kind, golden, tmp_path):
    for name in TABLES:
        with open_table(golden(name).put(tmp_path / name)) as table:
            assert str(kind) not in str(HudiDataset(table).schema)


@pytest.mark.parametrize(("count", "is_known"), [(100, True), (700, False)])
def test_a_long_chain_of_conditions_takes_no_time(count, is_known, dataset):
    """As Substrait, a chain of 22 takes 1.6 GB."""
    chain = AMOUNT == -1
    for number in range(count):
        chain = chain | (number == AMOUNT)
    assert (dataset.explain(filter=chain).where is not None) == is_known
    expected = dataset.count_rows(filter=(AMOUNT >= 0) & (count > AMOUNT))
    assert dataset.count_rows(filter=chain) == expected > 0
