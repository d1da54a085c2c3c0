"""Translates the conditions of a request to a where text.

Spark has resolved names and coerced types, so literals have the types that they are written with.
For rows, whatever is not translated is left out: Spark's own filter stays above them.
"""

import base64
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_index_service.arrow import scalar
from hudi_index_service.columns import column_name
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.predicate import parse_predicate
from hudi_index_service.predicate.comparison import MAX_PRECISION
from hudi_index_service.predicate.values import identifier_sql, literal_sql, string_sql
from hudi_index_service.sql.rule.full_text import can_search, condition_of
from hudi_index_service.sql.rule.request import Condition
from hudi_index_service.table import IndexedTable

_ARROW_TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
"""Catalyst's type name → the Arrow type of its literals; decimals have names of their own."""

_PATTERNS = {"starts with": "{}%", "ends with": "%{}", "contains": "%{}%"}


class _Untranslatable(Exception):
    """The condition has no where text; only Spark evaluates it."""


class Translation:
    """Translates the conditions on one table.

    Args:
        can_answer: Whether the service can answer a where text on the table.
        can_search: Whether an index of the table answers a full-text condition, a where text, by an
            analyzer.
    """

    def __init__(
        self, can_answer: Callable[[str], bool], can_search: Callable[[str, str], bool]
    ) -> None:
        self.can_answer = can_answer
        self._can_search = can_search

    @classmethod
    def on(cls, table: IndexedTable) -> "Translation":
        """That of the conditions on a table."""
        return cls(partial(_is_supported, table.schema()), partial(can_search, table))

    @classmethod
    def of_all(cls, table: IndexedTable) -> "Translation":
        """The same without asking whether the table's columns support a condition."""
        return cls(lambda where: True, partial(can_search, table))

    def finds(self, condition: Condition) -> bool:
        """Whether it is a full-text condition that an index of the table answers."""
        return condition["op"] == "search" and self.exact(condition) is not None

    def where_text(self, conditions: Iterable[Condition]) -> str | None:
        """A condition that is TRUE at least for the rows for which all of the given ones are; None
        if no such condition is likely to exclude many rows. IS NOT NULL alone is not: Spark adds it
        to every null-rejecting condition and join."""
        selective = [each for each in conditions if each["op"] != "is not null"]
        texts = [self.implied(each) for each in selective]
        return _join(" AND ", dict.fromkeys(each for each in texts if each is not None))

    def exact_where_text(self, conditions: Iterable[Condition]) -> str | None:
        """A condition that is TRUE for just the rows for which all of the given ones are; None if
        none is known."""
        return self.exact({"op": "and", "of": list(conditions)})

    def implied(self, condition: Condition) -> str | None:
        """A condition that is TRUE at least for the rows for which the given one is; None if none
        is known."""
        match condition["op"]:
            case "and":
                parts = [self.implied(each) for each in condition["of"]]
                return _join(" AND ", (each for each in parts if each is not None))
            case "or":
                arms = [self.implied(each) for each in condition["of"]]
                known = [each for each in arms if each is not None]
                return _join(" OR ", known) if len(known) == len(arms) else None
        return self.exact(condition)

    def exact(self, condition: Condition) -> str | None:
        """The equivalent condition; None if none is known."""
        try:
            return self._exact(condition)
        except _Untranslatable:
            return None

    def _exact(self, condition: Condition) -> str:
        """The equivalent condition. Raises _Untranslatable."""
        match condition["op"]:
            case "and" | "or" as word:
                texts = [self._exact(each) for each in condition["of"]]
                return _join(f" {word.upper()} ", texts) or ""
            case "not":
                return f"NOT ({self._exact(condition['of'][0])})"
            case "search":
                return self._search(condition)
        leaf = _leaf(condition)
        if not self.can_answer(leaf):
            raise _Untranslatable
        return leaf

    def _search(self, condition: Condition) -> str:
        call = condition["call"]
        where = condition_of(call, column_name(condition["column"]))
        if not self._can_search(where, call["analyzer"]):
            raise _Untranslatable
        return where


def _is_supported(schema: pa.Schema, where: str) -> bool:
    """Whether the service supports a where text on a table with this schema."""
    try:
        parse_predicate(where, schema)
    except IndexServiceError:
        return False
    return True


def _join(word: str, texts: Iterable[str]) -> str | None:
    parts = list(texts)
    if len(parts) < 2:
        return parts[0] if parts else None
    return word.join(f"({each})" for each in parts)


def _leaf(condition: Condition) -> str:
    op = condition["op"]
    if op == "unknown":
        raise _Untranslatable
    column = ".".join(map(identifier_sql, condition["column"]))
    match op:
        case "is true":
            return column
        case "is null" | "is not null":
            return f"{column} {op.upper()}"
        case "in":
            values = ", ".join(_literal(condition, each) for each in condition["values"])
            return f"{column} IN ({values})"
        case "array contains":
            return f"array_contains({column}, {_literal(condition)})"
        case "like":
            pattern, escape = string_sql(_text(condition)), string_sql(condition["escape"])
            return f"{column} LIKE {pattern} ESCAPE {escape}"
        case "rlike":
            return f"{column} RLIKE {string_sql(_text(condition))}"
        case _ if op in _PATTERNS:
            pattern = _PATTERNS[op].format(_escaped(_text(condition)))
            return f"{column} LIKE {string_sql(pattern)} ESCAPE '!'"
        case "=" | "<=>" | "<" | "<=" | ">" | ">=":
            return f"{column} {op} {_literal(condition)}"
    raise _Untranslatable  # from a newer jar


def _text(condition: Condition) -> str:
    [value] = condition["values"]
    if condition["type"] != "string" or value is None:
        raise _Untranslatable
    return str(value)


_ONLY = object()


def _literal(condition: Condition, value: Any = _ONLY) -> str:
    """One of a condition's values as a literal; its only one if none is given."""
    if value is _ONLY:
        [value] = condition["values"]
    if value is None:
        return "NULL"
    kind = condition["type"]
    if kind.startswith("decimal("):
        return _decimal(value)
    arrow = _ARROW_TYPES.get(kind)
    if arrow is None:
        raise _Untranslatable
    match kind:
        case "float":
            value = np.float32(value)
        case "double":
            value = float(value)
        case "binary":
            value = base64.b64decode(value)
    return literal_sql(scalar(value, arrow))


def _decimal(value: Any) -> str:
    """A decimal as a literal, which has a digit for each step of its exponent."""
    try:
        number = Decimal(value)
    except InvalidOperation as error:
        raise _Untranslatable from error
    if not number.is_finite() or abs(int(number.as_tuple().exponent)) > MAX_PRECISION:
        raise _Untranslatable  # Spark has no such number
    return f"{number:f}BD"


def _escaped(text: str) -> str:
    """A LIKE pattern for the text itself, with `!` as its escape character."""
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
