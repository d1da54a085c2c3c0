"""Full-text functions in SQL: the same rows with and without the index, the same scores as
`search`."""

import re
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PythonException

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.config import settings
from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported, ScoreUnavailable
from hudi_index_service.sql import IndexSession
from tests.golden.recipes.texts import ROWS, text_of
from tests.golden.table import Golden
from tests.read.test_full_text import SEARCHES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEARCH, EACH = "SELECT id FROM texts AS t WHERE {}", "SELECT id, {} FROM texts"
FUNCTIONS = ("match", "match_any", "match_phrase", "match_prefix", "match_fuzzy", "score")


@pytest.fixture(scope="module")
def texts(
    spark: "SparkSession", golden: Golden, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IndexedTable]:
    """A base file with an entry, one with an entry and a log file, and one without an entry; and,
    as ``stemmed``, the same rows with another analyzer and no usable entry."""
    folder = tmp_path_factory.mktemp("full_text")
    table = open_table(golden("searched_texts").put(folder / "texts", "two base files"))
    words = Column(name="msg", options={"analyzer": "standard", "ranked": "true"})
    table.create_index("by_words", [words, "amount"])
    table.build(strategy="all").raise_for_failures()
    golden("searched_texts").put(folder / "texts")
    shutil.copytree(folder / "texts", folder / "stemmed")
    with open_table(folder / "stemmed") as other:
        other.alter_index("by_words", options={"msg": {"analyzer": "english"}})
    for name in ("texts", "stemmed"):
        spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{folder / name}'")
    yield table
    for name in ("texts", "stemmed"):
        spark.sql(f"DROP TABLE {name}")
    table.close()


@pytest.fixture(scope="module")
def by_index(spark: "SparkSession", texts: IndexedTable) -> Iterator[IndexSession]:
    session = IndexSession(spark)
    yield session
    session.close()


@pytest.fixture(scope="module")
def without_index(spark: "SparkSession", texts: IndexedTable) -> Iterator[IndexSession]:
    read = settings().read.model_copy(update={"enabled": False})
    session = IndexSession(spark, settings=settings().model_copy(update={"read": read}))
    yield session
    session.close()


def keys(frame: "DataFrame") -> list[int]:
    return sorted(int(row.id) for row in frame.collect())


@pytest.mark.parametrize("condition", SEARCHES)
def test_searches_through_the_index(by_index: IndexSession, condition: str) -> None:
    found = [text is not None and SEARCHES[condition](text) for text in map(text_of, range(ROWS))]
    expected = [key for key in range(ROWS) if found[key]]
    assert keys(by_index.sql(SEARCH.format(condition))) == expected
    (use,) = by_index.relations
    assert use.by_index, use.reason
    assert use.where is not None
    assert use.rows == len(expected), "the index finds exactly the matching rows"


def test_searches_without_the_index(without_index: IndexSession) -> None:
    """By Spark's Python workers, all in one query."""
    columns = ", ".join(f"{condition} AS c{n}" for n, condition in enumerate(SEARCHES))
    found = without_index.sql(EACH.format(columns)).collect()
    assert [use.by_index for use in without_index.relations] == [False]
    for row in found:
        text = text_of(int(row.id))
        expected = [None if text is None else matches(text) for matches in SEARCHES.values()]
        assert list(row[1:]) == expected, text


SHAPES: list[tuple[str, list[bool]]] = [
    ("SELECT a.id FROM texts a WHERE Match(A.Msg, 'car') OR amount = 3 ORDER BY id", [True]),
    ("SELECT id, match(msg, 'car') FROM texts WHERE NOT match(msg, 'boat')", [True]),
    (
        "SELECT match(msg, 'car') AS m, count(*) FILTER (WHERE match(msg, 'old')) FROM texts "
        "GROUP BY match(msg, 'car')",
        [False],
    ),
    (
        "SELECT a.id, b.id FROM texts a LEFT JOIN texts b ON a.id = b.id AND match(b.msg, 'boat') "
        "WHERE match(a.msg, 'red') AND (match(b.msg, 'boat') OR b.msg IS NULL)",
        [True, True],
    ),
    (
        "SELECT a.id, b.id FROM texts a FULL JOIN texts b ON a.id = b.id AND match(b.msg, 'boat')",
        [False, False],
    ),
    (
        "WITH cars AS (SELECT id AS k, msg AS m FROM texts WHERE match(msg, 'car')) "
        "SELECT k FROM cars WHERE match(m, 'new') UNION ALL SELECT k FROM cars WHERE k > '7'",
        [True, True],
    ),
    (
        "SELECT id FROM texts a WHERE EXISTS (SELECT 1 FROM texts b WHERE b.id = a.id "
        "AND match(b.msg, 'old') AND match(a.msg, 'car')) "
        "AND amount < (SELECT max(amount) FROM texts WHERE match(msg, 'boat'))",
        [True, True, True],
    ),
    (
        "SELECT m, count(*) FROM (SELECT msg AS m FROM texts WHERE amount = 3 UNION ALL "
        "SELECT body FROM texts_view) GROUP BY m HAVING match(m, 'car')",
        [True, True],
    ),
    ("SELECT id, msg FROM cars_view WHERE amount > 4 AND msg = 'car; new'", [True]),
    # Spark infers the condition for the other side of the join too, whose analyzer differs.
    (
        "SELECT count(*) FROM texts a JOIN stemmed b ON a.msg = b.msg WHERE match(a.msg, 'cars')",
        [True, False],
    ),
]


@pytest.fixture(scope="module")
def views(spark: "SparkSession", by_index: IndexSession) -> Iterator[None]:
    spark.sql("CREATE TEMP VIEW texts_view AS SELECT id, msg AS body FROM texts")
    by_index.sql("CREATE TEMP VIEW cars_view AS SELECT * FROM texts WHERE match(msg, 'car')")
    plain = "SELECT * FROM texts WHERE msg RLIKE r'(?i)\\bcar\\b'"
    spark.sql(f"CREATE TEMP VIEW cars_view_plain AS {plain}")
    yield
    for name in ("texts_view", "cars_view", "cars_view_plain"):
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize(("query", "served"), SHAPES)
def test_searches_in_query_shapes(
    spark, views, by_index: IndexSession, query: str, served: list[bool]
) -> None:
    """A regular expression finds the same words in these texts."""
    plain = re.sub(r"(?i)match\(([\w.]+), '(\w+)'\)", r"\1 RLIKE r'(?i)\\b\2\\b'", query)
    found = by_index.sql(query)
    expected = spark.sql(plain.replace("cars_view", "cars_view_plain"))
    assert [each.dataType for each in found.schema] == [each.dataType for each in expected.schema]
    answers = [sorted(map(repr, map(tuple, each.collect()))) for each in (found, expected)]
    assert answers[0] == answers[1]
    assert [use.by_index for use in by_index.relations] == served


@pytest.mark.usefixtures("read_by_tasks")
def test_many_rows_are_read_by_tasks_without_a_second_match(by_index: IndexSession) -> None:
    found = by_index.sql("SELECT id FROM texts WHERE match(msg, 'car') AND amount < 8")
    (use,) = by_index.relations
    assert (use.by_index, use.in_tasks) == (True, True)
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "match" not in plan, "the tasks that read the rows evaluate the search"
    has = SEARCHES["Match ( MSG , 'car' )"]
    assert keys(found) == [k for k in range(ROWS) if k % 10 < 8 and has(text_of(k) or "")]


def test_rows_are_counted_by_the_index(by_index: IndexSession) -> None:
    has = SEARCHES["match_phrase(msg, 'new car')"]
    query = "SELECT count(*) AS n FROM texts WHERE match_phrase(msg, 'new car')"
    (row,) = by_index.sql(query).collect()
    assert row.n == sum(has(text_of(key) or "") for key in range(ROWS))
    (use,) = by_index.relations
    assert use.reason == "the index counts its rows; 2 slices read without it"


def test_scores_in_an_earlier_snapshot(texts: IndexedTable, by_index: IndexSession) -> None:
    first = min(each.requested for each in texts.hudi_table.completed_instants())
    query = "SELECT id, score() AS s FROM texts TIMESTAMP AS OF '{}' WHERE match(msg, 'boat')"
    expected = texts.search("msg", "boat", k=ROWS, columns=["id"], as_of=first).to_pylist()
    assert {row.id: row.s for row in by_index.sql(query.format(first)).collect()} == {
        each["id"]: each["_score"] for each in expected
    }


def by_index_plan(session: IndexSession, query: str) -> str:
    return str(session.sql(query)._jdf.queryExecution().executedPlan().toString())


def scores(table: IndexedTable, text: str, **options: str) -> dict[str, float]:
    found = table.search("msg", text, k=ROWS, columns=["id"], **options)
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


@pytest.mark.parametrize("session", ["by_index", "without_index"])
def test_scores_equal_those_of_search(texts: IndexedTable, session: str, request) -> None:
    sql = request.getfixturevalue(session).sql
    query = "SELECT id, score() AS s FROM texts t WHERE {} ORDER BY s DESC"
    found = [(row.id, row.s) for row in sql(query.format("match(msg, 'new car')")).collect()]
    assert dict(found) == scores(texts, "new car", words="all")
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    narrowed = sql(query.format("amount < 5 AND match_any(t.msg, 'NEW car tag42')")).collect()
    assert {row.id: row.s for row in narrowed} == scores(texts, "NEW car tag42", where="amount < 5")


def test_scores_in_order_by_aggregates_windows_and_disjunctions(
    texts: IndexedTable, by_index: IndexSession
) -> None:
    every = scores(texts, "new car", words="all")
    best = sorted(every.values(), reverse=True)[:3]
    search = "FROM texts WHERE match(msg, 'new car')"
    ordered = by_index.sql(f"SELECT id {search} ORDER BY score() DESC LIMIT 3").collect()
    assert [every[row.id] for row in ordered] == best
    assert [use.reason for use in by_index.relations] == ["the index finds the 3 best rows"]
    query = f"SELECT id, score() s {search} AND amount < 7 ORDER BY s DESC LIMIT 2 OFFSET 1"
    narrowed = sorted((every[key] for key in every if int(key) % 10 < 7), reverse=True)
    assert [row.s for row in by_index.sql(query).collect()] == narrowed[1:3]
    assert [use.rows for use in by_index.relations] == [3]
    (row,) = by_index.sql(f"SELECT max(score()) AS best {search} AND score() > 0.1").collect()
    assert row.best == best[0]
    assert "Python" not in by_index_plan(by_index, f"SELECT max(score()) {search}")
    ranked = f"SELECT id, rank() OVER (ORDER BY score() DESC) AS place {search}"
    assert {row.id for row in by_index.sql(ranked).collect() if row.place == 1} == {
        key for key in every if every[key] == best[0]
    }
    either = by_index.sql("SELECT id, score() s FROM texts WHERE match(msg, 'new car') OR id < '3'")
    assert {row.id: row.s for row in either.collect() if row.id < "12"} == {
        str(key): None if text_of(key) is None else every.get(str(key), 0.0)
        for key in range(ROWS)
        if str(key) < "12"
    }


REFUSED = {
    "SELECT id FROM texts WHERE match(id, 'car')": "No index holds the words of `id`",
    "SELECT id FROM texts WHERE match(upper(msg), 'car')": "match searches upper(",
    "SELECT match('a car', 'car')": "which is not a column of a Hudi table",
    "SELECT id FROM texts WHERE match(msg, id)": "not known before the query runs",
    "SELECT id FROM texts WHERE match(msg)": "match was called with 1 arguments",
    "SELECT id FROM texts WHERE match(amount, 'car')": "match in a column of type int32. Name",
    "SELECT id FROM texts WHERE match_fuzzy(msg, 'car', 3)": "0, 1 or 2 edits away, not '3'. Omit",
    "SELECT id FROM (TABLE texts UNION ALL TABLE stemmed) WHERE match(msg, 'car')": (
        "indexes have different analyzers"
    ),
    "SELECT score() FROM texts": "score() is called in a query block without a match",
    "SELECT score() FROM (SELECT * FROM texts WHERE match(msg, 'car'))": (
        "query block without a match"
    ),
    "SELECT score() FROM texts WHERE match(msg, 'car') AND match(msg, 'old')": (
        "query block with 2 searches"
    ),
    "SELECT score() FROM texts a SEMI JOIN texts b ON a.id = b.id AND match(b.msg, 'car')": (
        "where the searched text is not available"
    ),
    "SELECT score() FROM texts WHERE match_phrase(msg, 'new car')": "finds rows without scores",
    "SELECT score() FROM stemmed WHERE match(msg, 'car')": "lengths are not stored",
    "SELECT count(*) FROM texts WHERE match(msg, 'car') GROUP BY amount HAVING score() > 1": (
        "score() is called in a query block without a match"
    ),
}


@pytest.mark.parametrize("query", REFUSED)
def test_searches_and_scores_without_an_answer_are_refused(
    by_index: IndexSession, query: str
) -> None:
    with pytest.raises((PredicateUnsupported, PredicateInvalid, ScoreUnavailable)) as caught:
        by_index.sql(query)
    assert REFUSED[query] in str(caught.value)
    assert caught.value.remedy


def test_search_for_null_finds_nothing(by_index: IndexSession) -> None:
    assert by_index.sql("SELECT id FROM texts WHERE match(msg, NULL)").collect() == []
    query = "SELECT id FROM texts WHERE NOT match(msg, :text) OR id = '3'"
    assert keys(by_index.sql(query, args={"text": None})) == [3]


@pytest.fixture
def user_score(spark: "SparkSession") -> Iterator[None]:
    """A user-defined function named `score`."""
    spark.udf.register("score", lambda text: f"<{text}>")
    yield
    spark.sql("DROP TEMPORARY FUNCTION score")


def test_functions_of_the_user_keep_their_names(
    spark: "SparkSession", views: None, by_index: IndexSession, user_score: None
) -> None:
    """A name in use is left alone, and ours are registered only while a query is analyzed."""
    query = "SELECT score(id) AS s FROM texts WHERE MATCH (msg, 'boat') AND amount = 2"
    assert {row.s for row in by_index.sql(query).collect()} == {"<2>", "<62>", "<122>", "<182>"}
    assert [each for each in FUNCTIONS if spark.catalog.functionExists(each)] == ["score"]
    with pytest.raises(AnalysisException, match="match_none"):
        by_index.sql("SELECT match_none(msg) FROM texts WHERE match(msg, 'boat')")
    with pytest.raises(AnalysisException, match="`match`"):
        spark.sql("SELECT * FROM cars_view")
    assert [each for each in FUNCTIONS if spark.catalog.functionExists(each)] == ["score"]


def test_match_outside_a_query_fails(spark: "SparkSession", by_index: IndexSession) -> None:
    with pytest.raises(PythonException, match="match was not called in a query of IndexSession"):
        by_index.sql("CACHE TABLE hits AS SELECT id FROM texts WHERE match(msg, 'boat')")
    spark.catalog.dropTempView("hits")
