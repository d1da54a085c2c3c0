"""Binds a user's ranked full-text search to the table and runs it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_index_service.columns import column_path, find_column
from hudi_index_service.errors import ConfigInvalid, PredicateUnsupported, Remedy
from hudi_index_service.index.contract import TextRanker
from hudi_index_service.predicate.expression import BoundColumn, Match, MatchMode
from hudi_index_service.predicate.values import string_sql
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.query import Binding
from hudi_index_service.read.ranked.ranked_search import SCORE, RankedSearch, Scoring
from hudi_index_service.read.whole_snapshot import on_a_whole_snapshot

_MOST_ROWS = 10_000
_MODES = {"any": MatchMode.ANY, "all": MatchMode.ALL}


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A ranked search as requested.

    Attributes:
        words: ``any`` or ``all`` of the text's words.
        binding: Binds a where text to the output columns.
        plan: Plans such a query on the snapshot to search in.
        rankers: Returns the rankers for a schema, by column.
    """

    column: str
    text: str
    words: str
    k: int
    where: str | None
    binding: Callable[[str], Binding]
    plan: Callable[[Binding], Execution]
    rankers: Callable[[pa.Schema], Mapping[str, TextRanker]]

    def rows(self) -> pa.Table:
        """The `k` rows that match best by BM25 (Lucene's, k1 1.2, b 0.75); fewer if fewer match.

        Scores use the statistics of all rows of the snapshot, regardless of `where` and of
        coverage: slices without an entry that can score are read whole and analyzed first.

        Raises:
            PredicateUnsupported: no live index can rank the column.
            ColumnNotFound, PredicateInvalid, SnapshotUnavailable: see `QueryPlanner.plan`.
            ConfigInvalid: `k`, `words` or `text` is invalid.
            TableFeatureUnsupported: a slice cannot be read without Spark.
            SnapshotChanged: files were cleaned during the search, twice.
        """
        if not 0 < self.k <= _MOST_ROWS:
            raise ConfigInvalid(
                f"k={self.k} rows cannot be searched for.", remedy=f"Use 1 to {_MOST_ROWS}."
            )
        return on_a_whole_snapshot(lambda: self._search().best(self.k))

    def scoring(self) -> Scoring:
        """The scoring of single texts. Raises what `rows` raises."""

        def make() -> Scoring:
            search = self._search()
            return Scoring(search.match, search.ranker, search.statistics())

        return on_a_whole_snapshot(make)

    def _search(self) -> RankedSearch:
        if not isinstance(self.words, str) or self.words not in _MODES:
            raise ConfigInvalid(f"There is no words={self.words!r}.", remedy="Use any or all.")
        if not isinstance(self.text, str):
            raise ConfigInvalid(
                f"The search text must be a string, not {type(self.text).__name__}.",
                remedy="Give the words to search for.",
            )
        # The parser finds the column in the schema, ignoring case.
        column = BoundColumn(self.column, pa.string())
        function = f"{_MODES[self.words].value}({column}, {string_sql(self.text)})"
        run = self.plan(self.binding(function))
        plan, reader, query = run.plan, run.reader, run.reader.query
        schema, match = plan.snapshot.schema, query.predicate
        assert isinstance(match, Match), "the condition is that function alone"
        if SCORE in query.output.names:
            raise ConfigInvalid(
                f"The table has a column {SCORE} of its own.", remedy="Leave it out of columns."
            )
        name, _ = find_column(schema, column_path(self.column))
        ranker = ranker_of(match, name, self.rankers(schema))
        if self.where is not None:
            self.binding(self.where).to(schema)  # checks that it is one complete condition
            query = self.binding(f"({self.where}\n) AND {function}").to(schema)
            reader = replace(reader, query=query)
        return RankedSearch(match, plan, reader, ranker)


def ranker_of(match: Match, column: str, rankers: Mapping[str, TextRanker]) -> TextRanker:
    """The ranker for a search in a column.

    Args:
        column: The column's name in the schema.

    Raises:
        PredicateUnsupported: the column has none.
    """
    ranker = rankers.get(column)
    if ranker is None:
        raise PredicateUnsupported(
            f"No index can rank the texts of {match.column}: lengths are not stored.",
            remedy=_ranked_remedy(column, match.words.analyzer),
        )
    return ranker


def _ranked_remedy(column: str, analyzer: str) -> Remedy:
    return Remedy(
        f'Give the column the option "ranked": "true", by alter_index(…, options='
        f'{{"{column}": {{"analyzer": "{analyzer}", "ranked": "true"}}}}), and refresh the index.',
        command="Give the column the option ranked: `hudi-index alter TABLE INDEX --set "
        f"{column}:analyzer={analyzer},ranked=true`, then `hudi-index refresh TABLE INDEX`.",
        sql="Give the column the option ranked: ALTER INDEX … ON … SET "
        f"({column} OPTIONS(analyzer='{analyzer}', ranked=true)), then REFRESH INDEX … ON ….",
    )
