"""Full-text search on a real table: covered, uncovered and merged slices give the same rows."""

import re
from collections.abc import Callable

import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported
from hudi_index_service.optimizer.plan import Access
from tests.golden.recipes.texts import ROWS, text_of
from tests.hudi_tables import as_if_changed_on_read
from tests.indexed import indexed

WORDS_ONLY = Column(name="msg", options={"analyzer": "standard", "keyword": "false"})


@pytest.fixture(scope="module")
def table(golden, tmp_path_factory) -> IndexedTable:
    """Two indexed base files, one of them with a later log file, and one that is not indexed."""
    texts = golden("searched_texts")
    path = texts.put(tmp_path_factory.mktemp("full_text"), "two base files")
    table = indexed(path, [WORDS_ONLY, "amount"])
    texts.put(path)
    plan = table.scan("match(msg, 'car')").explain().plan
    assert [plan.count(access) for access in (Access.INDEX, Access.SCAN)] == [2, 1]
    assert sum(bool(each.file_slice.log_files) for each in plan.slices) == 1
    return table


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
def test_every_kind_of_slice_gives_the_same_rows(table, where, use_index):
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


def test_counting_an_exact_search_reads_no_row(table):
    scan = table.scan("match(msg, 'new car')")
    scan.count()
    (covered,) = [
        each
        for each in scan.statistics.slices
        if each.access is Access.INDEX and each.log_rows is None
    ]
    assert (covered.rows_checked, covered.bytes_read) == (0, 0)
    assert covered.candidates == sum(has("new", "car")(text_of(k) or "") for k in range(80))


def test_like_reads_only_rows_that_contain_its_word(table):
    scan = table.scan("msg LIKE '%tag421%'", columns=["id"])
    keys = sorted(map(int, scan.to_arrow()["id"].to_pylist()))
    assert keys == [key for key in range(ROWS) if "tag421" in (text_of(key) or "")]
    (covered,) = [
        each
        for each in scan.statistics.slices
        if each.candidates is not None and each.log_rows is None
    ]
    assert covered.candidates == covered.rows_returned == 6


INVALID = {
    "match(msg, 5)": (PredicateUnsupported, "match of a non-text value: '5'"),
    "match('car', 'car')": (PredicateUnsupported, "match on a value that is not a column"),
    "match(amount, 'car')": (PredicateUnsupported, "match in a column of type int32"),
    "match(id, 'car')": (PredicateUnsupported, "No index holds the words of `id`"),
    "match(msg)": (PredicateInvalid, ", expected"),
    "match_prefix(msg, 'new car')": (PredicateInvalid, "the beginning of one word"),
    "match_prefix(msg, '')": (PredicateInvalid, "the beginning of one word"),
    "match_fuzzy(msg, 'car', 3)": (PredicateInvalid, "0, 1 or 2 edits away, not '3'"),
    f"match(msg, '{'x' * 101}')": (PredicateUnsupported, "more than 1000 characters, or 100"),
    f"match(msg, '{'x ' * 501}')": (PredicateUnsupported, "more than 1000 characters"),
}


@pytest.mark.parametrize("where", INVALID)
def test_an_invalid_search_is_refused(table, where):
    kind, message = INVALID[where]
    with pytest.raises(kind) as caught:
        table.scan(where)
    assert message in str(caught.value)
    assert caught.value.remedy


def test_a_search_for_null_finds_nothing(table):
    assert table.scan("match(msg, NULL)").count() == 0
    assert table.scan("NOT match(msg, NULL)").count() == 0


def test_the_definitions_analyzer_applies_even_before_a_build(golden, tmp_path):
    own = open_table(golden("searched_texts").put(tmp_path, "one base file"))
    with pytest.raises(PredicateUnsupported, match="No index holds the words"):
        own.scan("match(msg, 'buy')")
    indexed(own, [Column(name="msg", options={"analyzer": "standard"})], name="words")
    assert own.scan("match(msg, 'buy')").count() == 0
    own.alter_index("words", options={"msg": {"analyzer": "english"}})
    scan = own.scan("match(msg, 'buy')")
    assert scan.count() == 7, "the stem of Buying, though no entry has it yet"
    assert scan.statistics.count(Access.SCAN) == 1
    own.refresh("words").raise_for_failures()
    scan = own.scan("match(msg, 'buy')", use_index="require")
    assert scan.count() == 7
    own.create_index("plain", [Column(name="msg", options={"analyzer": "standard"})])
    with pytest.raises(PredicateUnsupported, match=r"different analyzers \(english, standard\)"):
        own.scan("match(msg, 'buy')")


def test_a_table_that_needs_spark_has_no_full_text_search(spark, golden, tmp_path):
    path = golden("searched_texts").put(tmp_path, "one base file")
    open_table(path).create_index("words", [WORDS_ONLY])
    as_if_changed_on_read(path)
    by_spark = open_table(path, spark=spark)
    assert by_spark.scan("msg LIKE '%boat%'").count() == 7
    scan = by_spark.scan("match(msg, 'boat')")
    for run in (scan.count, scan.exists, scan.to_arrow, lambda: list(scan.to_batches())):
        with pytest.raises(PredicateUnsupported, match="it has no full-text search"):
            run()
