"""Conditions of Spark's optimized plans as where texts.

Spark has resolved names and coerced types already, so that a where text made of a condition needs
no coercion: its literals are written in the very type that Catalyst gives them. What is not
translated stays with Spark, whose own filter remains above the rows.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_index_service.predicate.spark_sql import identifier_sql, literal_sql, string_sql
from hudi_index_service.sql.select.scala import class_name, elements

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
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
_TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_MOST_VALUES = 10_000
_NUMBER = re.compile(r"-?\d+(?:[LSY]|(?:\.\d+)?BD)?")
_DATE = re.compile(r"DATE '(\d{4}-\d\d-\d\d)'")
_TEXT = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SEPARATOR = "\0\1\0"  # between the values of a set; one that holds it is not translated


class Untranslatable(Exception):
    """An expression has no where text; Spark alone checks it then."""


class Conditions:
    """Translates conditions over one relation.

    Args:
        answered: Whether the service can answer a where text on the table.
        searched: Gives the where text of a full-text search; None for every other expression.
    """

    def __init__(
        self,
        answered: Callable[[str], bool],
        searched: Callable[[Any], str | None] = lambda expression: None,
    ) -> None:
        self._answered = answered
        self._searched = searched

    def where(self, condition: Any) -> str | None:
        """A condition that holds for every row for which the given one does, and maybe for more;
        None where none is known that may rule out many rows. Of IS NOT NULL that is not thought:
        Spark itself adds it to every condition and join that NULL does not fulfil."""
        parts = [self._implied(each) for each in _conjuncts(condition)]
        known = [each for each in dict.fromkeys(parts) if each is not None]
        telling = [each for each in known if not each.endswith(_NOT_NULL)]
        return _joined(" AND ", telling) if telling else None

    def exact(self, condition: Any) -> str | None:
        """The very same condition; None if it has no where text. Without the IS NOT NULL that Spark
        adds to what NULL does not fulfil anyway."""
        conjuncts = _conjuncts(condition)
        try:
            telling = {_asked_column(each) for each in conjuncts}
            parts = [
                self._exact(each)
                for each in conjuncts
                if _kind(each) != "IsNotNull" or _column(each.child()) not in telling
            ]
        except Untranslatable:
            return None
        return _joined(" AND ", list(dict.fromkeys(parts)))

    def _implied(self, condition: Any) -> str | None:
        """A condition that holds for every row for which the given one does."""
        kind = _kind(condition)
        if kind == "And":
            parts = [self._implied(each) for each in _conjuncts(condition)]
            known = [each for each in dict.fromkeys(parts) if each is not None]
            return _joined(" AND ", known) if known else None
        if kind == "Or":
            arms = [self._implied(condition.left()), self._implied(condition.right())]
            told = [each for each in arms if each is not None]
            return _joined(" OR ", told) if len(told) == len(arms) else None
        try:
            return self._exact(condition)
        except Untranslatable:
            return None

    def _exact(self, expression: Any) -> str:
        """The very same condition. Raises Untranslatable."""
        match _kind(expression):
            case "And" | "Or" as kind:
                sides = (self._exact(expression.left()), self._exact(expression.right()))
                return _joined(f" {kind.upper()} ", sides)
            case "Not":
                return f"NOT ({self._exact(expression.child())})"
        searched = self._searched(expression)
        if searched is not None:
            return searched
        leaf = _leaf(expression)
        if not self._answered(leaf):
            raise Untranslatable
        return leaf


def _conjuncts(condition: Any) -> list[Any]:
    if _kind(condition) != "And":
        return [condition]
    return [*_conjuncts(condition.left()), *_conjuncts(condition.right())]


def _joined(word: str, parts: "list[str] | tuple[str, ...]") -> str:
    return parts[0] if len(parts) == 1 else word.join(f"({each})" for each in parts)


_NOT_NULL = " IS NOT NULL"


def _kind(expression: Any) -> str:
    """The name of one of Catalyst's own expressions; "" of any other."""
    package, _, name = class_name(expression).rpartition(".")
    return name if f"{package}." == _EXPRESSIONS else ""


def _leaf(expression: Any) -> str:
    match _kind(expression):
        case "AttributeReference" | "GetStructField":
            return _column(expression)
        case "IsNull":
            return f"{_column(expression.child())} IS NULL"
        case "IsNotNull":
            return f"{_column(expression.child())}{_NOT_NULL}"
        case kind if kind in _COMPARISONS:
            return _comparison(expression, _COMPARISONS[kind])
        case "In":
            values = ", ".join(_literal(each) for each in elements(expression.list()))
            return f"{_column(expression.value())} IN ({values})"
        case "InSet":
            return f"{_column(expression.child())} IN ({_set(expression)})"
        case kind if kind in _PATTERNS:
            pattern = _PATTERNS[kind].format(_escaped(_text(expression.right())))
            return f"{_column(expression.left())} LIKE {string_sql(pattern)} ESCAPE '!'"
        case "Like":
            pattern, escape = _text(expression.right()), str(expression.escapeChar())
            like = f"{_column(expression.left())} LIKE {string_sql(pattern)}"
            return f"{like} ESCAPE {string_sql(escape)}"
        case "RLike":
            return f"{_column(expression.left())} RLIKE {string_sql(_text(expression.right()))}"
        case "ArrayContains":
            array, value = _column(expression.left()), _literal(expression.right())
            return f"array_contains({array}, {value})"
    raise Untranslatable


def _comparison(expression: Any, operator: str) -> str:
    left, right = expression.left(), expression.right()
    if _kind(left) == "Literal":
        left, right, operator = right, left, _MIRRORED[operator]
    return f"{_column(left)} {operator} {_literal(right)}"


def _asked_column(condition: Any) -> str | None:
    """The column that a condition holds against literals, which NULL does not fulfil; None for
    every other condition. Raises Untranslatable."""
    match _kind(condition):
        case "EqualNullSafe" | "IsNull" | "IsNotNull":
            return None
        case kind if kind in _COMPARISONS:
            left, right = condition.left(), condition.right()
            return _column(right if _kind(left) == "Literal" else left)
        case "In":
            return _column(condition.value())
        case "InSet":
            return _column(condition.child())
        case kind if kind in _PATTERNS or kind in ("Like", "RLike"):
            return _column(condition.left())
    return None


def _column(expression: Any) -> str:
    match _kind(expression):
        case "AttributeReference":
            return identifier_sql(str(expression.name()))
        case "GetStructField":
            struct = expression.child()
            field = struct.dataType().apply(expression.ordinal())
            return f"{_column(struct)}.{identifier_sql(str(field.name()))}"
    raise Untranslatable


def _text(expression: Any) -> str:
    if _kind(expression) != "Literal":
        raise Untranslatable
    text = _written(str(expression.sql()))
    if text is None:
        raise Untranslatable
    return text


def _written(own: str) -> str | None:
    """The text that a literal of Spark's own SQL stands for; None for one of another type."""
    text = _TEXT.fullmatch(own)
    return None if text is None else _faithful(_ESCAPED.sub(r"\1", text[1]))


def _faithful(text: str) -> str:
    if "\ufffd" in text:  # may stand for bytes that are no UTF-8
        raise Untranslatable
    return text


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")


def _literal(expression: Any) -> str:
    if _kind(expression) != "Literal":
        raise Untranslatable
    # Of these it is known from Spark's own SQL what they are: one call to the JVM.
    own = str(expression.sql())
    if _NUMBER.fullmatch(own):
        return own
    if date := _DATE.fullmatch(own):
        return f"DATE'{date[1]}'"
    if (text := _written(own)) is not None:
        return string_sql(text)
    value, kind = expression.value(), str(expression.dataType().catalogString())
    if value is None:
        return "NULL"
    if kind not in ("boolean", "binary", "double"):
        # Everything else is exact as text; a float through py4j would become a double.
        value = str(value.toString()) if hasattr(value, "toString") else str(value)
    return _literal_of(value, kind)


def _set(expression: Any) -> str:
    values, kind = expression.hset(), str(expression.child().dataType().catalogString())
    size = int(values.size())
    if size > _MOST_VALUES or kind in ("boolean", "binary") or values.contains(None):
        raise Untranslatable
    texts = str(values.mkString(_SEPARATOR)).split(_SEPARATOR)
    if len(texts) != size:
        raise Untranslatable
    return ", ".join(_literal_of(text, kind) for text in texts)


def _literal_of(value: Any, kind: str) -> str:
    """The literal of a value in Catalyst's own form, or that form's text."""
    if kind.startswith("decimal("):
        return f"{Decimal(value):f}BD"
    arrow = _TYPES.get(kind)
    if arrow is None:
        raise Untranslatable
    match kind:
        case "string":
            value = _faithful(value)
        case "float":
            value = np.float32(value)
        case "double":
            value = float(value)
        case "tinyint" | "smallint" | "int" | "bigint" | "date" | "timestamp" | "timestamp_ntz":
            value = int(value)
        case "binary":
            value = bytes(value)
    return literal_sql(pa.scalar(value, arrow))
