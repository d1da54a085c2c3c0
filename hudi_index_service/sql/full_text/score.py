"""``score()``: the search of a query that it scores, and the data that scores are based on."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from hudi_index_service.errors import ScoreUnavailable
from hudi_index_service.predicate.expression import Match, MatchMode
from hudi_index_service.read.ranked.scoring import Scoring
from hudi_index_service.sql.catalyst.relation import hudi_relation
from hudi_index_service.sql.catalyst.scala import class_name, elements
from hudi_index_service.sql.full_text.call import search_text
from hudi_index_service.sql.full_text.origin import Origin
from hudi_index_service.sql.full_text.search_call import SearchCall
from hudi_index_service.sql.relations.pinned import pinned
from hudi_index_service.table import IndexedTable

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
# Nodes of a query block without GROUP BY; a table, view or sub-query in FROM has an alias.
_BLOCK = {
    f"{_LOGICAL}{name}" for name in ("Project", "Filter", "Join", "Sort", "Window", "Generate")
}
WORDS: dict[MatchMode, Literal["any", "all"]] = {MatchMode.ANY: "any", MatchMode.ALL: "all"}


def block(node: Any) -> Iterator[Any]:
    """The nodes of the query block that ends in a node: those that pass rows on one by one."""
    yield node
    for child in elements(node.children()):
        if class_name(child) in _BLOCK:
            yield from block(child)


def scoring_of(
    table: Callable[[str], IndexedTable],
    origins: Sequence[Origin],
    mode: MatchMode,
    arguments: SearchCall,
) -> tuple[Match, Callable[[], Scoring]]:
    """The scored search, and a function that looks up the scores' basis: all texts of the column in
    the snapshot that the query reads.

    Raises:
        ScoreUnavailable: the search has no score, or Spark reads another snapshot.
    """
    if arguments.text is None:
        raise ScoreUnavailable(f"{mode.value} was asked for NULL, which has no score.")
    if mode not in WORDS:
        raise ScoreUnavailable(
            f"{mode.value} finds rows without scores.", remedy="Score match or match_any."
        )
    if len(origins) > 1:
        raise ScoreUnavailable(
            "score() is called above a UNION of tables.", remedy="Call it below the UNION."
        )
    (origin,) = origins
    relation = hudi_relation(origin.relation)
    if isinstance(relation, str):
        raise ScoreUnavailable(f"score() needs a snapshot of the table: {relation}.")
    indexed_table = table(relation.uri)
    condition = search_text(mode, origin.column, arguments.text, None)
    run = pinned(indexed_table, relation, condition, [])
    if isinstance(run, str):
        raise ScoreUnavailable(
            f"score() needs the snapshot that Spark reads: {run}.",
            remedy="Run REFRESH TABLE, then the query again.",
        )
    match, text = run.reader.query.predicate, arguments.text
    assert isinstance(match, Match), "it is only the condition, and its text is not NULL"

    def scoring() -> Scoring:
        return indexed_table.scoring(
            origin.column,
            text,
            words=WORDS[mode],
            as_of=run.plan.snapshot.instant,
            query_type=relation.query_type,
        )

    return match, scoring
