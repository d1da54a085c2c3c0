"""Full-text search on a real table: covered, uncovered and merged slices say the same."""

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported, RowIdsUnavailable
from hudi_index_service.optimizer.plan import Access
from tests.hudi_tables import hudi_options, write

ROWS = 240
TEXTS = [
    "Buying a new car", "selling the OLD car", "new, red-blue boat", "car; new", "newcar", None, "",
    "a new old car", "Cars are new", "tag42 fast", "tag421 slow", "TAG42!",
]  # fmt: skip
WORDS_ONLY = Column(name="msg", options={"analyzer": "standard", "keyword": "false"})


def rows(spark: SparkSession, start: int, end: int, version: int = 0):
    """Keys [start, end), whose text follows from key and version."""
    texts = F.array(*(F.lit(text) for text in TEXTS))
    place = (F.col("id") + version) % len(TEXTS)
    return spark.range(start, end, 1, 1).select(
        F.col("id").cast("string").alias("id"),
        F.element_at(texts, (place + 1).cast("int")).alias("msg"),
        (F.col("id") % 10).cast("int").alias("amount"),
        F.lit(version).cast("long").alias("ts"),
    )


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> IndexedTable:
    """Two base files indexed, one of them with a log file since, and one that is not."""
    path = tmp_path_factory.mktemp("full_text") / "t"
    extra = {"hoodie.parquet.small.file.limit": "0"}
    options = hudi_options("t", "MERGE_ON_READ", **extra)
    write(rows(spark, 0, 80), path, options, "bulk_insert", "overwrite")
    write(rows(spark, 80, 160), path, options, "bulk_insert")
    table = open_table(path)
    table.create_index("by_words", [WORDS_ONLY, "amount"])
    table.build(strategy="all").raise_for_failures()
    write(rows(spark, 100, 120, version=1), path, options)
    write(rows(spark, 160, ROWS), path, options, "bulk_insert")
    plan = table.scan("match(msg, 'car')").explain().plan
    assert [plan.count(access) for access in (Access.INDEX, Access.MERGE, Access.SCAN)] == [1, 1, 1]
    return table


def text_of(key: int) -> str | None:
    return TEXTS[(key + (100 <= key < 120)) % len(TEXTS)]


def words(text: str) -> list[str]:
    return re.findall("[a-z0-9]+", text.lower())


def has(*wanted: str) -> Callable[[str], bool]:
    return lambda text: set(wanted) <= set(words(text))


SEARCHES: dict[str, Callable[[str], bool]] = {
    "match(msg, 'New CAR')": has("new", "car"),
    "Match ( MSG , 'car' )": has("car"),
    "match_any(msg, 'boat tag421')": lambda text: bool({"boat", "tag421"} & set(words(text))),
    "match_phrase(msg, 'new car')": lambda text: "new car" in " ".join(words(text)),
    "match_prefix(msg, 'Car')": lambda text: any(w.startswith("car") for w in words(text)),
    "match_prefix(msg, 'tag42')": lambda text: any(w.startswith("tag42") for w in words(text)),
    "match_fuzzy(msg, 'caar')": has("car"),
    "match_fuzzy(msg, 'tag42')": lambda text: bool({"tag42", "tag421"} & set(words(text))),
    "match_fuzzy(msg, 'tag42', 0)": has("tag42"),
    "match(msg, '?!')": lambda text: False,
}


@pytest.mark.parametrize("where", SEARCHES)
@pytest.mark.parametrize("use_index", ["auto", "never"])
def test_every_slice_says_the_same(table: IndexedTable, where: str, use_index: str) -> None:
    found = [text is not None and SEARCHES[where](text) for text in map(text_of, range(ROWS))]
    known = [text_of(key) is not None for key in range(ROWS)]
    expected = {
        where: [key for key in range(ROWS) if found[key]],
        f"NOT {where}": [key for key in range(ROWS) if known[key] and not found[key]],
        f"{where} AND amount = 3": [key for key in range(ROWS) if found[key] and key % 10 == 3],
        f"({where}) OR msg IS NULL": [key for key in range(ROWS) if found[key] or not known[key]],
        f"NOT ({where}) OR amount < 2": [
            key for key in range(ROWS) if (known[key] and not found[key]) or key % 10 < 2
        ],
    }
    for text, keys in expected.items():
        scan = table.scan(text, columns=["id"], use_index=use_index)
        assert sorted(map(int, scan.to_arrow()["id"].to_pylist())) == keys, text
        assert scan.count() == len(keys)
        assert scan.exists() == bool(keys)


def test_a_search_that_the_index_answers_is_counted_without_reading_a_row(
    table: IndexedTable,
) -> None:
    scan = table.scan("match(msg, 'new car')")
    scan.count()
    assert scan.statistics is not None
    (covered,) = [each for each in scan.statistics.slices if each.access is Access.INDEX]
    assert (covered.rows_checked, covered.bytes_read) == (0, 0)
    assert covered.candidates == sum(has("new", "car")(text_of(k) or "") for k in range(80))


def test_like_reads_the_rows_that_have_its_word(table: IndexedTable) -> None:
    scan = table.scan("msg LIKE '%tag421%'", columns=["id"])
    keys = sorted(map(int, scan.to_arrow()["id"].to_pylist()))
    assert keys == [key for key in range(ROWS) if "tag421" in (text_of(key) or "")]
    assert scan.statistics is not None
    (covered,) = [each for each in scan.statistics.slices if each.candidates is not None]
    assert covered.candidates == covered.rows_returned == 6


INVALID = {
    "match(msg, 5)": (PredicateUnsupported, "match of what is no text: '5'"),
    "match('car', 'car')": (PredicateUnsupported, "match on what is no column"),
    "match(amount, 'car')": (PredicateUnsupported, "match in a column of type int32"),
    "match(id, 'car')": (PredicateUnsupported, "No index holds the words of `id`"),
    "match(msg)": (PredicateInvalid, ", expected"),
    "match_prefix(msg, 'new car')": (PredicateInvalid, "the beginning of one word"),
    "match_prefix(msg, '')": (PredicateInvalid, "the beginning of one word"),
    "match_fuzzy(msg, 'car', 3)": (PredicateInvalid, "0, 1 or 2 edits away, not '3'"),
    f"match(msg, '{'x' * 101}')": (PredicateUnsupported, "More than 1000 characters, or 100"),
    f"match(msg, '{'x ' * 501}')": (PredicateUnsupported, "More than 1000 characters"),
}


@pytest.mark.parametrize("where", INVALID)
def test_what_cannot_be_searched_is_refused(table: IndexedTable, where: str) -> None:
    kind, message = INVALID[where]
    with pytest.raises(kind) as caught:
        table.scan(where)
    assert message in str(caught.value)
    assert caught.value.remedy


def test_null_is_found_nowhere(table: IndexedTable) -> None:
    assert table.scan("match(msg, NULL)").count() == 0
    assert table.scan("NOT match(msg, NULL)").count() == 0


def test_the_analyzer_of_the_definition_counts_whatever_is_built(
    table: IndexedTable, tmp_path: Path, spark: SparkSession
) -> None:
    path = tmp_path / "t"
    write(rows(spark, 0, 24), path, hudi_options("t"), "bulk_insert", "overwrite")
    own = open_table(path)
    with pytest.raises(PredicateUnsupported, match="No index holds the words"):
        own.scan("match(msg, 'buy')")
    own.create_index("words", [Column(name="msg", options={"analyzer": "standard"})])
    own.build(strategy="all").raise_for_failures()
    assert own.scan("match(msg, 'buy')").count() == 0
    own.alter_index("words", options={"msg": {"analyzer": "english"}})
    scan = own.scan("match(msg, 'buy')")
    assert scan.count() == 2, "Buying, by its stem, though no entry has it yet"
    assert scan.statistics is not None
    assert scan.statistics.count(Access.SCAN) == 1
    own.refresh("words").raise_for_failures()
    scan = own.scan("match(msg, 'buy')", use_index="require")
    assert scan.count() == 2
    own.create_index("plain", [Column(name="msg", options={"analyzer": "standard"})])
    with pytest.raises(PredicateUnsupported, match=r"different analyzers \(english, standard\)"):
        own.scan("match(msg, 'buy')")


def test_a_table_that_only_spark_can_read_is_not_searched(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, options = tmp_path / "t", hudi_options("t", partition_column="part")
    first, second = (F.lit(value).alias("part") for value in ("a", "p=1"))
    write(rows(spark, 0, 24).select("*", first), path, options, "bulk_insert", "overwrite")
    open_table(path).create_index("words", [WORDS_ONLY])
    write(rows(spark, 24, 36).select("*", second), path, options, "bulk_insert")
    by_spark = open_table(path, spark=spark)
    assert by_spark.scan("msg LIKE '%boat%'").count() == 3
    scan = by_spark.scan("match(msg, 'boat')")
    for run in (scan.count, scan.exists, scan.to_arrow, lambda: list(scan.to_batches())):
        with pytest.raises(PredicateUnsupported, match="it has no full-text search"):
            run()


def test_row_ids_of_a_search(table: IndexedTable) -> None:
    with pytest.raises(RowIdsUnavailable):
        table.scan("match(msg, 'car')").row_ids()


def test_batches_of_a_search(table: IndexedTable) -> None:
    batches = list(table.scan("match(msg, 'tag42')", columns=["msg"]).to_batches())
    texts = pa.Table.from_batches(batches)["msg"].to_pylist()
    assert set(texts) == {"tag42 fast", "TAG42!"}
