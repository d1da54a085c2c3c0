"""Simplifies a predicate over rows in which some columns have a single value."""

from collections.abc import Mapping

import pyarrow as pa

from hudi_index_service.predicate.evaluate import evaluate
from hudi_index_service.predicate.expression import (
    And,
    Constant,
    Not,
    Or,
    Predicate,
    conjunction,
    disjunction,
)


def with_values(predicate: Predicate, values: Mapping[str, pa.Scalar]) -> Predicate:
    """The predicate with these columns replaced by their values, by name: conditions on them become
    constants. Negation normal form is preserved."""
    row = pa.record_batch([pa.repeat(each, 1) for each in values.values()], list(values))
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
