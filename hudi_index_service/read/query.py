"""A query, bound to a table's schema."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_index_service.columns import column_path, column_type, find_column, root_column
from hudi_index_service.errors import ColumnNotFound
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked: rows where `predicate` is TRUE, with the columns of `output`.

    Attributes:
        predicate: As written; None for every row. It is the residual on all rows read.
        normal_form: The same in negation normal form, which indexes answer.
        output: The columns wanted, in order, with the table's types.
        needed: `output`, and after it the columns that only the predicate needs: of a struct, the
            very fields.
        table: All columns of the table.
    """

    predicate: Predicate | None
    normal_form: Predicate | None
    output: pa.Schema
    needed: pa.Schema
    table: pa.Schema

    @property
    def needed_roots(self) -> list[str]:
        """The columns of the table that hold what is needed."""
        return list(dict.fromkeys(root_column(name) for name in self.needed.names))

    def counting(self) -> "Query":
        """The same rows without any output column."""
        return _query(self.predicate, pa.schema([]), self.table)


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
        columns: Names of top-level columns, case-insensitive; None for all columns, Hudi's
            meta columns included, as Spark's ``select *`` gives them.
        time_zone: Of literals that name none.

    Raises:
        ColumnNotFound, ColumnAmbiguous: of `columns`.
        ColumnNotFound, PredicateInvalid, PredicateUnsupported: see `parse_predicate`.
    """
    predicate = None if where is None else parse_predicate(where, schema, time_zone=time_zone)
    names = schema.names if columns is None else [_top_level(name, schema) for name in columns]
    return _query(predicate, pa.schema([schema.field(name) for name in names]), schema)


def _query(predicate: Predicate | None, output: pa.Schema, schema: pa.Schema) -> Query:
    used = sorted(set() if predicate is None else predicate.columns())
    whole = {*output.names, *(name for name in used if len(column_path(name)) == 1)}
    extra = [name for name in used if name in whole or root_column(name) not in whole]
    needed = pa.schema(
        [*output, *((n, column_type(schema, n)) for n in extra if n not in output.names)]
    )
    normal_form = None if predicate is None else negation_normal_form(predicate)
    return Query(predicate, normal_form, output, needed, schema)


def _top_level(name: str, schema: pa.Schema) -> str:
    if name in schema.names:
        return name
    found, _ = find_column(schema, column_path(name))
    if len(column_path(found)) > 1:
        raise ColumnNotFound(
            f"{found} is a field of a struct: only whole columns are returned.",
            remedy=f"Ask for {root_column(found)}.",
        )
    return root_column(found)
