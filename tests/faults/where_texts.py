"""Unusual predicate texts: sentences of the grammar with awkward parts, and the same with some
characters changed. Equal seeds give equal texts."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

ROWS = pa.record_batch(
    {
        "i": pa.array([None, 0, 1, -1, 2**31 - 1], pa.int32()),
        "l": pa.array([None, 7, -(2**63), 2**53 + 1, 2**63 - 1], pa.int64()),
        "f": pa.array([None, 0.1, float("nan"), -0.0, float("inf")], pa.float32()),
        "d": pa.array([None, 1e300, float("nan"), 0.0, 1.5], pa.float64()),
        "m": pa.array([None, *map(Decimal, ("0.10", "-1.50", "7", "99999999.99"))]).cast(
            pa.decimal128(10, 2)
        ),
        "s": pa.array([None, "", "a%b_c", "😀\n\\", "9" * 5_000]),
        "x": pa.array([None, b"", b"\0\xff", b"abc", b"a" * 100], pa.binary()),
        "b": pa.array([None, True, False, True, False]),
        "day": pa.array([None, date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31), date.max]),
        "t": pa.array([None, *[datetime(2024, 2, 29, tzinfo=UTC)] * 4], pa.timestamp("us", "UTC")),
        "ntz": pa.array([None, *[datetime(1582, 10, 4)] * 4], pa.timestamp("us")),
        "tags": pa.array([None, [], [None], ["a"], ["a", "b"]], pa.list_(pa.string())),
        "st": pa.array([None, {"x": 1}, {"x": None}, {"x": 2}, {"x": 3}]),
        "a b`.c": pa.array(range(5)),
    }
)

_COLUMNS = ["i", "l", "f", "d", "m", "s", "x", "b", "day", "t", "ntz", "tags", "st", "st.x", "I"]
_COLUMNS += ["`a b``.c`", "nope", "st.nope", "i.x", "`\ud800`", "`st`.`x`", "`" + "n" * 300 + "`"]
_FITTING = {
    "i": ["0", "-1", "7L", "1.5", "'1'", "2147483648", "NULL", "CAST('x' AS INT)", "1e0"],
    "l": ["7", "'-9223372036854775808'", "9223372036854775808", "1e30", "1.5BD", "300S"],
    "d": ["1.5", "1e300", "'NaN'", "-0.0D", "CAST('Infinity' AS DOUBLE)", "3F"],
    "m": ["0.1", "-1.50", "7", "'7'", "99999999.99", "1e2"],
    "s": ["'a'", "''", "'😀'", "r'\\'", "'a' 'b'", "NULL", '"\'"', "'\\u0041'"],
    "x": ["X''", "x'ABC'", "NULL"],
    "day": ["DATE'1970-01-01'", "'2024-1-1'", "DATE'+12024-02-29'", "'x'", "NULL"],
    "t": ["TIMESTAMP'2024-02-29 00:00:00Z'", "'2024-02-29'", "DATE'2024-02-29'"],
    "st.x": ["1", "3.0", "NULL"],
}
_COMPARED = ["=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=", "!<", "!>"]
_TYPES = ["INT", "BIGINT", "TINYINT", "FLOAT", "DOUBLE", "STRING", "BINARY", "DATE", "TIMESTAMP"]
_TYPES += ["TIMESTAMP_NTZ", "BOOLEAN", "DECIMAL", "DECIMAL(38,38)", "DECIMAL(0)", "ARRAY<INT>"]
_LONG = ["9" * 20, "9" * 39, "1" * 4_300, "9" * 4_301, "0" * 5_000 + "1", "123456789" * 600]
_NUMBERS = ["0", "1", "7", "-1", "1.5", ".5", "1.", "1e5", "1e-400", "1e999999999", "1E400D"]
_NUMBERS += ["1L", "300Y", "1.5BD", "1F", "1e99999999999999999999BD", "0e999999999BD", "00012"]
_NUMBERS += ["1e2147483648", "0.1234567890123456789012345678901234567890BD", "1x", "1e", "2e+"]
_TEXTS = ["", "a", "a%", "_", "%_%", r"\\%", r"\\", r"\u0041", r"\ud800", r"\U0001F600", "\ud800"]
_TEXTS += ["😀", "\0", "''", r"\'", '"', "NaN", "-Infinity", "yes", "2024-02-30", "9999999-1-1"]
_TEXTS += ["+999999-12-31", "2024-01-01 25:00:00", "2024-01-01T00:00:00 Europe/Paris", "now"]
_TEXTS += ["\n", "12:00", "1e400", "0x1p3", " 1 ", "\u3000", "1" * 5_000, "x" * 2_000, "%a" * 700]
_PATTERNS = [
    "^a",
    "a$",
    "(a|b)+",
    "[a-",
    "a{1000}",
    "a{2,1}",
    "(?i)a",
    r"\\d+",
    r"\\p{L}",
    "(" * 60,
]
_PATTERNS += ["(?=a)", "a**", "[^\\n]", "((a{9}){9}){9}", "x" * 1_001, r"\\Qa.b\\E", "$^"]
_WORDS = ["AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN", "CAST", "AS", "DATE"]
_WORDS += [
    "(",
    ")",
    ",",
    ".",
    "=",
    "-",
    "+",
    "*",
    "/",
    "%",
    "||",
    "::",
    "?",
    ":p",
    "@",
    "#",
    ";",
    "{",
    "}",
]
_WORDS += ["SELECT", "FROM", "WHERE", "EXISTS", "INTERVAL", "CASE", "WHEN", "END", "ESCAPE", "TRUE"]
_WORDS += ["--", "/*", "*/", "/*+", "'", '"', "`", "\\", "\n", "r'", "X'", "\ud800", "\udfff", "é"]
_WORDS += ["[", "]", "<", ">", "!", "&", "^", "~", "$", "${x}", "\u2028", "\ufeff", "1.5BD", "\0"]


def where_texts(seed: int, number: int) -> Iterator[str]:
    """That many texts."""
    writer = _Writer(random.Random(seed))
    for _ in range(number):
        yield writer.text()


class _Writer:
    def __init__(self, choose: random.Random) -> None:
        self._choose = choose

    def text(self) -> str:
        """A sentence, often with characters changed; or only fragments."""
        kind = self._choose.random()
        if kind < 0.005:
            return self._long_one()
        if kind < 0.12:
            number = self._choose.randint(0, 8)
            pieces = [self._one(_WORDS, _NUMBERS, _COLUMNS) for _ in range(number)]
            return self._choose.choice(["", " "]).join(pieces)
        text = self._condition(self._choose.choice([0, 0, 0, 1, 1, 2, 3]))
        for _ in range(self._choose.choice([0, 0, 0, 1, 1, 2, 5])):
            text = self._changed(text)
        return text

    def _one(self, *lists: list[str]) -> str:
        return self._choose.choice(self._choose.choice(lists))

    def _long_one(self) -> str:
        times = self._choose.choice([51, 200, 2_000])
        word = self._one(_WORDS, _NUMBERS)
        return self._choose.choice(
            [
                "(" * times + "i = 1" + ")" * times,
                "NOT " * times + "i = 1",
                "i = " + "- " * times + "1",
                " AND ".join(["i = 1"] * times),
                " OR ".join(f"(i = {each} AND NOT l > {each})" for each in range(times)),
                "s = " + "CAST(" * times + "1" + " AS INT)" * times,
                f"i IN ({', '.join(map(str, range(times)))})",
                f"s IN ({', '.join([self._string()] * 20)})",
                f"s LIKE '{'%_' * times}'",
                f"{'/*' * times} i = 1 {'*/' * times}",
                "array_contains(" * times + "tags",
                (word + " ") * times,
                "st" + ".x" * times + " = 1",
            ]
        )

    def _condition(self, depth: int) -> str:
        if depth:
            left, right = self._condition(depth - 1), self._condition(depth - 1)
            join = self._choose.choice([" AND ", " OR ", "\nand\t", " or--x\n", " AND /* ' */ "])
            both = f"{left}{join}{right}"
            return self._choose.choice([both, f"({both})", f"NOT ({both})", f"!({left})"])
        if self._choose.random() < 0.6:
            return self._fitting()
        column, no = self._operand(), self._choose.choice(["", "", "NOT "])
        return self._choose.choice(
            [
                f"{column} {self._one(_COMPARED)} {self._literal()}",
                f"{self._literal()} {self._one(_COMPARED)} {column}",
                f"{column} {no}IN ({', '.join(self._literals())})",
                f"{column} {no}BETWEEN {self._literal()} AND {self._literal()}",
                f"{column} {no}LIKE {self._string()}{self._choose.choice(['', self._escape()])}",
                f"{column} {no}RLIKE '{self._one(_PATTERNS)}'",
                f"{column} IS {no}{self._choose.choice(['NULL', 'TRUE', 'DISTINCT FROM 1', 'x'])}",
                f"array_contains({column}, {self._literal()})",
                f"match({column}, {self._literal()})",
                f"length({column}) = 1",
                column,
            ]
        )

    def _fitting(self) -> str:
        """A valid condition."""
        column = self._choose.choice(list(_FITTING))
        no, literals = self._choose.choice(["", "", "NOT "]), _FITTING[column]
        one, other = self._choose.choices(literals, k=2)
        return self._choose.choice(
            [
                f"{column} {self._one(_COMPARED)} {one}",
                f"{one}{self._one(_COMPARED)}{column}",
                f"{column} {no}IN ({one}, {other})",
                f"{column} {no}between {one} and {other}",
                f"s {no}LIKE {self._string()}",
                f"s {no}RLIKE '{self._one(_PATTERNS)}'",
                f"{column} IS {no}NULL",
                f"{column} IS {no}DISTINCT FROM {one}",
                "array_contains(tags, 'a')",
            ]
        )

    def _escape(self) -> str:
        return f" ESCAPE {self._choose.choice(['!', chr(39) + '!' + chr(39), self._string()])}"

    def _operand(self) -> str:
        return self._literal() if self._choose.random() < 0.1 else self._one(_COLUMNS)

    def _literals(self) -> list[str]:
        return [self._literal() for _ in range(self._choose.randint(0, 4))]

    def _literal(self) -> str:
        kind = self._choose.random()
        if kind < 0.35:
            return self._one(_NUMBERS)
        if kind < 0.40:
            sign, suffix = (
                self._choose.choice(["", "-"]),
                self._one(["", "L", "BD", "D", "e5", "F"]),
            )
            return sign + self._one(_LONG) + suffix
        if kind < 0.65:
            return self._string()
        if kind < 0.75:
            return f"CAST({self._literal()} AS {self._one(_TYPES)})"
        if kind < 0.85:
            return f"{self._one(['DATE', 'TIMESTAMP', 'TIMESTAMP_NTZ', 'X', 'r'])}{self._string()}"
        return self._one(["NULL", "TRUE", "FALSE", "?", ":p", "1 + 1", "INTERVAL 1 DAY", "now()"])

    def _string(self) -> str:
        quote = self._choose.choice(["'", "'", '"'])
        return quote + self._one(_TEXTS, _TEXTS, _PATTERNS, _LONG) + quote

    def _changed(self, text: str) -> str:
        at = self._choose.randrange(len(text) + 1)
        to = min(len(text), at + self._choose.randint(0, 6))
        return text[:at] + self._choose.choice(["", self._one(_WORDS), text[at:to] * 2]) + text[to:]
