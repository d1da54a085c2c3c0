"""The types of the proof's columns: their values, and SQL literals that equal a value or are close
to it."""

import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

DIGITS = Context(prec=80)
CHARACTERS = "\x00\n %_\\'\"!.$[(aAbZzé\u0301ßİ中😀\uffff\U00010000"
LONG_TEXT = "long " * 6_554 + "tail"  # longer than Lucene's longest term


@dataclass(frozen=True)
class Kind:
    """A type.

    Attributes:
        name: The name under which comparisons are counted.
        arrow: Its Arrow type.
        values: Hypothesis strategy for one value that is not NULL.
        own: A literal of exactly the value.
        near: Literals of other types or other values, close to a value.
        odd: Literals far from any value, or of no value.
    """

    name: str
    arrow: pa.DataType
    values: st.SearchStrategy[Any]
    own: Callable[[Any], str]
    near: Callable[[Any], list[str]]
    odd: Sequence[str] = ("NULL",)


def quoted(text: str) -> str:
    """A Spark string literal."""
    for character, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\x00", "\\000"), ("\n", "\\n")):
        text = text.replace(character, escaped)
    return f"'{text}'"


def _integers(name: str, bits: int) -> Kind:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    extremes = [0, 1, -1, least, least + 1, most - 1, most, 2**24 + 1, -(2**24) - 1]
    extremes += [2**53, 2**53 + 1, -(2**53) - 1] if bits == 64 else [2**16]

    def near(value: int) -> list[str]:
        literals = [f"{value}.0", f"{value}.5", f"{value}D", f"'{value}'", f"' {value} '"]
        literals += [f"{float(np.float32(value))!r}F", f"CAST({value} AS DECIMAL(25,3))"]
        return literals + [str(step) for step in (value - 1, value + 1) if abs(step) < 2**63]

    odd = ("NULL", "'no number'", "CAST('NaN' AS DOUBLE)", "1e300", "-1e300", "CAST(NULL AS INT)")
    odd += (f"1{'0' * 37}", "-0.0D", f"'{10**30}'")  # casts to the column's type overflow
    odd += ("2147483648", "-2147483649", "9223372036854775808", "-9223372036854775809", "0.5")
    values = st.sampled_from(extremes) | st.integers(-9, 9) | st.integers(least, most)
    return Kind(name, {32: pa.int32(), 64: pa.int64()}[bits], values, str, near, odd)


def _floating(name: str, bits: int) -> Kind:
    kind = np.float32 if bits == 32 else np.float64
    sql = "FLOAT" if bits == 32 else "DOUBLE"
    extremes = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5, 0.1, 16777216.0, 16777217.0]
    extremes += [float(np.finfo(kind).max), float(np.finfo(kind).smallest_subnormal)]

    def own(value: float) -> str:
        shown = "NaN" if math.isnan(value) else repr(value).replace("inf", "Infinity")
        return f"CAST('{shown}' AS {sql})"

    def near(value: float) -> list[str]:
        if not math.isfinite(value):
            return [own(value).replace(sql, "FLOAT"), own(-value)]
        with np.errstate(over="ignore"):
            steps = [float(np.nextafter(kind(value), kind(to))) for to in (np.inf, -np.inf)]
            single = float(np.float32(value))
        literals = [own(step) for step in (*steps, -value)] + [f"{value!r}D", f"'{value!r}'"]
        literals += [f"{single!r}F"] if math.isfinite(single) else []
        if abs(value) < 1e15:
            literals += [str(int(value)), f"{int(value)}L"]
        if 1e-9 < abs(value) < 1e9:
            literals.append(f"{Decimal(repr(value)):f}")
        return literals

    odd = ("NULL", "0", "-0.0D", "'NaN'", "'-Infinity'", "'x'", "9007199254740993", "0.1", "1e-46")
    odd += ("CAST('-0.0' AS FLOAT)", "CAST('NaN' AS FLOAT)", "3.5e38D", "-3.5e38D", "'1e400'")
    values = st.sampled_from(extremes).map(lambda value: float(kind(value)))
    values |= st.floats(width=bits, allow_nan=False) | st.integers(-4, 4).map(lambda n: n / 2)
    return Kind(name, pa.float32() if bits == 32 else pa.float64(), values, own, near, odd)


def decimals(name: str, precision: int, scale: int) -> Kind:
    """The kind decimal(precision, scale), counted under `name`."""
    most = 10**precision - 1

    def value(unscaled: int) -> Decimal:
        return Decimal(unscaled).scaleb(-scale, DIGITS)

    def near(exact: Decimal) -> list[str]:
        unscaled = int(exact.scaleb(scale, DIGITS))
        steps = [step for step in (unscaled - 1, unscaled + 1) if abs(step) <= most]
        literals = [f"{value(step):f}" for step in steps] + [f"'{exact:f}'", f"{float(exact)!r}D"]
        if precision < 19:
            literals += [f"{exact:f}5" if scale else f"{exact:f}.5", f"{int(exact)}L"]
        return [*literals, str(int(exact))]

    odd = ("NULL", "0", "0.0D", "'x'", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)", "1")
    widest = "9" * (38 - scale)  # of the numbers that can be compared with the column
    odd += (widest, f"-{widest}", "'1e40'", "1e38D", "-0.0D")
    extremes = [0, 1, -1, most, -most, most - 1, min(10**scale, most), 10 ** max(scale - 1, 0)]
    some = min(500, most)
    unscaled = st.sampled_from(extremes) | st.integers(-some, some) | st.integers(-most, most)
    arrow = pa.decimal128(precision, scale)
    return Kind(name, arrow, unscaled.map(value), lambda exact: f"{exact:f}", near, odd)


def _text_near(value: str) -> list[str]:
    others = [value[:-1], value + "a", value + " ", " " + value, value.swapcase(), value[:1]]
    others += [unicodedata.normalize("NFD", value), value + "\x00", value + "\uffff"]
    return [quoted(other) for other in others]


def _binary_near(value: bytes) -> list[str]:
    others = (value[:-1], value + b"\x00", value + b"\xff", value[::-1], b"")
    return [f"X'{other.hex()}'" for other in others]


def _date_near(value: date) -> list[str]:
    day = timedelta(days=1)
    steps = [value - day] if value > date.min else []
    steps += [value + day] if value < date.max else []
    literals = [_date(step) for step in steps]
    literals += [f"'{value.isoformat()}'", f"'{value.year:04}-{value.month}-{value.day}'"]
    return [*literals, f"TIMESTAMP'{value.isoformat()} 00:00:00'", f"TIMESTAMP'{value} 12:00:00'"]


def _date(value: date) -> str:
    return f"DATE'{value.isoformat()}'"


def _moment(value: datetime) -> str:
    return f"TIMESTAMP'{value.replace(tzinfo=None).isoformat(' ', 'microseconds')}Z'"


def _moment_near(value: datetime) -> list[str]:
    wall = value.replace(tzinfo=None)
    step = timedelta(microseconds=1)
    steps = [wall - step] if wall > datetime.min else []
    steps += [wall + step] if wall < datetime.max else []
    text = wall.isoformat(" ", "microseconds")
    literals = [_moment(step) for step in steps] + [f"'{text}'", f"'{text} UTC'", f"'{text[:10]}'"]
    return [*literals, f"TIMESTAMP'{text}'", _date(wall.date()), f"'{text[:19]}+02:00'"]


BOOLEAN = Kind(
    "boolean",
    pa.bool_(),
    st.booleans(),
    lambda value: str(value).upper(),
    lambda value: [f"'{str(value).lower()}'", "'yes'", "CAST('0' AS BOOLEAN)"],
    ("NULL", "'x'", "CAST(NULL AS BOOLEAN)"),
)
INT, LONG = _integers("int", 32), _integers("long", 64)
FLOAT, DOUBLE = _floating("float", 32), _floating("double", 64)
STRING = Kind(
    "string",
    pa.string(),
    st.sampled_from(["", "a", "A", "ab", "a%b", "a_b", "a\\b", "é", "e\u0301", "😀", LONG_TEXT])
    | st.text(CHARACTERS, max_size=6)
    | st.text(st.characters(codec="utf-8"), max_size=12),
    quoted,
    _text_near,
    ("NULL", "''", "'%'", "'missing'", "'7'", "'\\uFFFD'"),
)
WORDS = ["buying", "selling", "new", "NEW", "old", "car", "tag42", "tag421", "don't", "red-blue"]
WORDS += [
    "x_y",
    "100%",
    "1.5",
    "中文",
    "é",
    "w" * 300,
]  # the last is longer than an analyzer's words can be
MESSAGE = replace(
    STRING, values=st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
)
BINARY = Kind(
    "binary",
    pa.binary(),
    st.sampled_from([b"", b"\x00", b"\xff", b"\x7f\x80", b"a"]) | st.binary(max_size=6),
    lambda value: f"X'{value.hex()}'",
    _binary_near,
    ("NULL", "X''", "'a'", "X'FFFFFFFF'"),
)
DATE = Kind(
    "date",
    pa.date32(),
    st.sampled_from([date.min, date.max, date(1970, 1, 1), date(1582, 10, 15), date(2024, 2, 29)])
    | st.dates(),
    _date,
    _date_near,
    ("NULL", "DATE'+10000-01-01'", "DATE'0000-12-31'", "'2024'", "'x'", "'1970-01'"),
)
TIMESTAMP = Kind(
    "timestamp",
    pa.timestamp("us", "UTC"),
    (
        st.sampled_from(
            [
                datetime(1, 1, 3),
                datetime(9999, 12, 29, 23, 59, 59, 999999),
                datetime(1970, 1, 1),
                datetime(1969, 12, 31, 23, 59, 59, 999999),
                datetime(2024, 3, 31, 1),
            ]
        )
        # Two days from the end, so that a literal in any time zone is still a Python datetime.
        | st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29))
    ).map(lambda value: value.replace(tzinfo=UTC)),
    _moment,
    _moment_near,
    ("NULL", "'2024'", "'x'", "DATE'1970-01-01'", "'+12345-01-01 00:00:00'"),
)

PARTITIONED_BY: tuple[tuple[Kind, tuple[Any, ...]], ...] = (
    (STRING, ("p0", "p1", "p2")),
    (STRING, ("a", "B c", "é")),
    (BOOLEAN, (True, False)),
    (INT, (7, -8, 0)),
    (LONG, (3_000_000_000, 5)),
    (FLOAT, (float(np.float32(0.1)), 1e10)),
    (DOUBLE, (0.1, -1e-20)),
    (decimals("decimal of 64 bits", 10, 2), (Decimal("1.50"), Decimal("-20.00"))),
    (DATE, (date(2024, 2, 29), date(1969, 12, 31))),
)
"""The kinds of partition columns, with values that paths spell in a way that readers understand."""
