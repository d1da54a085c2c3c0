"""Full-text calls in plain queries: what one means, and its values where no index has them."""

import json
import re
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import Field, TypeAdapter
from pyspark.sql.types import BooleanType, DataType, FloatType
from pyspark.sql.udf import UserDefinedFunction

from hudi_index_service.columns import column_name, column_path, find_column
from hudi_index_service.errors import (
    IndexChanged,
    PredicateInvalid,
    PredicateUnsupported,
    ScoreUnavailable,
)
from hudi_index_service.index.metadata.requirements import requirements, text_rankers
from hudi_index_service.predicate import parse_predicate
from hudi_index_service.predicate.expression import Constant, Match, MatchMode
from hudi_index_service.predicate.values import identifier_sql, string_sql
from hudi_index_service.read.ranked_search import ranker_of
from hudi_index_service.sql.rule.condition import Translation
from hudi_index_service.sql.rule.request import Call, Message, Names, Request, pinned, read_message
from hudi_index_service.table import IndexedTable

_KEPT = 256
_ON_SERIES = 200  # PythonEvalType of a function on pandas series

Values = Callable[[pa.Array], pa.Array]
"""Computes a value for each text, in their order, and null for NULL."""

SCORE = "score"
RETURNED: dict[str, DataType] = {
    **{mode.value: BooleanType() for mode in MatchMode},
    SCORE: FloatType(),
}
"""Function name → return type."""

WORDS: dict[MatchMode, Literal["any", "all"]] = {MatchMode.ANY: "any", MatchMode.ALL: "all"}
"""The functions whose rows have a score, with the words that a row needs."""

_PLACE = re.compile(r":? (?:'[^']*' at |\()line \d+, column \d+ of the predicate\)?")


class _Place(Message):
    table: str
    names: Names


class _Search(Message):
    function: MatchMode
    text: str
    edits: str | int | None = None
    columns: Annotated[list[_Place], Field(min_length=1)]


class _Scored(Message):
    function: MatchMode
    text: str
    edits: str | int | None = None
    column: str


class _Score(Message):
    function: Literal["score"]
    search: _Scored
    relation: Request


_UNBOUND: TypeAdapter[_Search | _Score] = TypeAdapter(_Search | _Score)


class FullTextCalls:
    """Knows the calls in one session's queries.

    Args:
        table: Opens the table of a base path.
    """

    def __init__(self, table: Callable[[str], IndexedTable]) -> None:
        self._table = table
        self._evaluators: OrderedDict[str, Values] = OrderedDict()
        self._lock = Lock()

    def bound(self, text: str) -> dict[str, Any]:
        """What a call means, as `Source.java` describes it.

        Raises:
            PredicateUnsupported, PredicateInvalid: a condition that cannot be answered.
            ScoreUnavailable: a score that cannot be computed.
            IndexServiceError: a table cannot be opened.
        """
        call = read_message(_UNBOUND, text)
        return self._score(call) if isinstance(call, _Score) else self._search(call)

    def function(self, call: Call) -> Any:
        """The JVM's object of a Spark function that evaluates a bound call on a text.

        Raises:
            IndexChanged: the column's analyzer has changed.
            IndexServiceError: the texts of a snapshot cannot be compared.
        """
        of = self.evaluator(call)
        return spark_function(call, of)._judf

    def evaluator(self, call: Call) -> Values:
        """Evaluates a bound call. Raises what `function` raises."""
        key = json.dumps(call, sort_keys=True)
        with self._lock:
            if key in self._evaluators:
                self._evaluators.move_to_end(key)
                return self._evaluators[key]
        of = self._make(call)
        self._keep(key, of)
        return of

    def _keep(self, key: str, of: Values) -> None:
        with self._lock:
            self._evaluators[key] = of
            while len(self._evaluators) > _KEPT:
                self._evaluators.popitem(last=False)

    def _make(self, call: Call) -> Values:
        table = self._table(call["table"])
        if call["function"] == SCORE:
            scoring = table.scoring(
                call["column"],
                call["text"],
                words=WORDS[MatchMode(call["mode"])],
                as_of=call["instant"],
                query_type=call["query_type"],
            )
            return scoring.scores
        text = search_text(MatchMode(call["function"]), call["column"], call["text"], call["edits"])
        match = search(table, text)
        if not isinstance(match, Match) or match.words.analyzer != call["analyzer"]:
            raise IndexChanged(
                f"The words of {call['column']} are found by another analyzer now.",
                remedy="Run the query again.",
            )
        return partial(match.words.matches, match)

    def _search(self, call: _Search) -> dict[str, Any]:
        matches = []
        for each in call.columns:
            where = search_text(call.function, column_name(each.names), call.text, call.edits)
            matches.append(search(self._table(each.table), where))
        if len({each.words for each in matches if isinstance(each, Match)}) > 1:
            raise PredicateUnsupported(
                f"{call.function.value} searches several columns at once, whose indexes have "
                "different analyzers.",
                remedy="Call it below the UNION, on each column separately.",
            )
        match, origin = matches[0], call.columns[0]
        if isinstance(match, Constant):
            return {"constant": match.value}
        bound = {
            "function": call.function.value,
            "text": match.text,
            "edits": str(match.edits) if match.mode is MatchMode.FUZZY else None,
            "analyzer": match.words.analyzer,
            "table": origin.table,
            "column": column_name(origin.names),
        }
        self._keep(json.dumps(bound, sort_keys=True), partial(match.words.matches, match))
        return {"call": bound}

    def _score(self, call: _Score) -> dict[str, Any]:
        scored, relation = call.search, call.relation
        mode = scored.function
        if mode not in WORDS:
            raise ScoreUnavailable(
                f"{mode.value} finds rows without scores.", remedy="Score match or match_any."
            )
        if (reason := relation.why_not()) is not None:
            raise ScoreUnavailable(f"score() needs a snapshot of the table: {reason}.")
        table = self._table(relation.uri)
        where = search_text(mode, scored.column, scored.text, scored.edits)
        run = pinned(table, relation, where, [])
        if isinstance(run, str):
            raise ScoreUnavailable(
                f"score() needs the snapshot that Spark reads: {run}.",
                remedy="Run REFRESH TABLE, then the query again.",
            )
        match, schema = run.reader.query.predicate, run.plan.snapshot.schema
        assert isinstance(match, Match), "it is only the condition, and its text is not NULL"
        name, _ = find_column(schema, column_path(scored.column))
        ranker_of(match, name, text_rankers(requirements(table.indexes(), schema)))
        return {
            "call": {
                "function": SCORE,
                "mode": mode.value,
                "text": scored.text,
                "table": relation.uri,
                "column": scored.column,
                "instant": run.plan.snapshot.instant,
                "query_type": relation.query_type,
            }
        }


def spark_function(call: Call, of: Values) -> UserDefinedFunction:
    """A vectorized function of texts for a bound call and its evaluator."""
    name = call["function"]
    return UserDefinedFunction(partial(_on_series, of), RETURNED[name], name, _ON_SERIES)


def search_text(mode: MatchMode, column: str, text: str, edits: str | int | None) -> str:
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
    on_table = Translation.on(table)
    try:
        predicate = parse_predicate(condition, on_table.schema, texts=on_table.texts)
    except (PredicateUnsupported, PredicateInvalid) as error:
        # The position refers to a generated text, not to the user's.
        raise error.reworded(_PLACE.sub("", error.message)) from error
    assert isinstance(predicate, Match | Constant), "it is one function"
    return predicate


def _on_series(values: Values, texts: Any) -> Any:
    """Values of a pandas series: the body of a vectorized Spark function."""
    return values(pa.Array.from_pandas(texts, type=pa.string())).to_pandas()
