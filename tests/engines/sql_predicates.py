"""Generated conditions in DuckDB's SQL."""

import math
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

from tests.engines.drawn_values import COLUMNS, PLAIN, Values

_FLOATS = ("price", "ratio", "place.geo.lat")
_INTEGERS = ("amount", "small", "place.zip", "ts")
_TEXTS = ("name", "msg", "place.City", "id", "part")


def sql_predicate(random: Random, values: Values, depth: int = 3) -> str:
    """A condition of comparisons, IN, ranges, patterns, their negations and connections; some parts
    are such as nothing but DuckDB evaluates."""
    if depth == 0 or random.random() < 0.3:
        return _leaf(random, values)
    if random.random() < 0.2:
        return f"NOT ({sql_predicate(random, values, depth - 1)})"
    parts = [sql_predicate(random, values, depth - 1) for _ in range(random.randint(2, 3))]
    return random.choice((" AND ", " OR ")).join(f"({part})" for part in parts)


def _leaf(random: Random, values: Values) -> str:
    name = random.choice([*COLUMNS, *PLAIN])
    own = ".".join(f'"{part}"' for part in name.split("."))
    kinds = ["compared"] * 4 + ["listed"] * 2 + ["between", "null", "other", "distinct"]
    kinds += ["pattern"] * (name in _TEXTS) + ["truth"] * (name == "flag")
    match random.choice(kinds):
        case "compared":
            operator = random.choice(("=", "<>", "<", "<=", ">", ">="))
            return f"{own} {operator} {_literal(random, values, name)}"
        case "listed":
            some = [sql(each) for each in values.some(random, name)]
            some += ["NULL"] * (random.random() < 0.2)
            return f"{own} {random.choice(('IN', 'NOT IN'))} ({', '.join(some)})"
        case "between":
            low, high = (sql(values.one(random, name)) for _ in range(2))
            return f"{own} BETWEEN {low} AND {high}"
        case "null":
            own = random.choice((own, "place", "tags"))
            return f"{own} IS {random.choice(('NULL', 'NOT NULL'))}"
        case "distinct":
            other = random.choice((_literal(random, values, name), "NULL"))
            return f"{own} IS {random.choice(('', 'NOT '))}DISTINCT FROM {other}"
        case "pattern":
            return f"{own} {_pattern(random, values, name)}"
        case "truth":
            return random.choice((own, f"NOT {own}", f"{own} IS TRUE"))
    return _of_other_kind(random)


def _literal(random: Random, values: Values, name: str) -> str:
    value = values.one(random, name)
    if name == "seen" and random.random() < 0.3:
        return f"'{value:%Y-%m-%d %H:%M:%S.%f}'"  # in the session's time zone
    return sql(value)


def _pattern(random: Random, values: Values, name: str) -> str:
    text = values.one(random, name)[: random.randint(0, 12)]
    return random.choice(
        (f"LIKE {sql(text + '%')}", f"LIKE {sql('%' + text)}", f"NOT LIKE {sql(text)}")
    )


def _of_other_kind(random: Random) -> str:
    """What has to be cast, or is computed."""
    return random.choice(
        (
            "amount > 1.5",
            "small < 3000000000",
            "ratio = 0.1",
            "price = ratio",
            "born <= TIMESTAMP '1500-01-01 12:00:00'",
            "seen >= DATE '1970-01-01'",
            "small = place.zip",
            "amount % 7 = 3",
            "amount + 1 = 301",
            "upper(name) = 'PLAIN'",
            "cost = 7.251",
            "huge > 1e20",
            "list_contains(tags, 't1')",
            "price > 'nan'::DOUBLE",
            "price >= 'nan'::DOUBLE",
        )
    )


def sql(value: Any) -> str:
    """A literal of DuckDB."""
    match value:
        case bool() | int():
            return str(value)
        case float():
            text = "nan" if math.isnan(value) else repr(value)
            return f"'{text}'::DOUBLE"
        case str():
            parts = [f"'{part}'" for part in value.replace("'", "''").split("\x00")]
            return "(" + " || chr(0) || ".join(parts) + ")" if len(parts) > 1 else parts[0]
        case bytes():
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
        case datetime():
            return f"'{value.isoformat(sep=' ')}'::TIMESTAMPTZ"
        case date():
            return f"DATE '{value.isoformat()}'"
        case Decimal():
            return f"{value:f}"
    raise TypeError(value)
