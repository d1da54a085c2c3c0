"""Unsupported predicates are refused with a code, a position in the text and a remedy."""

import pyarrow as pa
import pytest

from hudi_index_service.errors import (
    ColumnNotFound,
    ConfigInvalid,
    PredicateInvalid,
    PredicateUnsupported,
)
from hudi_index_service.predicate import evaluate, parse_predicate

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("big", pa.int64()),
        ("price", pa.decimal128(38, 10)),
        ("weight", pa.float32()),
        ("name", pa.string()),
        ("paid", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("numbers", pa.list_(pa.int32())),
        ("place", pa.struct([("x", pa.int32()), ("Twin", pa.int32()), ("twin", pa.int32())])),
        ("order date", pa.date32()),
        ("Twin", pa.int32()),
        ("twin", pa.int32()),
    ]
)


def parse(where, **options):
    return parse_predicate(where, SCHEMA, **options)


INVALID = {
    "": "line 1, column 1",
    "   ": "line 1, column 4",
    "id =": "its end at line 1, column 5",
    "id = 1 AND": "line 1, column 11",
    "id = 1\n  AND = 2": "'=' at line 2, column 7",
    "(id = 1": "line 1, column 8",
    "id = 1)": "')' at line 1, column 7",
    "id = 'x": 'Unterminated text "\'" at line 1, column 6',
    "`id = 1": "Unterminated text '`' at line 1, column 1",
    "id = 1 /* x": "Unterminated comment at line 1, column 8",
    "id IN ()": "empty IN list at line 1, column 8",
    "id": "`id` is of type int32, not boolean",
    "NOT 'x'": "'x' is of type string, not boolean",
    "id = 1 \\ 2": "Unexpected character '\\\\' at line 1, column 8",
    "é = 1": "Unexpected character 'é' at line 1, column 1",
    "id = 300Y": "300Y does not fit int8",
    "id = 1.5L": "1.5L does not fit int64",
    "weight = 3.5e38F": "3.5e38F does not fit float",
    "weight = 1e400": "1e400 does not fit double",
    f"price = {'9' * 39}": "more than 38 digits",
    "day = DATE'2024-13-01'": "at line 1, column 7 of the predicate is not a valid DATE",
    "at > TIMESTAMP'2024-01-01 25:00:00'": "is not a valid TIMESTAMP",
    "id = DATE'2024-01-01'": "Spark cannot compare `id` (int32) with DATE'2024-01-01'",
    "day = 5": "Spark cannot compare `day` (date32[day]) with 5",
    "price IN (CAST('Infinity' AS DOUBLE), X'FF')": "Spark cannot compare",
    "price > X'FF'": "Spark cannot compare `price` (decimal128(38, 10)) with X'FF'",
    "TWIN = 1": "column TWIN is ambiguous: several columns differ from it only in case (line 1",
    "place.TWIN = 1": "column place.TWIN is ambiguous",
    "array_contains(name, 'a')": "array_contains takes an array, and `name` is of type string",
    "array_contains(tags, NULL)": "Spark refuses array_contains(`tags`, NULL)",
    "array_contains(tags, 7)": "Spark cannot look for 7 in `tags` (list<item: string>)",
    "array_contains(numbers, '7')": "Spark cannot look for '7' in `numbers`",
    "array_contains(numbers, DATE'2024-01-01')": "Spark cannot compare",
    "place.x. = 1": "The name of a field expected, but found '=' at line 1, column 10",
    "name LIKE 'a!' ESCAPE '!'": "ESC_AT_THE_END",
    "name LIKE '!a' ESCAPE '!'": "ESC_IN_THE_MIDDLE",
    "name LIKE 'a\\\\'": "ESC_AT_THE_END",
    "name LIKE 'a' ESCAPE ''": "one character",
    "name LIKE 'a' ESCAPE 'xx'": "one character",
    "name LIKE 'a' ESCAPE '😀'": "one character",
    "id = CAST('1' AS DECIMAL(39,0))": "no type DECIMAL(39,0)",
}


@pytest.mark.parametrize("where", INVALID)
def test_invalid_text_is_refused_with_its_position(where):
    with pytest.raises(PredicateInvalid) as caught:
        parse(where)
    assert caught.value.code == "PREDICATE_INVALID"
    assert INVALID[where] in caught.value.message
    assert caught.value.remedy


UNSUPPORTED = {
    "upper(name) = 'X'": "'upper' at line 1, column 1",
    "name = lower('X')": "'lower' at line 1, column 8",
    "date('2024-01-01') = day": "'date' at line 1, column 1",
    "id = try_cast('1' AS INT)": "'try_cast' at line 1, column 6",
    "id + 1 = 2": "'+' at line 1, column 4",
    "id = +1": "'+' at line 1, column 6",
    "id = -id": "'-' at line 1, column 6",
    "id = 1 + 1": "'+' at line 1, column 8",
    "id = big": "A column compared with a column: 'id'",
    "id IN (1, big)": "A column in an IN list: 'big' at line 1, column 11",
    "id IN (SELECT 1)": "'SELECT' at line 1, column 8",
    "EXISTS (SELECT 1)": "'EXISTS' at line 1, column 1",
    "(id, big) IN ((1, 2))": "',' at line 1, column 4",
    "id RLIKE '7'": "RLIKE on a value that is not a string column: 'id' at line 1, column 1",
    "name RLIKE raw": "A RLIKE pattern that is not a string literal: 'raw'",
    r"name RLIKE '\\bcar'": r"A regular expression with \b: ",
    "name RLIKE '(?=a)'": "A regular expression with a group (?…",
    "name RLIKE 'a++'": "a possessive quantifier",
    "name RLIKE '(a*)*'": "repetition of what may be empty",
    "name RLIKE 'a$b'": "$ before the end",
    "name RLIKE 'a{2000}'": "repetition beyond what can be compiled",
    "name RLIKE '(a'": "a ( without its )",
    "name RLIKE '[a-\uffff]'": "a class that holds surrogates",
    "name ILIKE 'a'": "'ILIKE' at line 1, column 6",
    "name LIKE ANY ('a')": "'ANY' at line 1, column 11",
    "name LIKE 7": "A LIKE pattern that is not a string literal: '7'",
    "id LIKE '7'": "LIKE on a value that is not a string column: 'id'",
    "array_contains('a', tags)": "array_contains on a value that is not a column: \"'a'\"",
    "array_contains(tags, name)": "array_contains with a column as value: 'name'",
    "array_contains(numbers, 1.5)": "No value or several values of type int32 equal 1.5",
    "array_contains(tags, 'a') = TRUE": "'=' at line 1, column 27",
    "place = 'a'": "`place` (struct<x: int32, Twin: int32, twin: int32>) with 'a'",
    "tags[0] = 'a'": "'[' at line 1, column 5",
    "tags = 'a'": "`tags` (list<item: string>) with 'a'",
    "(id = 1) IS NULL": "'IS' at line 1, column 10",
    "(id = 1) = TRUE": "'=' at line 1, column 10",
    "id = (big = 1)": "A condition used as a value: '('",
    "id IS TRUE": "'TRUE' at line 1, column 7",
    "day = current_date": "'current_date' at line 1, column 7",
    "day > DATE'2024-01-01' - INTERVAL '1' DAY": "'-' at line 1, column 24",
    "CASE WHEN paid THEN paid END": "line 1, column 1",
    "name = 7": "`name` (string) with 7 by casting every value",
    "name > DATE'2024-01-01'": "by casting every value",
    "name = X'41'": "by casting every value",
    "name IN (1.5, 'a')": "as strings",
    "weight IN ('0.1')": "as strings",
    "price IN ('1.5')": "as strings",
    "paid IN ('true')": "as strings",
    # Spark casts the column to the NULL's type: values may become NULL or equal to each other.
    "name <=> CAST(NULL AS INT)": "`name` (string) to the type of CAST(NULL AS INT), which is NULL",
    "name IS NOT DISTINCT FROM CAST('x' AS DATE)": "Spark casts `name` (string)",
    "paid <=> CAST(NULL AS DECIMAL(2,2))": "Spark casts `paid` (bool)",
    "id <=> CAST(7 AS DECIMAL(38,38))": "needs 48 digits",
    "id IN (16777217, CAST(NULL AS FLOAT))": "to the type of CAST(NULL AS FLOAT), which is NULL",
    "id IN (1.0, CAST(NULL AS STRING))": "to the type of CAST(NULL AS STRING), which is NULL",
    "price NOT IN (7, CAST(NULL AS DECIMAL(38,38)))": "Spark casts `price` (decimal128(38, 10))",
    "day IN ('2024-01-01', CAST(CAST('32768' AS TIMESTAMP) AS BOOLEAN))": "TIMESTAMP'+32768-01-01",
    "paid = 1": "Comparing `paid` (bool) with 1",
    "price < TRUE": "Comparing `price` (decimal128(38, 10)) with TRUE",
    "id = TRUE": "Comparing `id` (int32) with TRUE",
    "raw = 5": "Comparing `raw` (binary) with 5",
    "day = 'today'": "'today' cannot be cast to type date32[day] with certainty",
    "at > 'now'": "'now' cannot be cast",
    "at > '10:20'": "'10:20' cannot be cast",
    "at > '2024-01-01 00:00:00 PST'": "cannot be cast",
    "at > '2024-01-01 00:00:00 right/Europe/Paris'": "cannot be cast",
    "wall > '2024-01-01 00:00:00+08:00'": "cannot be cast",
    "weight = '1.5f'": "'1.5f' cannot be cast",
    "id = CAST(300 AS TINYINT)": "'300' cannot be cast to type int8",
    "id = CAST(big AS INT)": "CAST of a column: 'big'",
    "id = CAST('1' AS ARRAY<INT>)": "Not a type that literals can be cast to: 'ARRAY'",
    f"price > 1.{'5' * 30}": "needs 58 digits; a decimal has 38",
    "big = 1.0000000000000000000001": "needs 42 digits",
    "big IN (9007199254740992D)": "More than one value of `big` equals 9007199254740992D",
    r"name = '\uD83D'": "not a Unicode character",
    "id = 1; DROP TABLE t": "More than one statement: ';' at line 1, column 7",
    "id = 1;": "More than one statement",
    "(" * 200 + "id = 1" + ")" * 200: "More than 50 nested parentheses",
    "id = " + "CAST(" * 200 + "1" + " AS INT)" * 200: "More than 50 nested parentheses",
}


@pytest.mark.parametrize("where", UNSUPPORTED)
def test_unsupported_predicates_are_refused_with_a_remedy(where):
    with pytest.raises(PredicateUnsupported) as caught:
        parse(where)
    assert caught.value.code == "PREDICATE_UNSUPPORTED"
    assert UNSUPPORTED[where] in caught.value.message
    assert caught.value.remedy


def test_local_times_with_an_ambiguous_offset_are_refused():
    with pytest.raises(PredicateUnsupported, match="before 1970"):
        parse("at > '1900-01-01'", time_zone="Europe/Amsterdam")
    with pytest.raises(PredicateUnsupported, match="is ambiguous or does not exist"):
        parse("at IN ('2024-10-27 02:30:00')", time_zone="Europe/Berlin")
    # As strings, the two moments of 02:30 are the same.
    with pytest.raises(PredicateUnsupported, match="as strings"):
        parse("at IN (TIMESTAMP'2024-10-27 02:30:00', 'x')", time_zone="Europe/Berlin")
    with pytest.raises(PredicateUnsupported, match="TIMESTAMP'2024-01-01 00:00:00'"):
        parse("wall > TIMESTAMP'2024-01-01 00:00:00'", time_zone="Europe/Berlin")
    with pytest.raises(ConfigInvalid, match="no time zone 'Mars/Olympus'"):
        parse("at > '2024-01-01'", time_zone="Mars/Olympus")


def test_unknown_column_is_refused_with_similar_names():
    with pytest.raises(ColumnNotFound) as caught:
        parse("id = 1 AND\nnmae = 'x'")
    assert "'nmae' (line 2, column 1" in caught.value.message
    assert "name" in caught.value.remedy
    for where, message, remedy in (
        ("place.y = 1", "Column place has no field 'y' (line 1, column 1", "place.x"),
        (
            "tags.x = 1",
            "tags.x: column tags has type list<item: string>",
            "only a struct has fields",
        ),
        ("name.x = 1", "name.x: column name has type string", "only a struct has fields"),
    ):
        with pytest.raises(ColumnNotFound) as caught:
            parse(where)
        assert message in caught.value.message
        assert remedy in caught.value.remedy


def test_column_names_ignore_case_unless_ambiguous():
    assert parse("ID = 1 AND Name = 'x'") == parse("id = 1 AND name = 'x'")
    assert parse("`order DATE` IS NULL").columns() == {"order date"}
    assert parse("`Twin` = 1").columns() == {"Twin"}
    assert parse("`twin` = 1").columns() == {"twin"}
    assert parse("PLACE . `X` = 1").columns() == {"place.x"}
    assert str(parse("place.X = 1")) == "`place`.`x` = 1"
    assert str(parse("`order date` IS NULL")) == "`order date` IS NULL"


def test_keywords_may_be_column_names_as_in_spark():
    schema = pa.schema([(name, pa.int32()) for name in ("date", "timestamp", "user", "set", "`")])
    where = "date = 1 AND timestamp = 2 AND user = 3 AND set = 4 AND ```` = 5"
    columns = parse_predicate(where, schema).columns()
    assert columns == {"date", "timestamp", "user", "set", "````"}


def test_name_with_a_dot_differs_from_a_struct_field():
    schema = pa.schema([("a.b", pa.int32()), ("a", pa.struct([("b", pa.string())]))])
    data = pa.table({"a.b": [1], "a": [{"b": "x"}]}, schema)
    top, field = parse_predicate("`a.b` = 1", schema), parse_predicate("a.b = 'x'", schema)
    assert (str(top), str(field)) == ("`a.b` = 1", "`a`.`b` = 'x'")
    assert (top.columns(), field.columns()) == ({"`a.b`"}, {"a.b"})
    assert evaluate(top, data).to_pylist() == evaluate(field, data).to_pylist() == [True]


INJECTED = [
    "' OR 1=1 --",
    "'; DROP TABLE t; --",
    "/* */ */",
    "\\' OR TRUE --",
    "`; SELECT",
    '" OR ""="',
    "\0",
    "\n-- x",
    "%' ESCAPE '!",
    "\u2028\u2029",
]


@pytest.mark.parametrize("text", INJECTED)
def test_quoted_hostile_text_stays_a_value(text):
    from hudi_index_service.predicate.values import string_sql

    predicate = parse(f"name = {string_sql(text)}")
    assert predicate.columns() == {"name"}
    names = pa.table({"name": [text, "other", None]})
    assert evaluate(predicate, names).to_pylist() == [True, False, None]


@pytest.mark.parametrize("text", ["' OR 1=1 --", "'; DROP TABLE t; --", "\\", "' /*", "\\' OR '"])
def test_unquoted_hostile_text_is_refused(text):
    with pytest.raises((PredicateInvalid, PredicateUnsupported, ColumnNotFound)):
        parse(f"id = 1 AND ({text})")
