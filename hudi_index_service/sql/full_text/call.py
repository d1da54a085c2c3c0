"""One call of a full-text function, bound to the column that it searches."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql.types import DataType
from pyspark.sql.udf import UserDefinedFunction

from hudi_index_service.columns import column_path
from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported
from hudi_index_service.index.entries.requirements import analyzed_texts, requirements
from hudi_index_service.predicate import parse_predicate
from hudi_index_service.predicate.expression import AnalyzedText, Constant, Match, MatchMode
from hudi_index_service.predicate.spark_sql import identifier_sql, string_sql
from hudi_index_service.sql.catalyst.scala import class_name
from hudi_index_service.sql.full_text.evaluation import OfTexts, OnSeries
from hudi_index_service.sql.full_text.tree import PYTHON_CALL
from hudi_index_service.table import IndexedTable

_PLACE = re.compile(r":? (?:'[^']*' at |\()line \d+, column \d+ of the predicate\)?")
# PythonEvalTypes: of a function that is not an expression, and of one on pandas series.
STANDS_IN = 207
RUNS = 200


@dataclass(frozen=True)
class Call:
    """A bound call.

    Attributes:
        name: Name of the function.
        return_type: Its return type.
        create: Creates the evaluator of its values.
        label: Equal only for calls with the same meaning, since Spark considers calls with equal
            names and arguments equal.
        match: The condition, with the analyzer of the text's column; None for a score.
        scored: The search that a score is based on; None for a condition.
    """

    name: str
    return_type: DataType
    create: Callable[[], OfTexts]
    label: str
    match: Match | None = None
    scored: Match | None = None

    @cached_property
    def of(self) -> OfTexts:
        """The evaluator of its values. Raises the errors of `create`."""
        return self.create()

    @cached_property
    def function(self) -> Any:
        """A Spark function that runs it."""
        return UserDefinedFunction(OnSeries(self.of), self.return_type, self.name, RUNS)._judf


def call_of(expression: Any, calls: Mapping[int, Call]) -> Call | None:
    """The call that an expression stands in for; None for every other expression.

    Args:
        calls: By their stand-ins' result id.
    """
    if class_name(expression) != PYTHON_CALL:
        return None
    return calls.get(int(expression.resultId().id()))


def search_text(mode: MatchMode, column: str, text: str, edits: str | None) -> str:
    """A condition as a where text.

    Args:
        edits: None for the default.
    """
    path = ".".join(identifier_sql(part) for part in column_path(column))
    last = "" if edits is None else f", {edits}"
    return f"{mode.value}({path}, {string_sql(text)}{last})"


def search(table: IndexedTable, condition: str) -> Match | Constant:
    """Parses a condition of one full-text function on a table.

    Raises:
        PredicateUnsupported, PredicateInvalid, ColumnNotFound: see `IndexedTable.scan`.
    """
    schema = table.schema()

    def texts() -> Mapping[str, Sequence[AnalyzedText]]:
        return analyzed_texts(requirements(table.indexes(), schema))

    try:
        predicate = parse_predicate(condition, schema, texts=texts)
    except (PredicateUnsupported, PredicateInvalid) as error:
        # The position refers to a generated text, not to the user's.
        raise error.reworded(_PLACE.sub("", error.message)) from error
    assert isinstance(predicate, Match | Constant), "it is one function"
    return predicate
