"""The evaluator gives Spark's own three-valued results, operator by operator and type by type."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_index_service.predicate import (
    evaluate,
    keep,
    negation_normal_form,
    parse_predicate,
)

pytestmark = pytest.mark.fast

OPERATORS = ("=", "<=>", "<>", "<", "<=", ">", ">=")
SYNONYMS = ("==", "!=", "!<", "!>")


def compared(*literals: str) -> list[str]:
    """The column `c` compared with the literals by every operator, on either side; the synonyms of
    operators with the first literal."""
    right = [f"c {operator} {literal}" for literal in literals for operator in OPERATORS]
    synonyms = [f"c {operator} {literals[0]}" for operator in SYNONYMS]
    left = [
        f"{literal} {operator} c" for literal in literals for operator in ("=", "<", ">=", "<=>")
    ]
    return right + synonyms + left


NULLS = [
    "c IS NULL",
    "c IS NOT NULL",
    "NOT c IS NULL",
    "c = NULL",
    "c <=> NULL",
    "NULL <=> c",
    "c <> NULL",
    "c < NULL",
    "c IN (NULL)",
    "c NOT IN (NULL)",
    "c IS DISTINCT FROM NULL",
    "CAST(NULL AS BOOLEAN)",
    "TRUE",
    "NOT FALSE OR c IS NULL",
    "c IS NULL AND NULL",
    "c IS NOT NULL OR NULL",
    "1 = 1",
    "1 < 1.5",
    "'a' > 'b'",
    "NULL <=> NULL",
    "1 IS NULL",
    "2 IN (1, NULL)",
]

INTEGERS = [
    *compared("1", "-1", "0", "1.5", "-0.5", "7.0", "1e0", "1.5D", "1.5F", "'7'"),
    *compared("2147483647", "2147483648", "-2147483649", "9223372036854775807"),
    *compared("9223372036854775808", "-9223372036854775809", "1e30BD", "9.3e18BD", "-1e30BD"),
    *compared("9007199254740992D", "9007199254740993", "9.2233720368547758E18", "1e300", "-1e300"),
    *compared("CAST('NaN' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)", "CAST('NaN' AS FLOAT)"),
    *compared("16777217F", "16777216.5D", "9223372036854775807.5", "1L", "1S", "1Y"),
    *compared("CAST(1.5 AS DECIMAL(3,1))", "CAST('1' AS INT)", "CAST(NULL AS INT)"),
    *(
        f"c = '{text}'"
        for text in ("7.9", " 7 ", ".5", "7.", "+7", "-1", "1e0", "abc", "", "+", ".", "-.", "7 7")
    ),
    *(f"c <=> '{text}'" for text in ("abc", "300", "99999999999", "9223372036854775807")),
    r"c = '\t7\n'",
    "c > '' OR c IS NULL",
    "c BETWEEN '1' AND 7.5",
    "c BETWEEN 7 AND 1",
    "c NOT BETWEEN -1 AND 1",
    "c NOT BETWEEN NULL AND 1",
    "c NOT BETWEEN 1 AND NULL",
    "c IN (1)",
    "c IN (1, 7, 1)",
    "c IN (1, NULL)",
    "c NOT IN (1, NULL)",
    "c NOT IN (1, 7)",
    "c IN (1, 2.5, 7.0)",
    "c IN (2.5)",
    "c NOT IN (2.5)",
    "c IN (2.5, NULL)",
    "c IN (1e0, 7)",
    "c IN (1.0F, 2.5D)",
    "c IN (9999999999999, 1)",
    "c IN ('7')",
    "c IN ('07', 1)",
    "c IN ('7.0', '-1', '-0')",
    "c IN ('abc', NULL)",
    "c IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, NULL)",
    "c = 1 OR c IS NULL AND NOT c <=> 7",
    "NOT (c > 0 AND c < 7)",
    "NOT NOT c = 1",
    "! c = 1",
    "((c)) = ((1))",
    "C = 1 AND `c` < 5",
]

SMALL_INTEGERS = [
    *compared("1", "127", "128", "-129", "32768", "1.5", "127.5D", "-128.5F", "1e30BD", "2S"),
    *compared("'7'", "'128'"),
    "c IN (1, 128, 7.0)",
    "c IN ('7', '128')",
    "c NOT IN (128, NULL)",
]

FLOATING = [
    *compared("0.1", "0.1F", "0.1D", "0", "-0.0", "-0.0D", "1", "1.5", "16777217", "16777217L"),
    *compared("16777217.0", "CAST('NaN' AS DOUBLE)", "CAST('NaN' AS FLOAT)", "1e39", "-1e300"),
    *compared("CAST('Infinity' AS DOUBLE)", "CAST('-Infinity' AS FLOAT)", "'0.1'", "'nan'"),
    *compared("9007199254740993", "9007199254740993BD", "1.5F", "1e-46"),
    *(
        f"c = '{text}'"
        for text in (
            "NaN",
            " 1.5 ",
            "1e0",
            "+inf",
            "-Infinity",
            "inf",
            "Infinity",
            "abc",
            "",
            "+1.5",
        )
    ),
    "c <=> 'abc'",
    "c <=> '\x1f1.5'",
    "c BETWEEN 0 AND 1.5",
    "c NOT BETWEEN -1 AND CAST('NaN' AS DOUBLE)",
    "c IN (0)",
    "c IN (-0.0D, 1.5D)",
    "c IN (0.1)",
    "c IN (0.1F, 0.1D)",
    "c IN (CAST('NaN' AS DOUBLE), NULL)",
    "c NOT IN (CAST('NaN' AS DOUBLE), 0)",
    "c IN (0.0D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 9D, 10D, CAST('NaN' AS DOUBLE), 12D)",
    "NOT (c < 1)",
    "NOT (c >= CAST('NaN' AS DOUBLE))",
    "NOT (c <= 1 OR c <=> 1.5)",
]

DECIMALS = [
    *compared("1.5", "1.50", "1.500", "1.555", "-1.555", "0", "1", "100L", "0.1D", "0.1F", "'1.5'"),
    *compared("12345678.12", "99999999", "100000000", "-99999999999999999999", "1e25", "'abc'"),
    *compared("CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)", "CAST('0.1' AS DECIMAL(5,3))"),
    *(
        f"c = CAST('{text}' AS DECIMAL(10,2))"
        for text in ("1e2000", "-1e2000", "1e-2000", "0e2000", "1e37", "1e39", "150e-2", "1.555")
    ),
    "c BETWEEN 0 AND '1.5'",
    "c IN (1.5, 7)",
    "c IN (1.5, 1.555)",
    "c IN (1.555)",
    "c IN (0.1D)",
    "c IN (0.1D, 1.5)",
    "c NOT IN (1.50, NULL)",
]

STRINGS = [
    *compared("'a'", "''", "'é'", "'e\\u0301'", "'😀'", "'\\uFFFD'", '"a"', "'\\000'", "'%'"),
    *compared("'a\\'b'", "'a\"b'", "r'a\\b'", "'a\\\\b'", "'a\\nb'", "'it''s'", "'a' 'b'"),
    *compared("'\\U0001F600'", "'\\uD83D\\uDE00'", "'\\141'", "'\\x'", "'\\%'", "'\\Z'", "'\\08'"),
    "c IN ('a', '', '😀')",
    "c IN ('a', NULL)",
    "c NOT IN ('a', NULL)",
    "c IN (7, 'a')",
    "c IN (7)",
    "c BETWEEN 'a' AND 'b'",
    *(
        f"c LIKE {pattern}"
        for pattern in (
            "'a'",
            "''",
            "'%'",
            "'%%'",
            "'_'",
            "'__'",
            "'a%'",
            "'%b'",
            "'%a%'",
            "'a%b'",
            "'a_b'",
            "'_😀'",
            "'😀%'",
            "'%😀%'",
            "'😀%b'",
            "'_%_'",
            "'e_'",
            "'é'",
            r"'a\\%b'",
            r"'a\%b'",
            r"'a\_b'",
            r"'a\\\\b'",
            r"'%\\\\%'",
            r"'\\_%'",
            "'%\\n%'",
            "'a%\\nb'",
            "'%\\000%'",
            "'a\\000_'",
            "'A%'",
            "'a.b'",
            "'%.%'",
            "'[a]%'",
            "'(%'",
            "'%$'",
            "'^%'",
            r"r'a\%b'",
            "'a!%b' ESCAPE '!'",
            "'a!_b' ESCAPE '!'",
            "'a!!%' ESCAPE '!'",
            "'a\\\\%' ESCAPE '!'",
            "'%%%%' ESCAPE '%'",
            "'a__b' ESCAPE '_'",
            "'a%' ESCAPE 'é'",
            "NULL",
        )
    ),
    "c NOT LIKE 'a%'",
    "NOT c LIKE '%b'",
    "c NOT LIKE NULL",
    "c NOT LIKE 'a!%b' ESCAPE '!'",
    "c = 'a' -- and nothing else\n",
    "c /* a /* nested */ comment */ = 'a'",
    "c = '-- no comment' OR c = '/* nor this */' OR c = '; DROP TABLE t'",
]

DATES = [
    *compared("DATE'2024-01-01'", "'2024-1-1'", "'2024'", "DATE'0001-01-01'", "DATE'9999-12-31'"),
    *compared("DATE'+10000-01-01'", "DATE'-0001-12-31'", "'10000-01-01'", "'0000-01-01'"),
    *compared("TIMESTAMP'2024-01-01 00:00:00'", "TIMESTAMP'2024-01-01 12:00:00'"),
    *compared("TIMESTAMP_NTZ'1970-01-01 00:00:00'", "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'"),
    *(
        f"c <=> '{text}'"
        for text in (
            "2024-01-01",
            "2024-01",
            "2024-01-01 foo",
            "2024-01-01T",
            " 2024-01-01 ",
            "+2024-01-01",
            "2024-13-01",
            "2024-02-30",
            "24-01-01",
            "2024-001-01",
            "2024-01-01x",
            "2024-",
            "x",
            "",
            "2024-02-29",
        )
    ),
    "c = DATE '2024-01-01 foo'",
    "c IN ('2024-01-01')",
    "c IN ('2024-1-1')",
    "c IN ('+2024-01-01', '02024-01-01')",
    "c IN ('2024-1-1', DATE'1970-01-01')",
    "c IN (DATE'2024-01-01', NULL)",
    "c NOT IN (DATE'2024-01-01', DATE'1970-01-01')",
    "c IN ('0001-01-01', '9999-12-31', 'x')",
    "c BETWEEN '1970-01-01' AND '2024-01-01'",
    "c BETWEEN DATE'1970-01-01' AND CAST('2024-01-01' AS DATE)",
    "c > CAST('nothing' AS DATE) OR c IS NULL",
]

TIMESTAMPS = [
    *compared("TIMESTAMP'2024-01-01 00:00:00'", "TIMESTAMP'1969-12-31 23:59:59.999999'"),
    *compared("'2024-01-01'", "'2024-1-1 10:20:30.123456'", "DATE'2024-01-01'", "'1970'"),
    *compared("TIMESTAMP'9999-12-31 23:59:59.999999'", "TIMESTAMP'0001-01-01 00:00:00'"),
    *compared("TIMESTAMP_NTZ'2024-01-01 00:00:00'"),
    *(
        f"c = '{text}'"
        for text in (
            "2024-01-01 10",
            "2024-01-01 10:20",
            "2024-01-01T10:20:30.5",
            "2024-01-01 10:20:30.50000049",
            "2024-01-01 00:00:00.",
            " 2024-1-1T0:0:0 ",
            "2024-01-01 24:00:00",
            "2024-01-01 00:00:60",
            "2024-02-30 00:00:00",
        )
    ),
    "c < '-0001-01-01 00:00:00'",
    "c < '+12345-01-01 00:00:00'",
    "c IN ('2024-01-01 00:00:00')",
    "c IN ('2024-01-01')",
    "c IN ('2024-01-01 10:20:30.5', '2024-01-01 10:20:30.123456')",
    "c IN ('2024-01-01 10:20:30.500', 'x', NULL)",
    "c BETWEEN '1970-01-01' AND '2024-01-01 10:20:30.2'",
]

INSTANTS = [
    *TIMESTAMPS,
    *compared("TIMESTAMP'2024-01-01T10:20:30.123456Z'"),
    *(
        f"c = '2024-01-01 {text}'"
        for text in (
            "10:20:30.5Z",
            "10:20:30.5 Z",
            "10:20:30.5UTC",
            "18:20:30.5+08:00",
            "18:20:30.5+8",
            "18:20:30.5 +08:00",
            "02:20:30.5-08:00",
            "11:20:30.5 Europe/Paris",
        )
    ),
    "c IN (DATE'2024-01-01')",
    "c IN (TIMESTAMP'2024-01-01 00:00:00', '1969-12-31 23:59:59.999999')",
]

# In Berlin, the clock went forward at 2024-03-31 02:00 and back at 2024-10-27 03:00.
BERLIN = [
    *compared("'2024-03-31 02:30:00'", "'2024-10-27 02:30:00'", "DATE'2024-03-31'"),
    *compared("TIMESTAMP'2024-10-27 02:30:00'", "TIMESTAMP'2024-10-27 01:30:00Z'"),
    *compared("TIMESTAMP_NTZ'2024-03-31 02:30:00'", "'2024-07-01'", "'2050-07-01 12:00:00'"),
    "c IN ('2024-03-31 01:59:59')",
    "c IN ('2024-03-31 03:30:00', '2024-10-27 01:30:00')",
]

BOOLEANS = [
    *compared("TRUE", "false", "'true'", "'f'", "' YES '", "'x'", "CAST('1' AS BOOLEAN)"),
    "c",
    "NOT c",
    "c = true AND NOT c",
    "c IS TRUE",
    "c IS NOT TRUE",
    "c IS FALSE",
    "c IS NOT FALSE",
    "c OR NULL",
    "c AND NULL",
    "(c)",
    "NOT (c OR c = FALSE)",
    "c IN (TRUE)",
    "c IN (TRUE, NULL)",
    "c NOT IN (FALSE, NULL)",
]

BINARIES = [
    *compared("X'78'", "'x'", "X''", "X'FF'", "x'7'", "'é'", "CAST('x' AS BINARY)"),
    "c IN (X'78', X'FF')",
    "c NOT IN (X'78', NULL)",
    "c BETWEEN X'00' AND X'7F'",
]

SMALLS = [None, 0, 1, -1, 2, 7, 100, 127, -128]
INTS = [*SMALLS, 2**31 - 1, -(2**31), 16777216, 16777217]
LONGS = [*INTS, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**31]
FLOATS = [None, 0.0, -0.0, 0.1, 1.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 16777216.0, 1e-45]
DOUBLES = [*FLOATS, 16777217.0, 1e300, 5e-324, 9007199254740992.0, 9007199254740994.0]
CENTS = [None, *map(Decimal, ("0.00", "1.50", "1.55", "1.56", "-1.55", "0.10", "12345678.12"))]
WIDE = [None, *map(Decimal, ("0", "1.5", "0.1", "-1.5550000001", "1.5550000000", "9" * 28))]
TEXTS = [
    *(None, "", "a", "A", "b", "ab", "a b", "a%b", "a_b", "a\\b", "a\nb", "a\0b", "a\0", "7", "07"),
    *("é", "e\u0301", "😀", "a😀", "😀b", "a'b", 'a"b', "its", "x", "%", "\\%", "a!b", "a!", "a.b"),
    *("\uffff", "\U00010000", "\x1a", "\0008", "[a]", "(", "$", "^", "; DROP TABLE t", "\r\n"),
]
DAYS = [None, date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(2024, 1, 1)]
DAYS += [date(1969, 12, 31), date(2024, 2, 29), date(1582, 10, 15)]
MOMENTS = [
    None,
    datetime(2024, 1, 1),
    datetime(2024, 1, 1, 10, 20, 30, 123456),
    datetime(2024, 1, 1, 10, 20, 30, 500000),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(1970, 1, 1),
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
    datetime(2024, 1, 1, 10, 20),
]
CHANGES = [
    None,
    *(datetime(2024, 3, 31, hour, 30) for hour in range(3)),
    *(datetime(2024, 10, 26 + (hour < 20), hour, 30) for hour in (22, 23, 0, 1, 2)),
    *(datetime(2024, 6, 30, 22), datetime(2024, 3, 30, 23), datetime(2024, 3, 31, 0, 59, 59)),
    datetime(2050, 7, 1, 10),
]
BYTES = [None, b"", b"x", b"\xff", b"\x07", b"\x00", "é".encode(), b"xy"]


def instants(values: list[datetime | None]) -> list[datetime | None]:
    return [value and value.replace(tzinfo=UTC) for value in values]


CASES = {
    "byte": (pa.int8(), SMALLS, SMALL_INTEGERS),
    "short": (pa.int16(), SMALLS, SMALL_INTEGERS),
    "int": (pa.int32(), INTS, INTEGERS),
    "long": (pa.int64(), LONGS, INTEGERS),
    "float": (pa.float32(), FLOATS, FLOATING),
    "double": (pa.float64(), DOUBLES, FLOATING),
    "decimal(10,2)": (pa.decimal128(10, 2), CENTS, DECIMALS),
    "decimal(38,10)": (pa.decimal128(38, 10), WIDE, DECIMALS),
    "string": (pa.string(), TEXTS, STRINGS),
    "binary": (pa.binary(), BYTES, BINARIES),
    "boolean": (pa.bool_(), [None, True, False], BOOLEANS),
    "date": (pa.date32(), DAYS, DATES),
    "timestamp": (pa.timestamp("us", "UTC"), instants(MOMENTS), INSTANTS),
    "timestamp in ms": (
        pa.timestamp("ms", "UTC"),
        instants([None, datetime(2024, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999000)]),
        INSTANTS,
    ),
    "timestamp without zone": (pa.timestamp("us"), MOMENTS, TIMESTAMPS),
}


@pytest.mark.parametrize("case", CASES)
def test_evaluator_gives_sparks_results(case, spark_answers):
    kind, values, predicates = CASES[case]
    same = [pa.large_string(), pa.dictionary(pa.int32(), kind)] if case == "string" else []
    tables = [pa.table({"c": pa.array(values, each)}) for each in (kind, *same)]
    check(tables[0], [*predicates, *NULLS], spark_answers, same=tables[1:])


def test_times_are_read_in_the_sessions_zone(spark_answers):
    data = pa.table({"c": pa.array(instants(CHANGES), pa.timestamp("us", "UTC"))})
    check(data, BERLIN, spark_answers, time_zone="Europe/Berlin")


def test_times_are_read_at_an_offset(spark_answers):
    data = pa.table({"c": pa.array(instants(MOMENTS), pa.timestamp("us", "UTC"))})
    predicates = [where for where in INSTANTS if "9999" not in where and "0001" not in where]
    check(data, predicates, spark_answers, time_zone="+08:00")


STRUCT = pa.struct([("x", pa.int32()), ("Deep", pa.struct([("y", pa.string())]))])
STRUCTS = [
    None,
    {"x": None, "Deep": None},
    {"x": 1, "Deep": {"y": None}},
    {"x": 7, "Deep": {"y": "a"}},
    {"x": -1, "Deep": {"y": ""}},
    {"x": None, "Deep": {"y": "a%b"}},
]
FIELDS = [
    "c IS NULL",
    "c.x IS NULL",
    "c.deep IS NOT NULL",
    "C.deep.Y IS NULL",
    "NOT (c.x > 1)",
    "c . x BETWEEN 1 AND 7",
    "`c`.`x` <=> NULL",
    "c.x IN (1, NULL)",
    "c.x NOT IN (1, 7)",
    "c.Deep.y = 'a'",
    "c.Deep.y <> ''",
    "c.Deep.y LIKE 'a_b'",
    "c.Deep.y NOT LIKE 'a%' OR c.x = 1",
]


def test_struct_fields(spark_answers):
    check(pa.table({"c": pa.array(STRUCTS, STRUCT)}), FIELDS, spark_answers)


def contains(*literals: str) -> list[str]:
    """The column `c` searched for each literal, with and without NOT."""
    return [f"{no}array_contains(c, {literal})" for literal in literals for no in ("", "NOT ")]


ARRAYS = {
    "strings": (
        pa.string(),
        [None, [], [None], ["a"], ["b", None], ["a", None], [""], ["é", "a", "a"], ["A"]],
        [*contains("'a'", "''", "'b'", "'é'", "'x'"), "Array_Contains(C, 'a') OR c IS NULL"],
    ),
    "ints": (
        pa.int32(),
        [None, [], [None], [1], [2, None], [1, None], [0, -1], [2**31 - 1, 7]],
        contains("1", "1L", "1S", "1.0", "1D", "7F", "2147483647", "-1", "CAST('1' AS INT)"),
    ),
    "longs": (pa.int64(), [None, [2**53, None], [2**63 - 1]], contains("9223372036854775807", "1")),
    "floats": (
        pa.float32(),
        [None, [], [0.0], [-0.0, None], [math.nan], [1.5, None], [math.inf, 0.1]],
        contains("0", "-0.0D", "0.0F", "1.5", "CAST('NaN' AS FLOAT)", "CAST('NaN' AS DOUBLE)", "1"),
    ),
    "doubles": (
        pa.float64(),
        [None, [], [0.0], [-0.0, None], [math.nan], [1.5, None], [math.inf, 0.1]],
        contains("0", "-0.0D", "0.1", "0.1D", "1.5F", "CAST('Infinity' AS DOUBLE)"),
    ),
    "decimals": (
        pa.decimal128(38, 2),
        [None, [], [Decimal("1.50"), None], [None], [Decimal("9" * 36)], [Decimal("-0.01")]],
        contains("1.5", "1.50", "-0.01BD", "1", "9" * 36),
    ),
    "booleans": (pa.bool_(), [None, [], [True, None], [False], [None]], contains("TRUE", "FALSE")),
    "dates": (
        pa.date32(),
        [None, [], [date(2024, 1, 1), None], [date(9999, 12, 31)]],
        contains("DATE'2024-01-01'", "DATE'9999-12-31'", "TIMESTAMP'2024-01-01 00:00:00'"),
    ),
    "timestamps": (
        pa.timestamp("us", "UTC"),
        [None, [], [datetime(2024, 1, 1, tzinfo=UTC), None]],
        contains("TIMESTAMP'2024-01-01 00:00:00'", "DATE'2024-01-01'", "CAST(NULL AS TIMESTAMP)"),
    ),
    "binaries": (
        pa.binary(),
        [None, [], [b"\xff", None], [b""]],
        contains("X'FF'", "X''", "X'00'"),
    ),
}


@pytest.mark.parametrize("elements", ARRAYS)
def test_array_elements(elements, spark_answers):
    kind, values, predicates = ARRAYS[elements]
    nulls = ["c IS NULL", "NOT (c IS NULL)"]
    check(pa.table({"c": pa.array(values, pa.list_(kind))}), predicates + nulls, spark_answers)


def check(data, predicates, spark_answers, time_zone="UTC", same=()):
    """Each predicate, its negation normal form and its own text give Spark's results; on tables
    that are the same for Spark, too."""
    wrong = []
    answers = spark_answers(data, predicates, time_zone=time_zone)
    for table in (data, *same):
        rows = table.append_column("_row", pa.array(range(len(data))))
        for where, answer in zip(predicates, answers, strict=True):
            predicate = parse_predicate(where, table.schema, time_zone=time_zone)
            # The text of a predicate has the same meaning in every time zone.
            again = parse_predicate(str(predicate), table.schema, time_zone="Asia/Tokyo")
            for form in (predicate, again, negation_normal_form(predicate)):
                truth = evaluate(form, table).to_pylist()
                if truth != answer:
                    wrong.append(f"{where}  as  {form}:\n  {truth}, but Spark:\n  {answer}")
            kept = keep(predicate, rows).column("_row").to_pylist()
            if kept != [row for row, each in enumerate(answer) if each]:
                wrong.append(f"{where}: keeps {kept}, but is TRUE in {answer}")
    assert not wrong, "\n".join(wrong)
