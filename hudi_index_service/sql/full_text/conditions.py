"""Conditions of a query on one table as where texts, including full-text functions."""

import pyarrow as pa

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.predicate import parse_predicate
from hudi_index_service.sql.catalyst.condition import Conditions
from hudi_index_service.sql.catalyst.expression import Expression
from hudi_index_service.sql.full_text.calls import Calls
from hudi_index_service.table import IndexedTable

_CALL = "PythonUDF"  # as for all Python functions


def conditions_on(table: IndexedTable, calls: Calls | None) -> Conditions:
    """The translator of Catalyst's conditions on the table."""
    schema = table.schema()

    def can_answer(where: str) -> bool:
        return answers(schema, where)

    if calls is None:
        return Conditions(can_answer)

    def full_text(each: Expression) -> str | None:
        return calls.condition(each.java, table) if each.kind == _CALL else None

    return Conditions(can_answer, full_text)


def answers(schema: pa.Schema, where: str) -> bool:
    """Whether the service supports a where text on a table."""
    try:
        parse_predicate(where, schema)
    except IndexServiceError:
        return False
    return True
