"""A predicate over rows in which some columns have one value."""

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
    """The same predicate where these columns have these values, by name: what is asked of them
    becomes a constant. Negation normal form stays so."""
    row = pa.record_batch([pa.repeat(each, 1) for each in values.values()], list(values))
    return _replaced(predicate, row)


def _replaced(predicate: Predicate, row: pa.RecordBatch) -> Predicate:
    columns = predicate.columns()
    if columns and columns <= set(row.schema.names):
        return Constant(evaluate(predicate, row)[0].as_py())
    match predicate:
        case And(operands):
            return conjunction(_replaced(each, row) for each in operands)
        case Or(operands):
            return disjunction(_replaced(each, row) for each in operands)
        case Not(operand):
            return Not(_replaced(operand, row))
        case _:
            return predicate
