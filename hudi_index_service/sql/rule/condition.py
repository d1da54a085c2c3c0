"""Binds the conditions of a request to a table, as predicates.

Spark has resolved names and coerced types, so literals have the types that they are written with.
For rows, whatever is not translated is left out: Spark's own filter stays above them.
"""

import base64
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from hudi_index_service.arrow import TRUE, integers_array, scalar, texts_array
from hudi_index_service.columns import find_column
from hudi_index_service.errors import IndexServiceError, PredicateUnsupported
from hudi_index_service.index.metadata.requirements import analyzed_texts, requirements
from hudi_index_service.predicate.coerce import array_contains, compare, in_list
from hudi_index_service.predicate.comparison import MAX_PRECISION, Literal, is_string, value_type
from hudi_index_service.predicate.expression import (
    BoundColumn,
    Compare,
    In,
    IsNull,
    Like,
    Match,
    MatchMode,
    Not,
    Operator,
    Predicate,
    RLike,
    conjunction,
    disjunction,
)
from hudi_index_service.predicate.like import escaped_text, parse_like
from hudi_index_service.predicate.regex import RegexUnsupported, parse_regex
from hudi_index_service.predicate.text.operands import Texts, number_literal
from hudi_index_service.read.query import Where
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


class NoCondition(PredicateUnsupported):
    """No index can answer the conditions on a relation."""

    def __init__(self) -> None:
        super().__init__("no index answers a condition on it", remedy="Spark evaluates it.")


class _Untranslatable(Exception):
    """Only Spark evaluates the condition."""


@dataclass(frozen=True, slots=True)
class Translation:
    """Translates the conditions on one table.

    Attributes:
        schema: The table's columns.
        texts: Returns the columns that full-text functions can search.
    """

    schema: pa.Schema
    texts: Texts

    @classmethod
    def on(cls, table: IndexedTable) -> "Translation":
        """That of the conditions on a table as it is now."""
        schema = table.schema()
        return cls(schema, lambda: analyzed_texts(requirements(table.indexes(), schema)))

    def finds(self, condition: Condition) -> bool:
        """Whether it is a full-text condition that an index of the table answers."""
        return condition["op"] == "search" and self.exact([condition]) is not None

    def implied(self, conditions: Iterable[Condition]) -> Predicate | None:
        """A condition that is TRUE at least for the rows for which all of the given ones are; None
        if no such condition is likely to exclude many rows. IS NOT NULL alone is not: Spark adds it
        to every null-rejecting condition and join."""
        selective = [each for each in conditions if each["op"] != "is not null"]
        found = [self._implied(each) for each in selective]
        known = dict.fromkeys(each for each in found if each is not None)
        return conjunction(known) if known else None

    def exact(self, conditions: Iterable[Condition]) -> Predicate | None:
        """A condition that is TRUE for just the rows for which all of the given ones are; None if
        none is known."""
        try:
            return conjunction(map(self._exact, conditions))
        except (_Untranslatable, IndexServiceError):
            return None

    def _implied(self, condition: Condition) -> Predicate | None:
        match condition["op"]:
            case "and":
                parts = [self._implied(each) for each in condition["of"]]
                known = [each for each in parts if each is not None]
                return conjunction(known) if known else None
            case "or":
                arms = [self._implied(each) for each in condition["of"]]
                known = [each for each in arms if each is not None]
                return disjunction(known) if len(known) == len(arms) else None
        return self.exact([condition])

    def _exact(self, condition: Condition) -> Predicate:
        """The equivalent condition. Raises _Untranslatable, IndexServiceError."""
        match condition["op"]:
            case "and":
                return conjunction(map(self._exact, condition["of"]))
            case "or":
                return disjunction(map(self._exact, condition["of"]))
            case "not":
                return Not(self._exact(condition["of"][0]))
            case "unknown":
                raise _Untranslatable
        column = BoundColumn(*find_column(self.schema, condition["column"]))
        return self._search(column, condition) if "call" in condition else _leaf(column, condition)

    def _search(self, column: BoundColumn, condition: Condition) -> Match:
        call, texts = condition["call"], self.texts().get(column.name, ())
        if [each.analyzer for each in texts] != [call["analyzer"]]:
            raise _Untranslatable
        mode = MatchMode(call["function"])
        return Match(column, mode, call["text"], texts[0], int(call["edits"] or 0))


def bound(translate: Callable[[Translation], Predicate | None]) -> Where:
    """What a scan binds, to the snapshot's schema; it raises NoCondition if nothing is
    translated."""

    def where(schema: pa.Schema, texts: Texts) -> Predicate:
        found = translate(Translation(schema, texts))
        if found is None:
            raise NoCondition
        return found

    return where


def _leaf(column: BoundColumn, condition: Condition) -> Predicate:
    match op := condition["op"]:
        case "is true":
            if not pa.types.is_boolean(value_type(column)):
                raise _Untranslatable
            return Compare(column, Operator.EQ, TRUE)
        case "is null":
            return IsNull(column)
        case "is not null":
            return Not(IsNull(column))
        case "in":
            return _among(column, condition)
        case "array contains":
            return array_contains(column, _literal(condition["type"], *condition["values"]), UTC)
        case "like":
            return _like(column, _text(column, condition), condition["escape"])
        case "rlike":
            text = _text(column, condition)
            try:
                return RLike(column, text, parse_regex(text))
            except RegexUnsupported as error:
                raise _Untranslatable from error
        case _ if op in _PATTERNS:
            return _like(column, _PATTERNS[op].format(escaped_text(_text(column, condition))), "!")
        case "=" | "<=>" | "<" | "<=" | ">" | ">=":
            literal = _literal(condition["type"], *condition["values"])
            return compare(column, Operator(op), literal, UTC)
    raise _Untranslatable  # from a newer jar


def _like(column: BoundColumn, pattern: str, escape: str) -> Like:
    return Like(column, pattern, escape, parse_like(pattern, escape))


def _among(column: BoundColumn, condition: Condition) -> Predicate:
    kind, values = value_type(column), condition["values"]
    present: list[Any] = list(dict.fromkeys(each for each in values if each is not None))
    if present and _ARROW_TYPES.get(condition["type"]) == kind:  # no cast one by one
        has_null = None in values
        if is_string(kind):
            return In(column, texts_array(present, kind), has_null)
        if pa.types.is_signed_integer(kind):
            return In(column, integers_array(present, kind), has_null)
    return in_list(column, [_literal(condition["type"], each) for each in values], UTC)


def _text(column: BoundColumn, condition: Condition) -> str:
    [value] = condition["values"]
    if condition["type"] != "string" or value is None or not is_string(value_type(column)):
        raise _Untranslatable
    return str(value)


def _literal(kind: str, value: Any) -> Literal:
    """A value of one of Catalyst's types."""
    if value is None:
        return Literal(pa.NULL, "NULL")
    if kind.startswith("decimal("):
        return Literal(_decimal(value), str(value))
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
    # Written as text, numbers that are not finite would be cast.
    plain = kind not in ("float", "double") or math.isfinite(value)
    return Literal(scalar(value, arrow), str(value), plain)


def _decimal(value: Any) -> pa.Scalar:
    """A decimal, which has a digit for each step of its exponent."""
    try:
        number = Decimal(value)
    except InvalidOperation as error:
        raise _Untranslatable from error
    if not number.is_finite() or abs(int(number.as_tuple().exponent)) > MAX_PRECISION:
        raise _Untranslatable  # Spark has no such number
    return number_literal(f"{number:f}BD")
