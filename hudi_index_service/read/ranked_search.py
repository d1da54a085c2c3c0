"""A user's full-text search, bound to the table: finds the best rows by BM25.

Scores are based on all rows of the snapshot, regardless of the search's predicate and of the
covered slices. The texts of slices without entry, including rows in log files, are analyzed first,
so that an index never changes a score.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from hudi_index_service.arrow import FALSE, as_truths, nullable, numbers_array
from hudi_index_service.cancellation import check
from hudi_index_service.columns import column_path, column_values, find_column
from hudi_index_service.errors import (
    ConfigInvalid,
    EntryInvalid,
    EntryUnusable,
    PredicateUnsupported,
    Remedy,
)
from hudi_index_service.index.contract import RankedRows, TextRanker
from hudi_index_service.optimizer.plan import NOT_COVERED, Access, QueryPlan, SlicePlan
from hudi_index_service.predicate import evaluate
from hudi_index_service.predicate.expression import BoundColumn, Match, MatchMode
from hudi_index_service.predicate.values import string_sql
from hudi_index_service.read.base_file.row_reader import RowReader
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.freshness import saying
from hudi_index_service.read.query import Binding, Query
from hudi_index_service.read.slices.found_rows import FoundRows
from hudi_index_service.read.slices.slice_entries import SliceEntries, warn_of
from hudi_index_service.read.slices.slice_reader import SliceReader
from hudi_index_service.read.statistics import SliceStatistics
from hudi_index_service.read.whole_snapshot import on_a_whole_snapshot

log = logging.getLogger(__name__)

T = TypeVar("T")

SCORE = "_score"
"""The result's last column."""

_MOST_ROWS = 10_000
_MODES = {"any": MatchMode.ANY, "all": MatchMode.ALL}

Hit = tuple[float, int, int]
"""Score, number of the slice, and row in the slice."""


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

    def scoring(self) -> "Scoring":
        """The scoring of single texts. Raises what `rows` raises."""

        def make() -> Scoring:
            search = self._search()
            return Scoring(search.match, search.ranker, search.statistics())

        return on_a_whole_snapshot(make)

    def _search(self) -> "RankedSearch":
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


@dataclass(frozen=True, slots=True)
class _ScoredSlice:
    """A slice whose rows can be scored.

    Attributes:
        rows: All rows of the slice.
        among: Finds the rows that may be returned; None for all.
        read: Reads the output columns of ascending rows.
    """

    rows: RankedRows
    among: Callable[[], BitMap | None]
    read: Callable[[Sequence[int]], pa.Table]


@dataclass(frozen=True, slots=True)
class RankedSearch:
    """Finds the best rows.

    Attributes:
        match: The search: any or all of some words.
        plan: The plan for `match` alone, since scores depend on the other rows, too.
        reader: Reads the rows that may be returned: its query is for `match` and any further
            predicate.
    """

    match: Match
    plan: QueryPlan
    reader: SliceReader
    ranker: TextRanker

    def best(self, k: int) -> pa.Table:
        """The `k` best rows, the best first, with their scores. Rows with equal scores are ordered
        by slice and row.

        Raises:
            FileNotFoundError: a file of the snapshot is gone.
            TableFeatureUnsupported: a slice cannot be read without Spark.
        """
        return self._retried(lambda search: search._best(k))

    def _best(self, k: int) -> pa.Table:
        with ExitStack() as stack:
            slices = [self._scored_slice(each, stack) for each in self._slices]
            total = _total(slices)
            hits: list[Hit] = []
            for number, each in enumerate(slices):
                best_rows = each.rows.best(k, total, each.among())
                hits += [(score, number, row) for row, score in best_rows]
            hits.sort(key=lambda hit: (-hit[0], *hit[1:]))
            return self._rows(hits[:k], slices)

    def statistics(self) -> np.ndarray:
        """The statistics of all rows that scores are based on. Raises what `best` raises."""
        return self._retried(RankedSearch._statistics)

    def _statistics(self) -> np.ndarray:
        total = np.zeros(1, np.int64)
        for each in self._slices:
            with ExitStack() as stack:
                total = total + _total([self._scored_slice(each, stack)])
        return total

    @property
    def _slices(self) -> Sequence[SlicePlan]:
        """Those that count: of a fast search, the covered ones."""
        return [each for each in self.plan.slices if each.rule != NOT_COVERED]

    def _retried(self, work: Callable[["RankedSearch"], T]) -> T:
        """What some work finds; with the texts of all slices analyzed if an entry is found to be
        damaged after other slices have been scored with its statistics."""
        try:
            return work(self)
        except EntryInvalid as error:
            log.warning("All texts are analyzed again: %s", error)
        slices = tuple(
            _declined(each) if each.access is Access.INDEX else each for each in self.plan.slices
        )
        return work(replace(self, plan=replace(self.plan, slices=slices)))

    def _scored_slice(self, plan: SlicePlan, stack: ExitStack) -> _ScoredSlice:
        check()
        if plan.access is Access.INDEX and not plan.file_slice.log_files:
            try:
                entries = stack.enter_context(SliceEntries.leased(plan, self.reader.pool))
                rows = entries.ranked(self.match)
                if rows is not None:
                    among, read = partial(self._among, plan), partial(self._read, plan, entries)
                    return _ScoredSlice(rows, among, read)
            except EntryUnusable as error:
                warn_of(error, f"{plan.file_slice.name} is analyzed again")
        return self._analyzed_slice(plan, stack)

    def _among(self, plan: SlicePlan) -> BitMap | None:
        """The rows of a slice with an entry that may be returned."""
        if self.reader.query.predicate is self.match:
            return None
        statistics = SliceStatistics.of(plan)
        (found,) = self.reader.matching_rows([(plan, statistics)])
        assert found is not None, "a slice without log files is not merged"
        return found.rows

    def _read(self, plan: SlicePlan, entries: SliceEntries, rows: Sequence[int]) -> pa.Table:
        """These rows of a slice with an entry."""
        query = self.reader.query
        query = _everything(query, query.output).where_known(plan.values)
        storage, base_file = self.reader.table.storage, plan.file_slice.base_file
        by_page = RowReader(storage, base_file, entries.footer(), query.needed)
        statistics = SliceStatistics.of(plan)
        found = FoundRows(plan, statistics, query, rows=BitMap(rows), by_page=by_page)
        return pa.Table.from_batches(self.reader.rows(found))

    def _analyzed_slice(self, plan: SlicePlan, stack: ExitStack) -> _ScoredSlice:
        """Analyzes a slice's texts, and keeps the rows that may be returned. All of them: a row's
        score depends on those that do not match, too."""
        if plan.access in (Access.INDEX, Access.LOGS):
            plan = _declined(plan)
        query = self.reader.query
        schema = pa.schema([query.table.field(name) for name in query.needed_roots])
        everything, predicate = _everything(query, schema), query.predicate
        assert predicate is not None, "a search has a predicate"
        texts = stack.enter_context(self.ranker(self.match))
        batches, matches, start = [], [BitMap()], 0
        statistics = SliceStatistics.of(plan)
        for batch in replace(self.reader, query=everything).batches(plan, statistics):
            texts.add(column_values(batch, self.match.column.name))
            truth = evaluate(predicate, batch).fill_null(FALSE)
            positions = np.flatnonzero(as_truths(truth))
            batches.append(batch.filter(truth).select(query.output.names))
            matches.append(BitMap((positions + start).astype(np.uint32)))
            start += batch.num_rows
        matching = BitMap.union(*matches)

        def read(rows: Sequence[int]) -> pa.Table:
            places = [matching.rank(row) - 1 for row in rows]
            return pa.Table.from_batches(batches).take(numbers_array(np.array(places, np.int64)))

        return _ScoredSlice(texts.ranked(), lambda: matching, read)

    def _rows(self, hits: Sequence[Hit], slices: Sequence[_ScoredSlice]) -> pa.Table:
        output = saying(nullable(self.reader.query.output), self.plan.left_out)
        tables, order = [pa.Table.from_batches([], output)], []
        for number, each in enumerate(slices):
            slice_hits = sorted((row, at) for at, (_, of, row) in enumerate(hits) if of == number)
            if slice_hits:
                tables.append(each.read([row for row, _ in slice_hits]))
                order += [at for _, at in slice_hits]
        table = pa.concat_tables([table.cast(output) for table in tables])
        scores = numbers_array(np.array([score for score, _, _ in hits], np.float32))
        return table.take(numbers_array(np.argsort(order))).append_column(SCORE, scores)


@dataclass(frozen=True, slots=True)
class Scoring:
    """Scores single texts like a ranked search of a whole snapshot. It can be sent to other
    processes.

    Attributes:
        match: The search: any or all of some words.
        statistics: The statistics of all rows of the snapshot; see `RankedRows.statistics`.
    """

    match: Match
    ranker: TextRanker
    statistics: np.ndarray

    def scores(self, texts: pa.Array) -> pa.FloatArray:
        """The BM25 score of each text; 0 if it does not match, null if it is NULL.

        Raises:
            NativeModuleMissing: the index type's native module is not installed.
        """
        scores = np.zeros(len(texts), np.float32)
        if len(texts):
            with self.ranker(self.match) as analyzed_texts:
                analyzed_texts.add(texts)
                best = analyzed_texts.ranked().best(len(texts), self.statistics, None)
            for row, score in best:
                scores[row] = score
        return numbers_array(scores, as_truths(texts.is_null()))


def _declined(plan: SlicePlan) -> SlicePlan:
    return plan.declined("its entry cannot score", "ranked_search")


def _total(slices: Sequence[_ScoredSlice]) -> np.ndarray:
    return sum((each.rows.statistics() for each in slices), np.zeros(1, np.int64))


def _everything(query: Query, columns: pa.Schema) -> Query:
    """All rows, with these columns of the query's table."""
    return Query(None, None, columns, columns, query.table)
