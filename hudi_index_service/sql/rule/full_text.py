"""Full-text calls in plain queries: what one means, and its values where no index has them."""

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from pyspark.sql.udf import UserDefinedFunction

from hudi_index_service.columns import column_name, column_path, find_column
from hudi_index_service.errors import (
    IndexChanged,
    IndexServiceError,
    PredicateUnsupported,
    ScoreUnavailable,
)
from hudi_index_service.index.metadata.requirements import requirements, text_rankers
from hudi_index_service.predicate.expression import Constant, Match, MatchMode
from hudi_index_service.read.ranked.search_request import ranker_of
from hudi_index_service.sql.full_text.evaluation import Matching, OfTexts, OnSeries, Scores
from hudi_index_service.sql.full_text.search import RETURNED, SCORE, WORDS, search, search_text
from hudi_index_service.sql.relations.pinned import pinned
from hudi_index_service.sql.rule.request import read_request
from hudi_index_service.table import IndexedTable

_KEPT = 256
_ON_SERIES = 200  # PythonEvalType of a function on pandas series

Call = Mapping[str, Any]
"""A bound call. A condition has `function`, `text`, `edits`, the `analyzer`, and the `table` and
`column` that it was bound for. A score has the condition's function and text as `mode` and `text`,
and the `instant` and `query_type` of the snapshot whose texts it compares."""


class FullTextCalls:
    """Knows the calls in one session's queries.

    Args:
        table: Opens the table of a base path.
    """

    def __init__(self, table: Callable[[str], IndexedTable]) -> None:
        self._table = table
        self._evaluators: OrderedDict[str, OfTexts] = OrderedDict()
        self._lock = Lock()

    def bound(self, text: str) -> dict[str, Any]:
        """What a call means, as `Source.java` describes it.

        Raises:
            PredicateUnsupported, PredicateInvalid: a condition that cannot be answered.
            ScoreUnavailable: a score that cannot be computed.
            IndexServiceError: a table cannot be opened.
        """
        call = json.loads(text)
        return self._score(call) if call["function"] == SCORE else self._search(call)

    def function(self, call: Call) -> Any:
        """The JVM's object of a Spark function that evaluates a bound call on a text.

        Raises:
            IndexChanged: the column's analyzer has changed.
            IndexServiceError: the texts of a snapshot cannot be compared.
        """
        of = self.evaluator(call)
        return spark_function(call, of)._judf

    def evaluator(self, call: Call) -> OfTexts:
        """Evaluates a bound call. Raises what `function` raises."""
        key = json.dumps(call, sort_keys=True)
        with self._lock:
            if key in self._evaluators:
                self._evaluators.move_to_end(key)
                return self._evaluators[key]
        of = self._make(call)
        self._keep(key, of)
        return of

    def _keep(self, key: str, of: OfTexts) -> None:
        with self._lock:
            self._evaluators[key] = of
            while len(self._evaluators) > _KEPT:
                self._evaluators.popitem(last=False)

    def _make(self, call: Call) -> OfTexts:
        table = self._table(call["table"])
        if call["function"] == SCORE:
            scoring = table.scoring(
                call["column"],
                call["text"],
                words=WORDS[MatchMode(call["mode"])],
                as_of=call["instant"],
                query_type=call["query_type"],
            )
            return Scores(scoring)
        match = search(table, condition_of(call, call["column"]))
        if not isinstance(match, Match) or match.words.analyzer != call["analyzer"]:
            raise IndexChanged(
                f"The words of {call['column']} are found by another analyzer now.",
                remedy="Run the query again.",
            )
        return Matching(match)

    def _search(self, call: dict[str, Any]) -> dict[str, Any]:
        matches = []
        for each in call["columns"]:
            column = column_name(each["names"])
            matches.append(search(self._table(each["table"]), condition_of(call, column)))
        if len({each.words for each in matches if isinstance(each, Match)}) > 1:
            raise PredicateUnsupported(
                f"{call['function']} searches several columns at once, whose indexes have "
                "different analyzers.",
                remedy="Call it below the UNION, on each column separately.",
            )
        match, origin = matches[0], call["columns"][0]
        if isinstance(match, Constant):
            return {"constant": match.value}
        bound = {
            "function": call["function"],
            "text": match.text,
            "edits": str(match.edits) if match.mode is MatchMode.FUZZY else None,
            "analyzer": match.words.analyzer,
            "table": origin["table"],
            "column": column_name(origin["names"]),
        }
        self._keep(json.dumps(bound, sort_keys=True), Matching(match))
        return {"call": bound}

    def _score(self, call: dict[str, Any]) -> dict[str, Any]:
        scored = call["search"]
        mode = MatchMode(scored["function"])
        if mode not in WORDS:
            raise ScoreUnavailable(
                f"{mode.value} finds rows without scores.", remedy="Score match or match_any."
            )
        relation = read_request(json.dumps(call["relation"]))
        if isinstance(relation, str):
            raise ScoreUnavailable(f"score() needs a snapshot of the table: {relation}.")
        table = self._table(relation.uri)
        run = pinned(table, relation, condition_of(scored, scored["column"]), [])
        if isinstance(run, str):
            raise ScoreUnavailable(
                f"score() needs the snapshot that Spark reads: {run}.",
                remedy="Run REFRESH TABLE, then the query again.",
            )
        match, schema = run.reader.query.predicate, run.plan.snapshot.schema
        assert isinstance(match, Match), "it is only the condition, and its text is not NULL"
        name, _ = find_column(schema, column_path(scored["column"]))
        ranker_of(match, name, text_rankers(requirements(table.indexes(), schema)))
        return {
            "call": {
                "function": SCORE,
                "mode": mode.value,
                "text": scored["text"],
                "table": relation.uri,
                "column": scored["column"],
                "instant": run.plan.snapshot.instant,
                "query_type": relation.query_type,
            }
        }


def condition_of(call: Call, column: str) -> str:
    """A condition on a column, in the façade's syntax, as a where text."""
    return search_text(MatchMode(call["function"]), column, call["text"], call["edits"])


def spark_function(call: Call, of: OfTexts) -> UserDefinedFunction:
    """A vectorized function of texts for a bound call and its evaluator."""
    name = call["function"]
    return UserDefinedFunction(OnSeries(of), RETURNED[name], name, _ON_SERIES)


def can_search(table: IndexedTable, condition: str, analyzer: str) -> bool:
    """Whether a table's index finds words as a condition's analyzer does."""
    try:
        match = search(table, condition)
    except IndexServiceError:
        return False
    return isinstance(match, Match) and match.words.analyzer == analyzer
