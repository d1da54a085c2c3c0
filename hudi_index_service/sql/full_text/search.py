"""Full-text functions, and their conditions as where texts."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from pyspark.sql.types import BooleanType, DataType, FloatType

from hudi_index_service.columns import column_path
from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported
from hudi_index_service.index.metadata.requirements import analyzed_texts, requirements
from hudi_index_service.predicate import parse_predicate
from hudi_index_service.predicate.expression import AnalyzedText, Constant, Match, MatchMode
from hudi_index_service.predicate.values import identifier_sql, string_sql
from hudi_index_service.table import IndexedTable

SCORE = "score"
RETURNED: dict[str, DataType] = {
    **{mode.value: BooleanType() for mode in MatchMode},
    SCORE: FloatType(),
}
"""Function name → return type."""

WORDS: dict[MatchMode, Literal["any", "all"]] = {MatchMode.ANY: "any", MatchMode.ALL: "all"}
"""The functions whose rows have a score, with the words that a row needs."""

_PLACE = re.compile(r":? (?:'[^']*' at |\()line \d+, column \d+ of the predicate\)?")


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
