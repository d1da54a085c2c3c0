"""Conditions as Spark's optimizer leaves them, translated to predicate texts."""

import pytest

from hudi_index_service import open_table
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, write

_QUERY = "SELECT * FROM conditioned WHERE {}"
_ROW = """
    SELECT 'k' AS id, 0L AS ts, true AS flag, 1 AS n, 2L AS big, 1.5f AS f, 2.5D AS d,
    CAST(1.25 AS DECIMAL(10, 2)) AS price, 'm' AS msg, 'n' AS name, X'00' AS bytes,
    DATE'2024-01-01' AS day, TIMESTAMP'2024-01-01 00:00:00' AS at,
    named_struct('a', 1, 'b', named_struct('c', 'x')) AS s, array('x') AS tags
"""


@pytest.fixture(scope="module")
def conditioned(spark, tmp_path_factory):
    """An indexed table with a column of each type, and one row."""
    path = tmp_path_factory.mktemp("conditioned") / "table"
    options = hudi_options("conditioned", **NO_METADATA_TABLE)
    write(spark.sql(_ROW), path, options, "insert")
    with open_table(path) as table:
        table.create_index("i", ["n"])
        table.build(strategy="all").raise_for_failures()
    spark.sql(f"CREATE TABLE conditioned USING hudi LOCATION '{path}'")
    yield
    spark.sql("DROP TABLE conditioned")


@pytest.fixture
def where(index_session, conditioned):
    """Translates a condition after Spark's optimizer has rewritten it."""

    def translated(condition: str) -> str | None:
        index_session.sql(_QUERY.format(condition))
        return index_session.relations[0].where

    return translated


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("flag", "`flag`"),
        ("NOT flag", "NOT (`flag`)"),
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
