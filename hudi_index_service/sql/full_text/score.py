"""``score()``: which search of a query it scores, and what scores rest on."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from hudi_index_service.errors import ScoreUnavailable
from hudi_index_service.indexed_table import IndexedTable
from hudi_index_service.predicate.expression import Match, MatchMode
from hudi_index_service.read.scoring import Scoring
from hudi_index_service.sql.full_text.asked import Asked
from hudi_index_service.sql.full_text.call import search_text
from hudi_index_service.sql.full_text.origin import Origin
from hudi_index_service.sql.select.pinned import pinned
from hudi_index_service.sql.select.relation import hudi_relation
from hudi_index_service.sql.select.scala import class_name, elements

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
# What a query block is made of, without GROUP BY; a table, view or sub-query in FROM has an alias.
_BLOCK = {
    f"{_LOGICAL}{name}" for name in ("Project", "Filter", "Join", "Sort", "Window", "Generate")
}
WORDS: dict[MatchMode, Literal["any", "all"]] = {MatchMode.ANY: "any", MatchMode.ALL: "all"}


def block(node: Any) -> Iterator[Any]:
    """The nodes of the query block that ends in a node: those that hand its rows on one by one."""
    yield node
    for child in elements(node.children()):
        if class_name(child) in _BLOCK:
            yield from block(child)


def scoring_of(
    table: Callable[[str], IndexedTable],
    origins: Sequence[Origin],
    mode: MatchMode,
    asked: Asked,
) -> tuple[Match, Callable[[], Scoring]]:
    """What is scored; and what looks up what scores rest on, all texts of the column in the
    snapshot that the query reads.

    Raises:
        ScoreUnavailable: the search has no score, or Spark reads another snapshot.
    """
    if asked.text is None:
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
    opened = table(relation.uri)
    condition = search_text(mode, origin.column, asked.text, None)
    run = pinned(opened, relation, condition, [])
    if isinstance(run, str):
        raise ScoreUnavailable(
            f"score() needs the snapshot that Spark reads: {run}.",
            remedy="REFRESH TABLE, then ask again.",
        )
    match, text = run.reader.query.predicate, asked.text
    assert isinstance(match, Match), "it is the condition alone, and its text is not NULL"

    def scoring() -> Scoring:
        return opened.scoring(
            origin.column,
            text,
            words=WORDS[mode],
            as_of=run.plan.snapshot.instant,
            query_type=relation.query_type,
        )

    return match, scoring
