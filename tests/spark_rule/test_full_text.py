"""Full-text functions in plain queries: the same rows with and without the index, the same scores
as `search`."""

# ruff: noqa: S608 - the queries are the test's own

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.errors import (
    PredicateInvalid,
    PredicateUnsupported,
    ScoreUnavailable,
    SnapshotChanged,
)
from hudi_index_service.sql import IndexSession, enable, last_queries
from hudi_index_service.sql.rule.reader import RelationReader
from tests.golden.recipes.texts import ROWS, text_of
from tests.golden.table import Golden
from tests.indexed import indexed
from tests.read.test_full_text import SEARCHES
from tests.spark_rule import needs
from tests.spark_rule.conftest import by_index, each_of

CARS = [key for key in range(ROWS) if SEARCHES["Match ( MSG , 'car' )"](text_of(key) or "")]
BOATS = [key for key in range(ROWS) if re.search(r"(?i)\bboat\b", text_of(key) or "")]
BEST = "the index finds the 3 best rows"
SEARCH, EACH = "SELECT id FROM texts AS t WHERE {}", "SELECT id, {} FROM texts"


@pytest.fixture(scope="module")
def texts(
    named: Callable[[Path], Path], golden: Golden, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IndexedTable]:
    """A base file with an entry, one with an entry and a log file, and one without an entry; and,
    as ``stemmed``, the same rows with another analyzer and no usable entry."""
    folder = tmp_path_factory.mktemp("full_text")
    table = open_table(golden("searched_texts").put(folder / "texts", "two base files"))
    words = Column(name="msg", options={"analyzer": "standard", "ranked": "true"})
    indexed(table, [words, "amount"], name="by_words")
    golden("searched_texts").put(folder / "texts")
    shutil.copytree(folder / "texts", folder / "stemmed")
    with open_table(folder / "stemmed") as other:
        other.alter_index("by_words", options={"msg": {"analyzer": "english"}})
    for name in ("texts", "stemmed"):
        named(folder / name)
    yield table
    table.close()


@pytest.fixture
def without_index(enabled: SparkSession, texts: IndexedTable) -> SparkSession:
    enabled.conf.set("spark.hudi.index.enabled", "false")
    return enabled


def keys(frame: DataFrame) -> list[int]:
    return sorted(int(row.id) for row in frame.collect())


@pytest.mark.parametrize("condition", SEARCHES)
def test_searches_through_the_index(enabled, texts, condition: str) -> None:
    found = [text is not None and SEARCHES[condition](text) for text in map(text_of, range(ROWS))]
    expected = [key for key in range(ROWS) if found[key]]
    assert keys(enabled.sql(SEARCH.format(condition))) == expected
    [use] = last_queries(enabled)[-1]
    assert use.by_index, use.reason
    assert use.where is not None
    assert use.rows == len(expected), "the index finds exactly the matching rows"


@pytest.mark.fast
def test_searches_in_dataframes(enabled, texts) -> None:
    frame = enabled.table("texts").where(F.expr("match(msg, 'car')"))
    assert keys(frame) == CARS
    [use] = last_queries(enabled)[-1]
    assert (use.by_index, use.rows) == (True, len(CARS))
    scored = frame.select("id", F.expr("score() AS s")).orderBy(F.desc("s")).limit(3)
    best = sorted(scores(texts, "car", words="all").values(), reverse=True)[:3]
    assert [row.s for row in scored.collect()] == best
    assert [each.reason for each in last_queries(enabled)[-1]] == [BEST]
    ordered = frame.orderBy(F.expr("score()").desc()).limit(3)
    assert ordered.columns == enabled.table("texts").columns
    every = scores(texts, "car", words="all")
    assert [every[row.id] for row in ordered.collect()] == best
    assert [each.reason for each in last_queries(enabled)[-1]] == [BEST]


def test_searches_without_the_index(without_index) -> None:
    """By Spark's Python workers, all in one query."""
    columns = ", ".join(f"{condition} AS c{n}" for n, condition in enumerate(SEARCHES))
    for row in without_index.sql(EACH.format(columns)).collect():
        text = text_of(int(row.id))
        expected = [None if text is None else matches(text) for matches in SEARCHES.values()]
        assert list(row[1:]) == expected, text


SHAPES = {
    (True,): [
        "SELECT a.id FROM texts a WHERE Match(A.Msg, 'car') OR amount = 3 ORDER BY id",
        "SELECT id, match(msg, 'car') FROM texts WHERE NOT match(msg, 'boat')",
        "SELECT msg, match(msg, 'car') AS m, count(*) FILTER (WHERE match(msg, 'old')) AS n, "
        "max(CAST(match(msg, 'car') AS INT)) AS o FROM texts WHERE amount = 3 GROUP BY msg",
        "SELECT id, msg FROM cars_view WHERE amount > 4 AND msg = 'car; new'",
    ],
    (False,): [
        "SELECT match(msg, 'car') AS m, count(*) FILTER (WHERE match(msg, 'old')) FROM texts "
        "GROUP BY match(msg, 'car')",
    ],
    (True, True): [
        "SELECT a.id, b.id FROM texts a LEFT JOIN texts b ON a.id = b.id AND match(b.msg, 'boat') "
        "WHERE match(a.msg, 'red') AND (match(b.msg, 'boat') OR b.msg IS NULL)",
        "WITH cars AS (SELECT id AS k, msg AS m FROM texts WHERE match(msg, 'car')) "
        "SELECT k FROM cars WHERE match(m, 'new') UNION ALL SELECT k FROM cars WHERE k > '7'",
        "SELECT m, count(*) FROM (SELECT msg AS m FROM texts WHERE amount = 3 UNION ALL "
        "SELECT body FROM texts_view) GROUP BY m HAVING match(m, 'car')",
    ],
    (False, False): [
        "SELECT a.id, b.id FROM texts a FULL JOIN texts b ON a.id = b.id AND match(b.msg, 'boat')",
    ],
    (True, True, True): [
        "SELECT id FROM texts a WHERE EXISTS (SELECT 1 FROM texts b WHERE b.id = a.id "
        "AND match(b.msg, 'old') AND match(a.msg, 'car')) "
        "AND amount < (SELECT max(amount) FROM texts WHERE match(msg, 'boat'))",
    ],
    (True, False): [
        # Spark infers the condition for the other side of the join too, whose analyzer differs.
        "SELECT count(*) FROM texts a JOIN stemmed b ON a.msg = b.msg WHERE match(a.msg, 'cars')",
    ],
}


@pytest.fixture(scope="module")
def views(enabled_once: SparkSession, spark, texts) -> Iterator[None]:
    session = enabled_once
    session.sql("CREATE TEMP VIEW texts_view AS SELECT id, msg AS body FROM texts")
    session.sql("CREATE TEMP VIEW cars_view AS SELECT * FROM texts WHERE match(msg, 'car')")
    plain = "SELECT * FROM texts WHERE msg RLIKE r'(?i)\\bcar\\b'"
    spark.sql("CREATE TEMP VIEW texts_view AS SELECT id, msg AS body FROM texts")
    spark.sql(f"CREATE TEMP VIEW cars_view AS {plain}")
    yield
    for each in (session, spark):
        for name in ("texts_view", "cars_view"):
            each.catalog.dropTempView(name)


@pytest.mark.parametrize(("query", "served"), each_of(SHAPES))
def test_searches_in_query_shapes(spark, enabled, views, query, served) -> None:
    """With and without the index, as a regular expression finds the same words in these texts."""
    plain = re.sub(r"(?i)match\(([\w.]+), '(\w+)'\)", r"\1 RLIKE r'(?i)\\b\2\\b'", query)
    expected = spark.sql(plain)
    for is_on in (True, False):
        enabled.conf.set("spark.hudi.index.enabled", str(is_on).lower())
        found = enabled.sql(query)
        assert [each.dataType for each in found.schema] == [
            each.dataType for each in expected.schema
        ]
        answers = [sorted(map(repr, map(tuple, each.collect()))) for each in (found, expected)]
        assert answers[0] == answers[1]
        if is_on:
            assert tuple(by_index(last_queries(enabled)[-1])) == served


@pytest.mark.usefixtures("read_by_tasks")
def test_many_rows_are_read_by_tasks_without_a_second_match(enabled, texts) -> None:
    found = enabled.sql(
        "SELECT id, match(msg, 'new') AS n FROM texts WHERE match(msg, 'car') AND amount < 8"
    )
    has, is_new = SEARCHES["Match ( MSG , 'car' )"], re.compile(r"(?i)\bnew\b").search
    expected = {
        str(k): bool(is_new(text_of(k) or ""))
        for k in range(ROWS)
        if k % 10 < 8 and has(text_of(k) or "")
    }
    assert {row.id: row.n for row in found.collect()} == expected
    [use] = last_queries(enabled)[-1]
    assert (use.by_index, use.in_tasks) == (True, True)


def test_rows_are_counted_by_the_index(enabled, texts) -> None:
    has = SEARCHES["match_phrase(msg, 'new car')"]
    query = "SELECT count(*) AS n FROM texts WHERE match_phrase(msg, 'new car')"
    [row] = enabled.sql(query).collect()
    assert row.n == sum(has(text_of(key) or "") for key in range(ROWS))
    [use] = last_queries(enabled)[-1]
    assert use.reason == "the index counts its rows; 1 slice read without it"


def test_scores_in_an_earlier_snapshot(enabled, texts: IndexedTable) -> None:
    first = min(each.requested for each in texts.hudi_table.completed_instants())
    query = "SELECT id, score() AS s FROM texts TIMESTAMP AS OF '{}' WHERE match(msg, 'boat')"
    expected = texts.search("msg", "boat", k=ROWS, columns=["id"], as_of=first).to_pylist()
    assert {row.id: row.s for row in enabled.sql(query.format(first)).collect()} == {
        each["id"]: each["_score"] for each in expected
    }


def scores(table: IndexedTable, text: str, **options: str) -> dict[str, float]:
    found = table.search("msg", text, k=ROWS, columns=["id"], **options)
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


@pytest.mark.parametrize("session", ["enabled", "without_index"])
def test_scores_equal_those_of_search(texts: IndexedTable, session: str, request) -> None:
    sql = request.getfixturevalue(session).sql
    query = "SELECT id, score() AS s FROM texts t WHERE {} ORDER BY s DESC"
    found = [(row.id, row.s) for row in sql(query.format("match(msg, 'new car')")).collect()]
    assert dict(found) == scores(texts, "new car", words="all")
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    narrowed = sql(query.format("amount < 5 AND match_any(t.msg, 'NEW car tag42')")).collect()
    assert {row.id: row.s for row in narrowed} == scores(texts, "NEW car tag42", where="amount < 5")


def test_scores_in_order_by_aggregates_windows_and_disjunctions(enabled, texts) -> None:
    every = scores(texts, "new car", words="all")
    best = sorted(every.values(), reverse=True)[:3]
    search = "FROM texts WHERE match(msg, 'new car')"
    ordered = enabled.sql(f"SELECT id {search} ORDER BY score() DESC LIMIT 3").collect()
    assert [every[row.id] for row in ordered] == best
    [use] = last_queries(enabled)[-1]
    assert (use.reason, use.rows) == (BEST, 3)
    query = f"SELECT id, score() s {search} AND amount < 7 ORDER BY s DESC LIMIT 2 OFFSET 1"
    narrowed = sorted((every[key] for key in every if int(key) % 10 < 7), reverse=True)
    assert [row.s for row in enabled.sql(query).collect()] == narrowed[1:3]
    assert [use.rows for use in last_queries(enabled)[-1]] == [3]
    awaited = query.replace("amount < 7", "amount < (SELECT min(amount) + 7 FROM texts)")
    assert [row.s for row in enabled.sql(awaited).collect()] == narrowed[1:3]
    aggregate = enabled.sql(f"SELECT max(score()) AS best {search} AND score() > 0.1")
    assert [row.best for row in aggregate.collect()] == best[:1]
    plan = str(aggregate._jdf.queryExecution().executedPlan().toString())
    index_scan = plan.index("HudiIndexScan")
    assert "Python" not in plan[:index_scan], "the driver scores what it reads"
    ranked = f"SELECT id, rank() OVER (ORDER BY score() DESC) AS place {search}"
    assert {row.id for row in enabled.sql(ranked).collect() if row.place == 1} == {
        key for key in every if every[key] == best[0]
    }
    either = enabled.sql("SELECT id, score() s FROM texts WHERE match(msg, 'new car') OR id < '3'")
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
def test_searches_and_scores_without_an_answer_are_refused(enabled, texts, query: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        enabled.sql(query)
    code = caught.value.getErrorClass()
    assert code in ("PREDICATE_UNSUPPORTED", "PREDICATE_INVALID", "SCORE_UNAVAILABLE")
    assert str(caught.value).startswith(f"{code}: ")
    assert REFUSED[query] in str(caught.value)
    with pytest.raises((PredicateUnsupported, PredicateInvalid, ScoreUnavailable)) as named:
        IndexSession(enabled).sql(query)  # whose errors are the service's
    assert REFUSED[query] in str(named.value)
    assert named.value.remedy


def test_index_sessions_of_an_enabled_session(enabled, texts) -> None:
    session = IndexSession(enabled)
    assert keys(session.sql("SELECT id FROM texts WHERE match(msg, 'car')")) == CARS
    [row] = session.sql("EXPLAIN INDEX SELECT id FROM texts WHERE match(msg, 'car')").collect()
    assert (row.reader, row.condition) == ("driver", "match(`msg`, 'car')")
    session.close()


def test_search_for_null_finds_nothing(enabled, texts) -> None:
    assert enabled.sql("SELECT id FROM texts WHERE match(msg, NULL)").collect() == []
    query = "SELECT id FROM texts WHERE NOT match(msg, :text) OR id = '3'"
    assert keys(enabled.sql(query, args={"text": None})) == [3]


@pytest.fixture
def user_score(enabled: SparkSession) -> Iterator[None]:
    """A user-defined function named `score`."""
    enabled.udf.register("score", lambda text: f"<{text}>")
    yield
    enabled.sql("DROP TEMPORARY FUNCTION score")
    enable(enabled)


def test_functions_of_the_user_keep_their_names(enabled, texts, user_score) -> None:
    enable(enabled)
    query = "SELECT score(id) AS s FROM texts WHERE MATCH (msg, 'boat') AND amount = 2"
    assert {row.s for row in enabled.sql(query).collect()} == {"<2>", "<62>", "<122>", "<182>"}
    with pytest.raises(AnalysisException, match="match_none"):
        enabled.sql("SELECT match_none(msg) FROM texts WHERE match(msg, 'boat')")


def test_permanent_functions_of_the_user_keep_their_names(enabled, texts) -> None:
    enabled.sql("CREATE FUNCTION match_any AS 'no.such.Function'")
    try:
        with pytest.raises(AnalysisException, match=r"no\.such\.Function"):
            enabled.sql("SELECT id FROM texts WHERE match_any(msg, 'boat')")
    finally:
        enabled.sql("DROP FUNCTION default.match_any")
    assert keys(enabled.sql("SELECT id FROM texts WHERE match_any(msg, 'boat')"))


def test_statements_that_write(enabled, spark, texts, tmp_path) -> None:
    """CACHE, INSERT, UPDATE and DELETE evaluate searches like any other condition."""
    enabled.sql("CACHE TABLE hits AS SELECT id, msg FROM texts WHERE match(msg, 'car')")
    assert keys(enabled.table("hits")) == CARS
    newer = [key for key in CARS if re.search(r"(?i)\bnew\b", text_of(key) or "")]
    cached = enabled.table("hits").where("id >= '0'")
    assert keys(cached.where(F.expr("match(msg, 'new')"))) == newer
    enabled.sql("UNCACHE TABLE hits")
    enabled.sql(
        f"CREATE TABLE copied USING parquet LOCATION '{tmp_path / 'copied'}' AS "
        "SELECT id, score() AS s FROM texts WHERE match(msg, 'car')"
    )
    enabled.sql("INSERT INTO copied SELECT id, 0 FROM texts WHERE match(msg, 'boat')")
    every = scores(texts, "car", words="all")
    assert {
        row.id: row.s for row in enabled.sql("SELECT * FROM copied WHERE s > 0").collect()
    } == every
    assert keys(enabled.sql("SELECT id FROM copied WHERE s = 0")) == BOATS
    enabled.sql("DROP TABLE copied")
    enabled.catalog.dropTempView("hits")


@needs.HIVE
@pytest.mark.usefixtures("no_metadata_table")
def test_updates_and_deletes(enabled, texts, tmp_path) -> None:
    path = tmp_path / "texts"
    shutil.copytree(texts.uri.removeprefix("file://"), path)
    enabled.sql(f"CREATE TABLE changed USING hudi LOCATION '{path}'")
    enabled.sql("UPDATE changed SET amount = 77 WHERE match(msg, 'car')")
    assert keys(enabled.sql("SELECT id FROM changed WHERE amount = 77")) == CARS
    merge = (
        "MERGE INTO changed t USING (SELECT id, 9L AS ts FROM texts WHERE match(msg, 'car')) s "
        "ON t.id = s.id WHEN MATCHED {} THEN UPDATE SET amount = 78, ts = s.ts"
    )
    enabled.sql(merge.format(""))
    assert keys(enabled.sql("SELECT id FROM changed WHERE amount = 78")) == CARS
    for condition in ("AND match(t.msg, 'new')", "AND NOT match(upper(t.msg), 'new')"):
        with pytest.raises(AnalysisException, match="PREDICATE_UNSUPPORTED: match cannot stand"):
            enabled.sql(merge.format(condition))
    enabled.sql(
        "UPDATE changed SET amount = CASE WHEN match(msg, 'new') THEN 5 ELSE 60 END "
        "WHERE match(msg, 'car')"
    )
    old = [key for key in CARS if not re.search(r"(?i)\bnew\b", text_of(key) or "")]
    assert keys(enabled.sql("SELECT id FROM changed WHERE amount = 60")) == old
    enabled.sql(
        "INSERT INTO changed SELECT string(int(id) + 1000) AS id, msg, amount, ts FROM changed "
        "WHERE match(msg, 'boat')"
    )
    added = enabled.sql("SELECT id FROM changed WHERE id >= '1000' AND length(id) = 4")
    assert keys(added) == [1000 + key for key in BOATS]
    enabled.sql("DELETE FROM changed WHERE match(msg, 'boat')")
    left = keys(enabled.table("changed"))
    assert left == [key for key in range(ROWS) if key not in BOATS]
    enabled.sql("DROP TABLE changed")


def test_index_that_fails_when_the_query_runs(enabled, texts, monkeypatch) -> None:
    """Spark's own scan evaluates the search."""

    def fail(self: RelationReader, *_: object) -> None:
        raise SnapshotChanged("The table moved.")

    for query in (
        "SELECT id FROM texts WHERE match(msg, 'car')",
        "SELECT id, score() FROM texts WHERE match(msg, 'car') ORDER BY score() DESC LIMIT 1000",
        "SELECT id, max(score()) FROM texts WHERE match(msg, 'car') GROUP BY id",
    ):
        frame = enabled.sql(query)
        frame._jdf.queryExecution().executedPlan()
        [use] = last_queries(enabled)[-1]
        assert use.by_index
        with monkeypatch.context() as patched:
            patched.setattr(RelationReader, "rows", fail)
            assert keys(frame) == CARS
        [use] = last_queries(enabled)[-1]
        assert (use.by_index, use.reason) == (False, "The table moved")


def test_rule_that_is_left_out_is_named(enabled, texts, settings_of_both) -> None:
    settings_of_both("spark.sql.optimizer.excludedRules", "hudiindex.spark.catalyst.IndexRule")
    for query in (
        "SELECT id FROM texts WHERE match(msg, 'car')",
        "SELECT match(msg, 'car') FROM texts",
    ):
        with pytest.raises((AnalysisException, Py4JJavaError), match="excludedRules"):
            enabled.sql(query).collect()


def test_relations_that_a_hint_leaves_to_spark(enabled, texts) -> None:
    query = "SELECT /*+ NO_INDEX */ id FROM texts WHERE match(msg, 'car')"
    assert keys(enabled.sql(query)) == CARS
    [use] = last_queries(enabled)[-1]
    assert "NO_INDEX" in use.reason


@pytest.fixture(scope="module")
def nested(spark, make_table) -> None:
    """A table with analyzed words in a struct and in the partition column."""
    rows = spark.createDataFrame(
        [
            (str(n), (("red car", "blue boat")[n % 2], n), ("old town", "new town")[n // 10])
            for n in range(20)
        ],
        "id string, place struct<name: string, zip: int>, area string",
    ).withColumn("ts", F.lit(0))
    words = {"analyzer": "standard", "ranked": "true"}
    area = Column(name="area", options={"analyzer": "standard"})
    columns = [Column(name="place.name", options=words), area]
    make_table("nested", rows, columns, partition_column="area")


@pytest.mark.parametrize("enabled_too", [True, False])
def test_words_in_structs_and_partitions(enabled, nested, enabled_too: bool) -> None:
    enabled.conf.set("spark.hudi.index.enabled", str(enabled_too).lower())
    even = [key for key in range(20) if key % 2 == 0]
    assert keys(enabled.sql("SELECT id FROM nested WHERE match(place.name, 'car')")) == even
    assert keys(enabled.sql("SELECT id FROM nested WHERE match(area, 'old')")) == list(range(10))
    both = "SELECT id, match(place.name, 'RED') AS r FROM nested WHERE match(area, 'new')"
    rows = enabled.sql(both).collect()
    assert {int(row.id): row.r for row in rows} == {key: key in even for key in range(10, 20)}
    scored = enabled.sql(
        "SELECT id, score() AS s FROM nested WHERE match(place.name, 'car') "
        "AND place.zip > 3 ORDER BY s DESC LIMIT 50"
    )
    assert keys(scored) == even[2:]
    if enabled_too:
        assert last_queries(enabled)[-1][0].by_index


def test_keys_of_joins_with_searches(enabled, spark, texts) -> None:
    """The rows of a search give keys to the other side, which has a search, too."""
    query = (
        "SELECT a.id, match(b.msg, 'new') AS n FROM texts a JOIN texts b ON a.amount = b.amount "
        "AND a.id = b.id WHERE match_phrase(a.msg, 'new old car') AND match_any(b.msg, 'car boat')"
    )
    expected = {str(key) for key in range(ROWS) if text_of(key) == "a new old car"}
    found = enabled.sql(query).collect()
    assert ({row.id for row in found}, {row.n for row in found}) == (expected, {True})
    assert by_index(last_queries(enabled)[-1]) == [True, True]


def test_views(enabled, texts) -> None:
    """Spark keeps functions of a session out of permanent views."""
    with pytest.raises(AnalysisException, match="references to the temporary object `match`"):
        enabled.sql("CREATE VIEW lasting AS SELECT id FROM texts WHERE match(msg, 'car')")
    enabled.table("texts").where(F.expr("match(msg, 'car')")).createOrReplaceTempView("found")
    assert keys(enabled.sql("SELECT id FROM found WHERE amount < 100")) == CARS
    enabled.catalog.dropTempView("found")
