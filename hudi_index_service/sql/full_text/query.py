"""Finds the calls of full-text functions in a query and binds them to columns."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported, ScoreUnavailable
from hudi_index_service.predicate.expression import Constant, Match, MatchMode
from hudi_index_service.read.spark.frames import frame_of_plan
from hudi_index_service.sql.catalyst.relation import table_path
from hudi_index_service.sql.catalyst.scala import class_name, elements
from hudi_index_service.sql.full_text.call import STANDS_IN, Call, search, search_text
from hudi_index_service.sql.full_text.calls import Calls
from hudi_index_service.sql.full_text.evaluation import Matching, Scores
from hudi_index_service.sql.full_text.functions import RETURNED, SCORE, FullTextFunctions
from hudi_index_service.sql.full_text.here import DriverRows
from hudi_index_service.sql.full_text.origin import NoColumn, Origin, Origins, cte_definitions
from hudi_index_service.sql.full_text.score import block, scoring_of
from hudi_index_service.sql.full_text.search_call import SearchCall
from hudi_index_service.sql.full_text.tree import (
    AGGREGATE,
    PROJECT,
    SORT,
    Pairs,
    boolean,
    has_python_calls,
    named,
    projected,
    python_call,
    python_calls,
    subqueries,
    with_attributes,
    with_children,
    with_expressions,
)
from hudi_index_service.table import IndexedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def bound_calls(
    functions: FullTextFunctions, frame: "DataFrame", table: Callable[[str], IndexedTable]
) -> Calls | None:
    """The calls of full-text functions in a query; None if there is none.

    Args:
        table: Opens the table of a base path.

    Raises:
        PredicateUnsupported: an argument that is not a column of an indexed table, or a text that
            is not known before the query runs.
        PredicateInvalid: a call has too few or wrong arguments.
        ScoreUnavailable: a score cannot be computed.
        IndexServiceError: a table cannot be opened.
    """
    plan = frame._jdf.queryExecution().analyzed()
    spark = frame.sparkSession
    binder = _Binder(spark, functions, table, Origins(cte_definitions(plan)))
    bound_plan = binder.plan(plan, ())
    if not binder.has_calls:
        return None
    bound_plan.setAnalyzed()
    return Calls(spark, frame_of_plan(spark, bound_plan), binder.calls, DriverRows(spark))


class _Binder:
    def __init__(
        self,
        spark: "SparkSession",
        functions: FullTextFunctions,
        table: Callable[[str], IndexedTable],
        origins: Origins,
    ) -> None:
        self._spark = spark
        self._functions = functions
        self._table = table
        self._origins = origins
        self._scores: dict[str, Call] = {}
        self.calls: dict[int, Call] = {}
        self.has_calls = False

    def plan(self, node: Any, around: Sequence[Any]) -> Any:
        """A plan with stand-ins.

        Args:
            around: The nodes around the sub-query, the nearest first.
        """
        if not has_python_calls(self._spark, node):
            return node
        scope = (node, *around)
        changes, scores = self._changes(node, scope)
        changes += subqueries(self._spark, node, lambda plan: self.plan(plan, scope))
        children = [self.plan(each, around) for each in elements(node.children())]
        if not scores:
            below = with_children(self._spark, node, children)
            return with_expressions(self._spark, below, changes)
        return self._with_scores(node, children, changes, scores, scope)

    def _changes(self, node: Any, scope: Sequence[Any]) -> tuple[Pairs, list[Any]]:
        """The stand-ins for a node's own searches, and its scores."""
        changes: Pairs = []
        scores = []
        for each in python_calls(self._spark, node):
            name = self._functions.name(each)
            self.has_calls |= name is not None
            if name == SCORE:
                if not each.children().isEmpty():
                    raise PredicateInvalid(
                        "score() was called with arguments.", remedy="Call it without arguments."
                    )
                scores.append(each)
            elif name is not None:
                changes.append((each, self._search(name, each, scope)))
        return changes, scores

    def _with_scores(
        self,
        node: Any,
        children: list[Any],
        changes: Pairs,
        scores: list[Any],
        scope: Sequence[Any],
    ) -> Any:
        """A node with stand-ins for its scores, if necessary below a Project that hides the columns
        added for them."""
        call, text = self._score(node, scope)
        spark, references = self._spark, list(elements(text.references()))
        stand_ins = [(each, self._stand_in(call, text)) for each in scores]
        if class_name(node) == SORT and class_name(children[0]) == PROJECT:
            # Computed below, where the texts are.
            project = children[0]
            keys = [named(spark, stand_in, SCORE) for _, stand_in in stand_ins]
            below = with_attributes(spark, project.child(), references)
            _require(references, [below])
            children = [projected(spark, [*elements(project.projectList()), *keys], below)]
            pairs = [
                (each, key.toAttribute()) for (each, _), key in zip(stand_ins, keys, strict=True)
            ]
        else:
            children = [with_attributes(spark, each, references) for each in children]
            _require(references, children)
            pairs = stand_ins
        plan = with_children(spark, node, children)
        plan = with_expressions(spark, plan, [*changes, *pairs])
        if class_name(node) in (PROJECT, AGGREGATE):
            return plan
        return projected(spark, list(elements(node.output())), plan)

    def _score(self, node: Any, scope: Sequence[Any]) -> tuple[Call, Any]:
        """The score of the search in the block that ends in a node, and the search's column."""
        search, place = self._block_search(node)
        name = self._functions.name(search)
        assert name is not None, "a search was looked for"
        arguments = SearchCall.of(name, search)
        key = _meaning(search)
        if key not in self._scores:
            origins = self._columns(name, arguments, (place, *scope[1:]))
            match, scoring = scoring_of(self._table, origins, MatchMode(name), arguments)
            label = f"{SCORE} {len(self._scores)}"
            call = Call(SCORE, RETURNED[SCORE], lambda: Scores(scoring()), label, scored=match)
            self._scores[key] = call
        return self._scores[key], arguments.text_column

    def _block_search(self, node: Any) -> tuple[Any, Any]:
        """The only search of the query block that ends in a node, and the search's node."""
        searches = {
            _meaning(each): (each, part)
            for part in block(node)
            for each in python_calls(self._spark, part)
            if self._functions.name(each) not in (None, SCORE)
        }
        if len(searches) == 1:
            return next(iter(searches.values()))
        if not searches:
            raise ScoreUnavailable("score() is called in a query block without a match.")
        raise ScoreUnavailable(
            f"score() is ambiguous in a query block with {len(searches)} searches.",
            remedy="Keep one of them, or move the others to an outer query.",
        )

    def _search(self, name: str, call: Any, scope: Sequence[Any]) -> Any:
        """The stand-in for a condition."""
        arguments = SearchCall.of(name, call)
        columns = self._columns(name, arguments, scope)
        if arguments.text is None:
            return boolean(self._spark, None)
        predicates = [self._predicate(name, arguments, arguments.text, each) for each in columns]
        if len({each.words for each in predicates if isinstance(each, Match)}) > 1:
            raise PredicateUnsupported(
                f"{name} searches several columns at once, whose indexes have different analyzers.",
                remedy="Call it below the UNION, on each column separately.",
            )
        match = predicates[0]
        if isinstance(match, Constant):
            return boolean(self._spark, match.value)
        label = f"{name} {match.words.analyzer} {match.edits} {match.text}"
        call = Call(name, RETURNED[name], lambda: Matching(match), label, match)
        return self._stand_in(call, arguments.text_column)

    def _columns(self, name: str, arguments: SearchCall, scope: Sequence[Any]) -> list[Origin]:
        try:
            return self._origins.of(arguments.text_column, scope)
        except NoColumn as error:
            raise PredicateUnsupported(
                f"{name} searches {arguments.text_column.sql()}, which is not a column of a Hudi "
                "table there.",
                remedy="Name the column itself; call the function in the sub-query or view that "
                "reads the table.",
            ) from error

    def _predicate(
        self, name: str, arguments: SearchCall, text: str, origin: Origin
    ) -> Match | Constant:
        path = table_path(origin.relation)
        assert path is not None, "an origin reads a Hudi table"
        table = self._table(path)
        return search(table, search_text(MatchMode(name), origin.column, text, arguments.edits))

    def _stand_in(self, call: Call, text: Any) -> Any:
        function = self._functions.java(call.name)
        stand_in = python_call(self._spark, call.label, function, [text], STANDS_IN)
        self.calls[int(stand_in.resultId().id())] = call
        return stand_in


def _meaning(expression: Any) -> str:
    """A text that is equal for expressions that Spark considers equal."""
    return str(expression.canonicalized().toString())


def _require(attributes: list[Any], children: list[Any]) -> None:
    for each in attributes:
        if not any(child.outputSet().contains(each) for child in children):
            raise ScoreUnavailable("score() is called where the searched text is not available.")
