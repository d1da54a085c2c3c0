"""Translates conditions of Spark's optimized plans to where texts.

Spark has already resolved names and coerced types, so the where text needs no coercion: its
literals have the types that Catalyst gives them. Conditions that are not translated stay with
Spark, whose own filter remains above the rows.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_index_service.predicate.spark_sql import identifier_sql, literal_sql, string_sql
from hudi_index_service.sql.catalyst.expression import Described, Expression, read_conjuncts

_MIRRORED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_PATTERNS = {"StartsWith": "{}%", "EndsWith": "%{}", "Contains": "%{}%"}
ARROW_TYPES: dict[str, pa.DataType] = {
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

_MOST_VALUES = 10_000
_SEPARATOR = "\0\1\0"  # between the values of a set; a value that contains it is not translated


class Untranslatable(Exception):
    """The expression has no where text; only Spark evaluates it."""


class Conditions:
    """Translates conditions over one relation.

    Args:
        can_answer: Whether the service can answer a where text on the table.
        full_text: Returns the where text of a full-text search; None for every other expression.
    """

    def __init__(
        self,
        can_answer: Callable[[str], bool],
        full_text: Callable[[Expression], str | None] = lambda expression: None,
    ) -> None:
        self._can_answer = can_answer
        self._full_text = full_text

    def where(self, condition: Described) -> str | None:
        """A condition that is TRUE at least for the rows for which the given one is; None if no
        such condition is likely to exclude many rows. IS NOT NULL alone is not: Spark adds it to
        every null-rejecting condition and join."""
        parts = [self._implied(each) for each in read_conjuncts(condition)]
        texts = [each for each in dict.fromkeys(parts) if each is not None]
        selective = [each for each in texts if not each.endswith(_NOT_NULL)]
        return _join(" AND ", selective) if selective else None

    def exact(self, condition: Described) -> str | None:
        """The equivalent condition; None if it has no where text. Omits the IS NOT NULL that Spark
        adds to null-rejecting conditions."""
        conjuncts = read_conjuncts(condition)
        try:
            null_rejecting = {_null_rejecting_column(each) for each in conjuncts}
            parts = [
                self._exact(each)
                for each in conjuncts
                if each.kind != "IsNotNull" or _column(each.children[0]) not in null_rejecting
            ]
        except Untranslatable:
            return None
        return _join(" AND ", list(dict.fromkeys(parts)))

    def _implied(self, condition: Expression) -> str | None:
        """A condition that is TRUE at least for the rows for which the given one is; None if none
        is known."""
        if condition.kind == "And":
            parts = [self._implied(each) for each in condition.conjuncts()]
            texts = [each for each in dict.fromkeys(parts) if each is not None]
            return _join(" AND ", texts) if texts else None
        if condition.kind == "Or":
            arms = [self._implied(each) for each in condition.children]
            texts = [each for each in arms if each is not None]
            return _join(" OR ", texts) if len(texts) == len(arms) else None
        try:
            return self._exact(condition)
        except Untranslatable:
            return None

    def _exact(self, expression: Expression) -> str:
        """The equivalent condition. Raises Untranslatable."""
        match expression.kind:
            case "And" | "Or" as kind:
                sides = [self._exact(each) for each in expression.children]
                return _join(f" {kind.upper()} ", sides)
            case "Not":
                return f"NOT ({self._exact(expression.children[0])})"
        search = self._full_text(expression)
        if search is not None:
            return search
        leaf = _leaf(expression)
        if not self._can_answer(leaf):
            raise Untranslatable
        return leaf


def _join(word: str, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else word.join(f"({each})" for each in parts)


_NOT_NULL = " IS NOT NULL"


def _leaf(expression: Expression) -> str:
    children = expression.children
    match expression.kind:
        case "AttributeReference" | "GetStructField":
            return _column(expression)
        case "IsNull":
            return f"{_column(children[0])} IS NULL"
        case "IsNotNull":
            return f"{_column(children[0])}{_NOT_NULL}"
        case kind if kind in _COMPARISONS:
            return _comparison(children[0], children[1], _COMPARISONS[kind])
        case "In":
            values = ", ".join(map(_literal, children[1:]))
            return f"{_column(children[0])} IN ({values})"
        case "InSet":
            return f"{_column(children[0])} IN ({_set(expression)})"
        case kind if kind in _PATTERNS:
            pattern = _PATTERNS[kind].format(escape_wildcards(_text(children[1])))
            return f"{_column(children[0])} LIKE {string_sql(pattern)} ESCAPE '!'"
        case "Like":
            like = f"{_column(children[0])} LIKE {string_sql(_text(children[1]))}"
            return f"{like} ESCAPE {string_sql(str(expression.java.escapeChar()))}"
        case "RLike":
            return f"{_column(children[0])} RLIKE {string_sql(_text(children[1]))}"
        case "ArrayContains":
            return f"array_contains({_column(children[0])}, {_literal(children[1])})"
    raise Untranslatable


def _comparison(left: Expression, right: Expression, operator: str) -> str:
    if left.kind == "Literal":
        left, right, operator = right, left, _MIRRORED[operator]
    return f"{_column(left)} {operator} {_literal(right)}"


def _null_rejecting_column(condition: Expression) -> str | None:
    """The column that a null-rejecting condition compares with literals; None for every other
    condition. Raises Untranslatable."""
    match condition.kind:
        case "EqualNullSafe" | "IsNull" | "IsNotNull":
            return None
        case kind if kind in _COMPARISONS:
            left, right = condition.children
            return _column(right if left.kind == "Literal" else left)
        case kind if kind in _PATTERNS or kind in ("In", "InSet", "Like", "RLike"):
            return _column(condition.children[0])
    return None


def _column(expression: Expression) -> str:
    match expression.kind:
        case "AttributeReference":
            return identifier_sql(expression.fields["name"])
        case "GetStructField":
            struct = expression.children[0]
            name = _field(_type(struct), expression)["name"]
            return f"{_column(struct)}.{identifier_sql(name)}"
    raise Untranslatable


def _type(expression: Expression) -> Any:
    """The type of a column, as Spark writes types in JSON. Raises Untranslatable."""
    match expression.kind:
        case "AttributeReference":
            return expression.fields["dataType"]
        case "GetStructField":
            return _field(_type(expression.children[0]), expression)["type"]
    raise Untranslatable


def _field(struct: Any, expression: Expression) -> Any:
    """The field that an expression extracts from a struct's type."""
    return struct["fields"][expression.fields["ordinal"]]


def _text(expression: Expression) -> str:
    fields = expression.fields
    if expression.kind != "Literal" or fields["dataType"] != "string" or fields["value"] is None:
        raise Untranslatable
    return _faithful(fields["value"])


def _faithful(text: str) -> str:
    if "\ufffd" in text:  # may stand for bytes that are not UTF-8
        raise Untranslatable
    return text


def escape_wildcards(text: str) -> str:
    """A LIKE pattern for the text itself, with `!` as its escape character."""
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _literal(expression: Expression) -> str:
    if expression.kind != "Literal":
        raise Untranslatable
    value, kind = expression.fields["value"], expression.fields["dataType"]
    if value is None:
        return "NULL"
    if kind == "binary":  # its text is not exact
        value = expression.java.value()
    return _literal_of(value, kind)


def _set(expression: Expression) -> str:
    kind = _type(expression.children[0])
    if kind in ("boolean", "binary"):
        raise Untranslatable
    values = expression.java.hset()
    size = int(values.size())
    if size > _MOST_VALUES or values.contains(None):
        raise Untranslatable
    texts = str(values.mkString(_SEPARATOR)).split(_SEPARATOR)
    if len(texts) != size:
        raise Untranslatable
    return ", ".join(_literal_of(text, kind) for text in texts)


def _literal_of(value: Any, kind: Any) -> str:
    """The literal for a value in Catalyst's own form, or for the text of that form.

    Args:
        kind: The type, as Spark writes types in JSON.
    """
    if not isinstance(kind, str):
        raise Untranslatable
    if kind.startswith("decimal("):
        return f"{Decimal(value):f}BD"
    arrow = ARROW_TYPES.get(kind)
    if arrow is None:
        raise Untranslatable
    match kind:
        case "boolean":
            value = value == "true"
        case "string":
            value = _faithful(value)
        case "float":
            value = np.float32(value)
        case "double":
            value = float(value)
        case "byte" | "short" | "integer" | "long" | "date" | "timestamp" | "timestamp_ntz":
            value = int(value)
        case "binary":
            value = bytes(value)
    return literal_sql(pa.scalar(value, arrow))
