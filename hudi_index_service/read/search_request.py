"""A ranked full-text search as a user asks for it, bound to the table and run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudi_index_service.columns import column_path, find_column
from hudi_index_service.errors import ConfigInvalid, PredicateUnsupported
from hudi_index_service.index.scores import TextRanker
from hudi_index_service.optimizer.plan import QueryPlan
from hudi_index_service.predicate.expression import Column, Match, MatchMode
from hudi_index_service.predicate.spark_sql import string_sql
from hudi_index_service.read.planner import QueryPlanner, Wanted
from hudi_index_service.read.query import Binding, Query
from hudi_index_service.read.ranked_search import SCORE, RankedSearch
from hudi_index_service.read.scoring import Scoring
from hudi_index_service.read.slice_reader import SliceReader
from hudi_index_service.read.whole_snapshot import on_a_whole_snapshot

_MOST_ROWS = 10_000
_MODES = {"any": MatchMode.ANY, "all": MatchMode.ALL}


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is asked for.

    Attributes:
        words: ``any`` or ``all`` of the text's words.
        wanted: The snapshot to search in.
        binding: Binds a where text to the columns that are wanted.
        rankers: What scores searches, by column, on a schema.
        reader: Makes the reader of a plan's slices.
    """

    column: str
    text: str
    words: str
    k: int
    where: str | None
    wanted: Wanted
    binding: Callable[[str], Binding]
    rankers: Callable[[pa.Schema], Mapping[str, TextRanker]]
    planner: QueryPlanner
    reader: Callable[[Query, QueryPlan], SliceReader]

    def rows(self) -> pa.Table:
        """The best rows of the snapshot; see `IndexedTable.search`."""
        if not 0 < self.k <= _MOST_ROWS:
            raise ConfigInvalid(
                f"k={self.k} rows cannot be searched for.", remedy=f"Use 1 to {_MOST_ROWS}."
            )
        return on_a_whole_snapshot(lambda: self._search().best(self.k))

    def scoring(self) -> Scoring:
        """What scores of single texts rest on; see `IndexedTable.scoring`."""

        def made() -> Scoring:
            search = self._search()
            return Scoring(search.match, search.ranker, search.statistics())

        return on_a_whole_snapshot(made)

    def _search(self) -> RankedSearch:
        if not isinstance(self.words, str) or self.words not in _MODES:
            raise ConfigInvalid(f"There is no words={self.words!r}.", remedy="Use any or all.")
        if not isinstance(self.text, str):
            raise ConfigInvalid(
                f"What is searched for is a text, not {type(self.text).__name__}.",
                remedy="Give the words to search for.",
            )
        # The column's name is found in the schema by the parser, in any case.
        column = Column(self.column, pa.string())
        function = f"{_MODES[self.words].value}({column}, {string_sql(self.text)})"
        query, plan = self.planner.plan(self.binding(function), self.wanted)
        schema, match = plan.snapshot.schema, query.predicate
        assert isinstance(match, Match), "the condition is that function alone"
        if SCORE in query.output.names:
            raise ConfigInvalid(
                f"The table has a column {SCORE} of its own.", remedy="Leave it out of columns."
            )
        name, _ = find_column(schema, column_path(self.column))
        ranker = self.rankers(schema).get(name)
        if ranker is None:
            raise PredicateUnsupported(
                f"No index can rank the texts of {match.column}: lengths are not stored.",
                remedy=f'Give the column the option "ranked": "true", by alter_index(…, options='
                f'{{"{name}": {{"analyzer": "{match.words.analyzer}", "ranked": "true"}}}}), and '
                "refresh the index.",
            )
        if self.where is not None:
            self.binding(self.where).to(schema)  # by itself first: it shall be one condition
            query = self.binding(f"({self.where}\n) AND {function}").to(schema)
        narrowed = self.where is not None
        return RankedSearch(match, query, plan, narrowed, self.reader(query, plan), ranker)
