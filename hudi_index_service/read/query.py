"""A query, bound to a table's schema."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_index_service.errors import ColumnNotFound, PredicateInvalid
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked: rows where `predicate` is TRUE, with the columns of `output`.

    Attributes:
        predicate: As written; None for every row. It is the residual on all rows read.
        normal_form: The same in negation normal form, which indexes answer.
        output: The columns wanted, in order, with the table's types.
        needed: `output`, and after it the columns that only the predicate needs.
    """

    predicate: Predicate | None
    normal_form: Predicate | None
    output: pa.Schema
    needed: pa.Schema

    def counting(self) -> "Query":
        """The same rows without any output column."""
        return _query(self.predicate, pa.schema([]), self.needed)


def bind_query(
    where: str | None,
    columns: Sequence[str] | None,
    schema: pa.Schema,
    *,
    time_zone: str,
) -> Query:
    """Binds a where text and column names to the table's schema.

    Args:
        where: A Spark SQL predicate, or None.
        columns: Names, case-insensitive; None for all columns, Hudi's meta columns included, as
            Spark's ``select *`` gives them.
        time_zone: Of literals that name none.

    Raises:
        ColumnNotFound, PredicateInvalid, PredicateUnsupported: see `parse_predicate`.
    """
    predicate = None if where is None else parse_predicate(where, schema, time_zone=time_zone)
    names = schema.names if columns is None else [_resolve(name, schema) for name in columns]
    return _query(predicate, pa.schema([schema.field(name) for name in names]), schema)


def _query(predicate: Predicate | None, output: pa.Schema, schema: pa.Schema) -> Query:
    used = set() if predicate is None else predicate.columns()
    extra = [name for name in schema.names if name in used and name not in output.names]
    needed = pa.schema([*output, *(schema.field(name) for name in extra)])
    normal_form = None if predicate is None else negation_normal_form(predicate)
    return Query(predicate, normal_form, output, needed)


def _resolve(name: str, schema: pa.Schema) -> str:
    if name in schema.names:
        return name
    same: list[str] = [each for each in schema.names if each.lower() == name.lower()]
    if len(same) > 1:
        raise PredicateInvalid(f"Column {name} could be any of {', '.join(same)}.")
    if not same:
        raise ColumnNotFound(
            f"Column {name} is not in the table's schema.",
            remedy=f"The columns are: {', '.join(schema.names)}.",
        )
    return same[0]
