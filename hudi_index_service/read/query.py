"""A query, bound to a table's schema."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from hudi_index_service.columns import (
    column_field,
    column_path,
    find_column,
    require_list,
    root_column,
)
from hudi_index_service.config import ReadSettings
from hudi_index_service.errors import ColumnNotFound, ConfigInvalid
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.evaluate import with_values
from hudi_index_service.predicate.expression import AnalyzedText, Predicate
from hudi_index_service.predicate.text.operands import Texts

Where: TypeAlias = str | Callable[[pa.Schema, Texts], Predicate]
"""A condition: a Spark SQL predicate, or what makes one for a table's schema and the columns that
full-text functions can search."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query: the rows where `predicate` is TRUE, with the columns of `output`.

    Attributes:
        predicate: As written; None for every row. It is the residual on all rows read.
        normal_form: The same in negation normal form, which indexes answer.
        output: The output columns, in order, with the table's types.
        needed: `output`, followed by the columns that only the predicate needs; of a struct, only
            the fields that it needs.
        table: All columns of the table.
        values: Columns that have one value in all rows, regardless of the files' contents. The
            predicate's conditions on them are already evaluated.
    """

    predicate: Predicate | None
    normal_form: Predicate | None
    output: pa.Schema
    needed: pa.Schema
    table: pa.Schema
    values: Mapping[str, pa.Scalar] = field(default_factory=dict)

    def where_known(self, values: Mapping[str, pa.Scalar]) -> "Query":
        """The same query on rows where the given columns have the given values."""
        needed_values = {name: values[name] for name in values if name in self.needed.names}
        if not needed_values:
            return self
        predicate, normal_form = (
            each and with_values(each, needed_values) for each in (self.predicate, self.normal_form)
        )
        return replace(self, predicate=predicate, normal_form=normal_form, values=needed_values)

    @property
    def needed_roots(self) -> list[str]:
        """The top-level columns of the table that hold the needed columns."""
        return list(dict.fromkeys(root_column(name) for name in self.needed.names))

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the predicate."""
        return frozenset() if self.predicate is None else self.predicate.columns()

    def narrowed(self, output: pa.Schema) -> "Query":
        """The same query without some fields of the structs in its output.

        Args:
            output: The same columns with the same types, without the struct fields that are not to
                be read. Fields that the predicate uses must be present.
        """
        if output.equals(self.output, check_metadata=True):
            return self
        types = {each.name: each.type for each in output}
        table = pa.schema([each.with_type(types.get(each.name, each.type)) for each in self.table])
        needed = _needed(self.predicate, output, table)
        return replace(self, output=output, needed=needed, table=table)

    def counting(self) -> "Query":
        """The same rows without any output column."""
        nothing = pa.schema([])
        return replace(self, output=nothing, needed=_needed(self.predicate, nothing, self.table))


@dataclass(slots=True)
class Binding:
    """A query as written, to be bound to the table's schema at run time, since the meaning of a
    literal depends on its column's type.

    Attributes:
        where: None for every row.
        columns: Names of top-level columns, case-insensitive; None for all columns, Hudi's
            meta columns included, as in Spark's ``select *``.
        time_zone: The time zone of literals without one.
        texts: Returns the columns of a schema that full-text functions can search; called only if
            the predicate has such a function.
        settings: Limit the length of a predicate; the process's own settings when None.
        counting: Whether only the number of rows is needed, and no output column.
    """

    where: Where | None
    columns: Sequence[str] | None
    time_zone: str
    texts: Callable[[pa.Schema], Mapping[str, Sequence[AnalyzedText]]] = lambda schema: {}
    settings: ReadSettings | None = None
    counting: bool = False
    _last: Query | None = field(default=None, init=False)

    def for_counting(self) -> "Binding":
        """The same query for counting its rows; keeps the bound query."""
        counting = replace(self, counting=True)
        if self._last is not None:
            counting._last = self._last.counting()
        return counting

    def to(self, schema: pa.Schema) -> Query:
        """The query on a table of that schema.

        Raises:
            ColumnNotFound, ColumnAmbiguous: for `columns`.
            ConfigInvalid: a column is named twice, or `columns` is not a list.
            ColumnNotFound, PredicateInvalid, PredicateUnsupported: see `parse_predicate`.
        """
        last = self._last
        if last is None or not (
            last.table is schema or last.table.equals(schema, check_metadata=True)
        ):
            predicate, output = self._predicate(schema), _output(self.columns, schema)
            normal_form = None if predicate is None else negation_normal_form(predicate)
            needed = _needed(predicate, output, schema)
            bound = Query(predicate, normal_form, output, needed, schema)
            last = self._last = bound.counting() if self.counting else bound
        return last

    def _predicate(self, schema: pa.Schema) -> Predicate | None:
        texts = partial(self.texts, schema)
        if callable(self.where):
            return self.where(schema, texts)
        if self.where is None:
            return None
        return parse_predicate(
            self.where, schema, time_zone=self.time_zone, texts=texts, settings=self.settings
        )


def _output(columns: Sequence[str] | None, schema: pa.Schema) -> pa.Schema:
    """The columns of these names; all for None."""
    names = schema.names
    if columns is not None:
        require_list(columns, "columns")
        known = frozenset(names)
        names = [_top_level(name, schema, known) for name in columns]
    if len(set(names)) < len(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise ConfigInvalid(
            f"Column {duplicate} is named twice.", remedy="Name each column once, in any case."
        )
    return pa.schema([schema.field(name) for name in names])


def _needed(predicate: Predicate | None, output: pa.Schema, schema: pa.Schema) -> pa.Schema:
    """The output, followed by the columns that only the predicate needs."""
    used = sorted(set() if predicate is None else predicate.columns())
    names = set(output.names)
    whole = {*names, *(name for name in used if len(column_path(name)) == 1)}
    extra = [name for name in used if name in whole or root_column(name) not in whole]
    return pa.schema([*output, *(column_field(schema, n) for n in extra if n not in names)])


def _top_level(name: str, schema: pa.Schema, known: Set[str]) -> str:
    """A column's name as the schema has it.

    Args:
        known: The schema's names.
    """
    if isinstance(name, str) and name in known:
        return name
    column, _ = find_column(schema, column_path(name))
    if len(column_path(column)) > 1:
        raise ColumnNotFound(
            f"{column} is a field of a struct: only whole columns are returned.",
            remedy=f"Ask for {root_column(column)}.",
        )
    return root_column(column)
