"""The calls of full-text functions in a query, bound to the columns that they search.

Spark's optimizer would extract Python functions from conditions. To keep the conditions above the
relations, where an index can answer them, a bound call is first a *stand-in*: an expression only on
the text, of a kind that Spark can neither run nor extract. Stand-ins that no index has answered
become Python functions in the plan that is run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hudi_index_service.columns import column_name
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.predicate.expression import Match, MatchMode
from hudi_index_service.sql.catalyst.scala import elements
from hudi_index_service.sql.full_text.call import RUNS, Call, call_of, search, search_text
from hudi_index_service.sql.full_text.here import DriverRows
from hudi_index_service.sql.full_text.origin import NoColumn, path_of
from hudi_index_service.sql.full_text.tree import (
    Pairs,
    boolean,
    conjuncts,
    python_call,
    python_calls,
    rewritten,
    with_expressions,
)
from hudi_index_service.table import IndexedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Calls:
    """The bound calls of a query.

    Attributes:
        frame: The query with stand-ins, which must not be run.
        by_number: The calls, by their stand-ins' result id.
        here: The rows that the driver has read for it.
        known: Cached conditions.
    """

    spark: "SparkSession"
    frame: "DataFrame"
    by_number: Mapping[int, Call]
    here: DriverRows
    known: dict[tuple[str, str, str], str | None] = field(default_factory=dict)

    def condition(self, expression: Any, table: IndexedTable) -> str | None:
        """A stand-in's condition as a where text; None if the expression is not one, or the table
        does not have the call's analyzer: Spark propagates conditions to equal columns."""
        call = call_of(expression, self.by_number)
        if call is None or call.match is None:
            return None
        key = (table.uri, call.label, str(expression.children().head().toString()))
        if key not in self.known:
            self.known[key] = self._condition(call.match, expression, table)
        return self.known[key]

    def _condition(self, match: Match, expression: Any, table: IndexedTable) -> str | None:
        edits = str(match.edits) if match.mode is MatchMode.FUZZY else None
        try:
            attribute, fields = path_of(expression.children().head())
            column = column_name((str(attribute.name()), *fields))
            condition = search_text(match.mode, column, match.text, edits)
            predicate = search(table, condition)
        except (NoColumn, IndexServiceError):
            return None
        return (
            condition if isinstance(predicate, Match) and predicate.words == match.words else None
        )

    def decided(self, node: Any, table: IndexedTable) -> Any:
        """A filter directly above rows that were selected by its condition, with its searches
        replaced by TRUE."""
        true = boolean(self.spark, True)
        searches = [
            each for each in conjuncts(node.condition()) if self.condition(each, table) is not None
        ]
        return with_expressions(self.spark, node, [(each, true) for each in searches])

    def evaluated(self, plan: Any) -> Any:
        """A plan without stand-ins: with their values if the driver has the texts, else with
        functions that Spark runs."""
        plan = self.here.computed(plan, self.by_number)
        return rewritten(self.spark, plan, self._functions)

    def _functions(self, node: Any) -> Pairs:
        pairs = []
        for each in python_calls(self.spark, node):
            call = call_of(each, self.by_number)
            if call is not None:
                replacement = python_call(
                    self.spark, call.name, call.function, list(elements(each.children())), RUNS
                )
                pairs.append((each, replacement))
        return pairs
