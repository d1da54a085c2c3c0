"""Conditions of requests, and conditions as Spark's optimizer leaves them, as predicates."""

import json

import pyarrow as pa
import pytest

from hudi_index_service.columns import column_name
from hudi_index_service.errors import SparkUnsupported
from hudi_index_service.predicate.expression import AnalyzedText
from hudi_index_service.sql import IndexSession
from hudi_index_service.sql.rule.condition import Translation
from hudi_index_service.sql.rule.request import Counts, read_request


def leaf(op, *values, column=("a",), type="integer", **more):
    return {"op": op, "column": list(column), "type": type, "values": list(values), **more}


UNKNOWN = {"op": "unknown"}
ONE = leaf("=", 1)
NOT_NULL = {"op": "is not null", "column": ["a"]}


def both(*of):
    return {"op": "and", "of": list(of)}


def either(*of):
    return {"op": "or", "of": list(of)}


def negated(of):
    return {"op": "not", "of": [of]}


TYPES = {
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "array": pa.list_(pa.string()),
}


def translation(kind="integer"):
    """Of a table with a column ``a`` of a type and a struct ``p``, and an index for the English
    words of one of its fields."""
    struct = pa.struct([("c`d", pa.string()), ("c.d", pa.string())])
    schema = pa.schema([("a", TYPES[kind]), ("p", struct)])
    texts = {column_name(("p", "c.d")): (AnalyzedText("english", None),)}
    return Translation(schema, lambda: texts)


def implied(conditions, kind="integer"):
    found = translation(kind).implied(conditions)
    return None if found is None else str(found)


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (ONE, "`a` = 1"),
        (leaf("<", 5, type="long"), "`a` < 5L"),
        (leaf("<=>", None), "`a` IS NULL"),
        (leaf("in", 1, None, 3, 1), "`a` IN (1, 3, NULL)"),
        (leaf("in", "x", "it's", type="string"), r"`a` IN ('x', 'it\'s')"),
        (leaf("in", 20454, 20455, type="date"), "`a` IN (DATE'2026-01-01', DATE'2026-01-02')"),
        (leaf(">", "NaN", type="double"), "`a` > CAST('NaN' AS DOUBLE)"),
        (leaf(">", "1.0E10", type="double"), "`a` > 10000000000.0D"),
        (leaf("=", "0.1", type="float"), "`a` = 0.1F"),
        (leaf("=", "12.50", type="decimal(10,2)"), "`a` = 12.50BD"),
        (leaf("=", "AP8=", type="binary"), "`a` = X'00FF'"),
        (leaf("=", 20454, type="date"), "`a` = DATE'2026-01-01'"),
        (leaf("=", 0, type="timestamp"), "`a` = TIMESTAMP'1970-01-01 00:00:00Z'"),
        (leaf("=", True, type="boolean"), "`a` = TRUE"),
        (leaf("=", "it's", type="string", column=("p", "c`d")), r"`p`.`c``d` = 'it\'s'"),
        (leaf("starts with", "5%_!", type="string"), "`a` LIKE '5!%!_!!%' ESCAPE '!'"),
        (leaf("like", "a#_%", type="string", escape="#"), "`a` LIKE 'a#_%' ESCAPE '#'"),
        (leaf("rlike", "^a", type="string"), "`a` RLIKE '^a'"),
        (leaf("array contains", "x", type="string"), "array_contains(`a`, 'x')"),
        ({"op": "is true", "column": ["a"], "type": "boolean"}, "`a` = TRUE"),
        ({"op": "is null", "column": ["a"]}, "`a` IS NULL"),
        (negated(ONE), "NOT (`a` = 1)"),
        (negated(NOT_NULL), "NOT (`a` IS NOT NULL)"),
        # As Spark does not write it: the column has another type.
        (leaf("like", "a%", escape="!"), None),
        # Parts of a conjunction may be left out, arms of a disjunction and of NOT may not.
        (both(ONE, UNKNOWN), "`a` = 1"),
        (either(ONE, both(UNKNOWN, leaf("=", 2))), "(`a` = 1) OR (`a` = 2)"),
        (either(ONE, UNKNOWN), None),
        (negated(both(ONE, UNKNOWN)), None),
        (negated(either(ONE, leaf("=", 2))), "NOT ((`a` = 1) OR (`a` = 2))"),
        # What the service does not answer is left out, too.
        (both(ONE, leaf("=", 1, column=("unanswered",))), "`a` = 1"),
        (NOT_NULL, None),
        (leaf("=", 1, type="interval day"), None),
        (leaf("≈", 1), None),
    ],
)
def test_conditions_as_predicates(condition, text):
    kind = "array" if condition["op"] == "array contains" else condition.get("type", "integer")
    assert implied([condition], kind if kind in TYPES else "integer") == text


def test_several_conditions_are_joined_once_each():
    conditions = [NOT_NULL, ONE, leaf(">", 5), ONE, UNKNOWN]
    assert implied(conditions) == "(`a` = 1) AND (`a` > 5)"


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        ([ONE], "`a` = 1"),
        ([NOT_NULL, ONE], "(`a` IS NOT NULL) AND (`a` = 1)"),
        ([either(ONE, both(NOT_NULL, ONE))], "(`a` = 1) OR ((`a` IS NOT NULL) AND (`a` = 1))"),
        ([ONE, UNKNOWN], None),
        ([both(ONE, UNKNOWN)], None),
        ([ONE, leaf("=", 1, column=("unanswered",))], None),
    ],
)
def test_exact_condition_leaves_nothing_out(conditions, text):
    found = translation().exact(conditions)
    assert (found if found is None else str(found)) == text


def request_text(**fields):
    return json.dumps(
        {
            "version": 1,
            "table": "file:/t",
            "instants": ["20260101000000000"],
            "options": {"path": "file:/t", "as.of.instant": "2026-01-01"},
            "columns": [{"name": "id", "type": "string"}],
            "where": [ONE],
            **fields,
        }
    )


def test_request():
    request = read_request(request_text())
    assert (request.uri, request.as_of, request.query_type) == ("file:/t", "2026-01-01", "snapshot")
    assert (request.names, request.types) == (["id"], ["string"])


def test_request_of_counts():
    assert read_request(request_text()).counts is None
    fields = {"names": ["k", "n"], "group": "id", "of": [[NOT_NULL]]}
    assert read_request(request_text(counts=fields)).counts == Counts(
        **fields, most=None, all=False
    )
    fields = {"names": ["row"], "of": [[]], "most": 3}
    assert read_request(request_text(counts=fields)).counts == Counts(
        **fields, group=None, all=False
    )


def test_request_with_unknown_option_is_sparks():
    reason = read_request(request_text(options={"no.such": "1"}))
    assert reason == "the service does not know the option no.such"


def test_request_of_another_release_is_refused():
    with pytest.raises(SparkUnsupported, match="hudi-index-spark and hudi-index-service"):
        read_request(request_text(version=2))


def test_searches_need_an_index_with_their_analyzer():
    def search(analyzer):
        call = {"function": "match", "text": "it's", "edits": None, "analyzer": analyzer}
        return {"op": "search", "column": ["p", "c.d"], "call": call}

    def text(*conditions):
        return implied(conditions)

    assert text(search("english")) == r"match(`p`.`c.d`, 'it\'s')"
    assert text(negated(search("english")), ONE) == (
        r"(NOT (match(`p`.`c.d`, 'it\'s'))) AND (`a` = 1)"
    )
    assert text(search("standard"), ONE) == "`a` = 1"
    assert text(either(search("standard"), ONE)) is None


_QUERY = "SELECT * FROM conditioned WHERE {}"
_ROW = """
    SELECT 'k' AS id, 0L AS ts, true AS flag, 1 AS n, 2L AS big, 1.5f AS f, 2.5D AS d,
    CAST(1.25 AS DECIMAL(10, 2)) AS price, 'm' AS msg, 'n' AS name, X'00' AS bytes,
    DATE'2024-01-01' AS day, TIMESTAMP'2024-01-01 00:00:00' AS at,
    named_struct('a', 1, 'b', named_struct('c', 'x')) AS s, array('x') AS tags
"""


@pytest.fixture(scope="module")
def conditioned(spark, make_table):
    """An indexed table with a column of each type, and one row."""
    return make_table("conditioned", spark.sql(_ROW), ["n"])


@pytest.fixture
def where(enabled, conditioned):
    """Translates a condition after Spark's optimizer has rewritten it."""
    session = IndexSession(enabled)

    def translated(condition: str) -> str | None:
        session.sql(_QUERY.format(condition))
        return session.relations[0].where

    return translated


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("flag", "`flag` = TRUE"),
        ("NOT flag", "NOT (`flag` = TRUE)"),
        ("3 < n", "`n` > 3"),
        ("n <> -5", "NOT (`n` = -5)"),
        ("big >= -9223372036854775808", "`big` >= -9223372036854775808L"),
        ("N <=> 5", "`n` <=> 5"),
        ("f = 1.1f", "`f` = 1.1F"),
        ("d < double('Infinity')", "`d` < CAST('Infinity' AS DOUBLE)"),
        ("d = double('NaN')", "`d` = CAST('NaN' AS DOUBLE)"),
        ("d > 1e-300D", "`d` > 1e-300D"),
        ("price > 1.5", "`price` > 1.50BD"),
        ("price = -0.05", "`price` = -0.05BD"),
        ("msg = 'it''s'", "`msg` = 'its'"),
        (r"msg = 'a\'b\\c\nd'", r"`msg` = 'a\'b\\c\nd'"),
        ("msg = 'ж 😀'", "`msg` = 'ж 😀'"),
        ("msg LIKE 'a!_%'", "`msg` LIKE 'a!_%' ESCAPE '\\\\'"),
        ("msg LIKE '100!%%' ESCAPE '!'", "`msg` LIKE '100!%%' ESCAPE '!'"),
        ("msg LIKE 'ab%'", "`msg` LIKE 'ab%' ESCAPE '!'"),
        ("msg LIKE '%a!b'", "`msg` LIKE '%a!!b' ESCAPE '!'"),
        ("msg LIKE '%ab%'", "`msg` LIKE '%ab%' ESCAPE '!'"),
        (
            "msg LIKE 'a%b'",
            "(`msg` LIKE 'a%' ESCAPE '!') AND (`msg` LIKE '%b' ESCAPE '!')",
        ),
        ("msg RLIKE 'a+'", "`msg` RLIKE 'a+'"),
        ("msg IN ('a', 'b', NULL)", "`msg` IN ('a', 'b', NULL)"),
        ("n IS NULL", "`n` IS NULL"),
        ("n IS NOT NULL OR msg = 'x'", "(`n` IS NOT NULL) OR (`msg` = 'x')"),
        ("bytes = X'00ff'", "`bytes` = X'00FF'"),
        ("day = '1500-02-03'", "`day` = DATE'1500-02-03'"),
        ("day > DATE'-0005-01-01'", "`day` > DATE'-0005-01-01'"),
        (
            "at >= TIMESTAMP'2024-01-01 00:00:00.123456+02:00'",
            "`at` >= TIMESTAMP'2023-12-31 22:00:00.123456Z'",
        ),
        ("s.a = 3", "`s`.`a` = 3"),
        ("s.b.c = 'x'", "`s`.`b`.`c` = 'x'"),
        ("array_contains(tags, 'x')", "array_contains(`tags`, 'x')"),
        ("n BETWEEN 1 AND 3", "(`n` >= 1) AND (`n` <= 3)"),
        ("n = 1 OR msg = 'x'", "(`n` = 1) OR (`msg` = 'x')"),
    ],
)
def test_condition_is_translated(where, condition, expected):
    text = where(condition)
    assert text == expected
    if text is not None:
        assert where(text) == text, "as Spark SQL, the text means something else"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("n = 1 AND upper(msg) = 'X'", "`n` = 1"),
        ("n = 1 AND rand() < 0.5", "`n` = 1"),
        ("n = 1 AND msg IS NOT NULL", "`n` = 1"),
        ("n = 1 AND msg = name", "`n` = 1"),
        ("n = 1 AND int(msg) = 7", "`n` = 1"),
        ("n = 1 AND n = (SELECT max(n) FROM conditioned)", "`n` = 1"),
        ("n = 1 OR upper(msg) = 'X'", None),
        ("(n = 1 AND upper(msg) = 'X') OR big = 2", "(`n` = 1) OR (`big` = 2L)"),
        ("NOT (n = 1 AND upper(msg) = 'X')", None),
        ("NOT (n = 1 OR upper(msg) = 'X')", "NOT (`n` = 1)"),
        (r"n = 1 AND msg RLIKE '(?<=a)b'", "`n` = 1"),
        ("coalesce(n = 1, false)", "`n` = 1"),
        ("coalesce(n = 1, true)", None),
        # Spark adds this to every condition.
        ("n IS NOT NULL", None),
    ],
)
def test_unsupported_conditions_are_left_to_spark(where, condition, expected):
    assert where(condition) == expected


def test_long_in_lists(where):
    """From eleven values on, Spark's optimizer turns the list into a set."""
    numbers = ", ".join(map(str, range(20)))
    assert where(f"n IN ({numbers})").count(",") == 19
    texts = [f"'{letter}'" for letter in "abcdefghijkl"]
    text = where(f"msg IN ({', '.join([*texts, chr(39) + 'null' + chr(39)])})")
    assert sorted(text[len("`msg` IN (") : -1].split(", ")) == [*texts, "'null'"]
    assert ", NULL" in where(f"msg IN ({', '.join([*texts, 'NULL'])})")
    days = ", ".join(f"DATE'2024-01-{day:02}'" for day in range(1, 13))
    assert "DATE'2024-01-12'" in where(f"day IN ({days})")
    prices = ", ".join(f"{number}.25BD" for number in range(12))
    assert "11.25BD" in where(f"price IN ({prices})")
