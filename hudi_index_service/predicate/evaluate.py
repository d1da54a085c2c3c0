"""Evaluation of predicates over Arrow data, vectorised, with Spark's three-valued results; and of
those parts that depend only on columns with known values."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial, reduce
from typing import TypeAlias, TypeVar, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import (
    FALSE,
    TRUE,
    as_numbers,
    as_truths,
    float_scalar,
    integer_scalar,
    scalar,
    text_scalar,
    truths_array,
)
from hudi_index_service.columns import column_values
from hudi_index_service.errors import NeedsSpark
from hudi_index_service.predicate.expression import (
    And,
    ArrayContains,
    BoundColumn,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    LikePart,
    Match,
    Not,
    Operator,
    Or,
    Predicate,
    RLike,
    conjunction,
    disjunction,
)
from hudi_index_service.predicate.like import least_length, like_regex, long_like_regex
from hudi_index_service.predicate.regex import LINE_END

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)
_Values: TypeAlias = pa.Array | pa.ChunkedArray

_BROKEN = "\ufffd"  # Java's replacement for bytes that are not UTF-8
# Unlike `pa.nulls`, this takes nothing from Arrow's allocator, which importing must not: workers
# choose another one first (`build.entry.worker`).
_NULL = truths_array(np.array([False]), np.array([True]))[0]
_LONGEST_REGEX = 1_000  # characters of a LIKE pattern
_COMPARISONS = {
    Operator.EQ: pc.equal,
    Operator.NE: pc.not_equal,
    Operator.LT: pc.less,
    Operator.LE: pc.less_equal,
    Operator.GT: pc.greater,
    Operator.GE: pc.greater_equal,
}


def evaluate(predicate: Predicate, data: pa.RecordBatch | pa.Table) -> pa.BooleanArray:
    """Whether each row of `data` matches the predicate; null if the predicate is NULL.

    `data` has the predicate's columns, or the structs that hold them, in the table's types.

    Raises:
        KeyError: a column is missing.
        NeedsSpark: a pattern is applied to text that is not UTF-8.
    """
    truth = _truth(predicate, data)
    if isinstance(truth, pa.ChunkedArray):
        return pa.concat_arrays(truth.chunks) if truth.num_chunks else pa.nulls(0, pa.bool_())
    return truth


def keep(predicate: Predicate, data: Rows) -> Rows:
    """The rows of `data` for which the predicate is TRUE, in order."""
    return data.filter(evaluate(predicate, data))


def _truth(predicate: Predicate, data: pa.RecordBatch | pa.Table) -> _Values:
    match predicate:
        case Constant(value):
            return pa.repeat(scalar(value, pa.bool_()), data.num_rows)
        case And(operands):
            return reduce(pc.and_kleene, (_truth(operand, data) for operand in operands))
        case Or(operands):
            return reduce(pc.or_kleene, (_truth(operand, data) for operand in operands))
        case Not(operand):
            return pc.invert(_truth(operand, data))
        case IsNull(column):
            return pc.is_null(_values(column, data))
        case Compare(column, operator, value):
            return _compare(_values(column, data), operator, value)
        case ArrayContains():
            arrays = _values(predicate.column, data)
            return _by_chunk(arrays, lambda chunk: _array_contains(chunk, predicate))
        case In():
            return _is_in(_values(predicate.column, data), predicate)
        case Like():
            return _like(_values(predicate.column, data), predicate)
        case Match():
            texts = _values(predicate.column, data)
            return _by_chunk(texts, partial(predicate.words.matches, predicate))
        case RLike():
            return _rlike(_values(predicate.column, data), predicate)
        case _:
            assert_never(predicate)


def _values(column: BoundColumn, data: pa.RecordBatch | pa.Table) -> _Values:
    values = column_values(data, column.name)
    if pa.types.is_dictionary(values.type):
        return values.cast(values.type.value_type)
    return values


def _by_chunk(values: _Values, truth: Callable[[pa.Array], pa.BooleanArray]) -> _Values:
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([truth(chunk) for chunk in values.chunks], pa.bool_())
    return truth(values)


def _compare(values: _Values, operator: Operator, value: pa.Scalar) -> _Values:
    if operator is Operator.EQ_NULL_SAFE:
        return pc.fill_null(_compare(values, Operator.EQ, value), FALSE)
    if pa.types.is_floating(values.type):
        return _compare_floating(values, operator, value)
    return _COMPARISONS[operator](values, value.cast(values.type))


def _compare_floating(values: _Values, operator: Operator, value: pa.Scalar) -> _Values:
    """Compares in Spark's total order, in which NaN equals NaN and is above all other values."""
    if operator in (Operator.NE, Operator.GE, Operator.LE):
        return pc.invert(_compare_floating(values, operator.negated, value))
    is_nan = pc.is_nan(values)
    if math.isnan(value.as_py()):
        nothing = pc.and_(is_nan, FALSE)
        return {Operator.EQ: is_nan, Operator.LT: pc.invert(is_nan)}.get(operator, nothing)
    result = _COMPARISONS[operator](values, value.cast(values.type))  # FALSE for NaN
    return pc.or_(result, is_nan) if operator is Operator.GT else result


def _is_in(values: _Values, predicate: In) -> _Values:
    value_set = predicate.values.cast(values.type)
    if pa.types.is_floating(values.type):
        # Adding 0.0 turns -0.0 into 0.0.
        zero = float_scalar(0.0, values.type)
        values, value_set = pc.add(values, zero), pc.add(value_set, zero)
    contained = pc.is_in(values, value_set=value_set)
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(value_set)).as_py():
        # is_in compares bits, in which one NaN may differ from another.
        contained = pc.or_(contained, pc.fill_null(pc.is_nan(values), FALSE))
    if predicate.has_null:
        return pc.if_else(contained, TRUE, _NULL)
    return pc.if_else(pc.is_valid(values), contained, _NULL)


def _array_contains(values: pa.Array, predicate: ArrayContains) -> pa.BooleanArray:
    elements, rows = pc.list_flatten(values), element_rows(values)
    equal = _compare(elements, Operator.EQ, predicate.value)
    contains, unknown = np.zeros((2, len(values)), dtype=bool)
    contains[rows[as_truths(pc.fill_null(equal, FALSE))]] = True
    unknown[rows[as_truths(pc.is_null(equal))]] = True
    is_null = ~contains & (unknown | as_truths(values.is_null()))
    return truths_array(contains, is_null)


def element_rows(arrays: pa.Array) -> np.ndarray:
    """The row of each element that ``list_flatten`` returns for a list array. (list_parent_indices
    also counts hidden elements of NULL lists.)"""
    lengths = pc.list_value_length(arrays)
    lengths = as_numbers(pc.fill_null(lengths, integer_scalar(0, lengths.type)))
    return np.repeat(np.arange(len(arrays)), lengths)


def _like(values: _Values, predicate: Like) -> _Values:
    kinds = [part.kind for part in predicate.parts]
    if _BROKEN in predicate.pattern:
        _require_utf8(values, predicate)
    text = next((part.text for part in predicate.parts if part.kind == "text"), "")
    match kinds:
        case ["any"]:
            return pc.if_else(pc.is_valid(values), TRUE, _NULL)
        case []:
            return pc.equal(values, text_scalar("", values.type))
        case ["text"]:
            return pc.equal(values, text_scalar(text, values.type))
        case ["text", "any"]:
            return pc.starts_with(values, pattern=text)
        case ["any", "text"]:
            return pc.ends_with(values, pattern=text)
        case ["any", "text", "any"]:
            return pc.match_substring(values, pattern=text)
    _require_utf8(values, predicate)
    if len(predicate.pattern) > _LONGEST_REGEX:
        return _by_chunk(values, lambda texts: _like_long(texts, predicate.parts))
    return pc.match_substring_regex(values, pattern=like_regex(predicate.parts))


def _like_long(values: pa.Array, parts: Sequence[LikePart]) -> pa.BooleanArray:
    """Matches a pattern that would take RE2 too much memory; few texts are long enough for it."""
    lengths = pc.utf8_length(values)
    long_enough = pc.greater_equal(lengths, integer_scalar(least_length(parts), lengths.type))
    rows = np.flatnonzero(as_truths(pc.fill_null(long_enough, FALSE))).tolist()
    matches = np.zeros(len(values), dtype=bool)
    regex = re.compile(long_like_regex(parts)) if rows else None
    for row in rows:
        matches[row] = regex is not None and regex.match(values[row].as_py()) is not None
    return truths_array(matches, as_truths(values.is_null()))


def _rlike(values: _Values, predicate: RLike) -> _Values:
    _require_utf8(values, predicate)
    regex = predicate.regex
    matches = pc.match_substring_regex(values, pattern=regex.re2)
    if not regex.before_line_end:
        return matches
    without_line_end = pc.replace_substring_regex(values, pattern=LINE_END, replacement="")
    return pc.or_(matches, pc.match_substring_regex(without_line_end, pattern=regex.re2))


def _require_utf8(values: _Values, predicate: Like | RLike) -> None:
    """Refuses bytes that are not UTF-8: in Spark, `_` and U+FFFD match Java's replacement."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise NeedsSpark(
            f"Column {predicate.column} holds text that is not UTF-8, which only Spark matches "
            "with a pattern."
        ) from error


def with_values(predicate: Predicate, values: Mapping[str, pa.Scalar]) -> Predicate:
    """The predicate with these columns replaced by their values, by name: conditions on them become
    constants. Negation normal form is preserved."""
    return _with_values(predicate, tuple(values.items()))


@lru_cache(maxsize=64)  # a partition's slices follow each other; some predicates take megabytes
def _with_values(predicate: Predicate, values: tuple[tuple[str, pa.Scalar], ...]) -> Predicate:
    row = pa.record_batch({name: pa.repeat(value, 1) for name, value in values})
    return _replace(predicate, row)


def _replace(predicate: Predicate, row: pa.RecordBatch) -> Predicate:
    columns = predicate.columns()
    if columns and columns <= set(row.schema.names):
        return Constant(evaluate(predicate, row)[0].as_py())
    match predicate:
        case And(operands):
            return conjunction(_replace(each, row) for each in operands)
        case Or(operands):
            return disjunction(_replace(each, row) for each in operands)
        case Not(operand):
            return Not(_replace(operand, row))
        case _:
            return predicate
