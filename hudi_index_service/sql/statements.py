"""The index statements, and how a text becomes one of them."""

import re
from typing import TypeAlias

from hudi_index_service.errors import StatementInvalid
from hudi_index_service.predicate.text.lex import position
from hudi_index_service.sql.build_statements import CancelIndexing, OptimizeTable, ShowIndexing
from hudi_index_service.sql.explain import EXPLAINED, ExplainIndex
from hudi_index_service.sql.grammar import Parser, after_words, blanks, first_words
from hudi_index_service.sql.index_statements import (
    AlterIndex,
    CreateIndex,
    DropIndex,
    RefreshIndex,
    ShowIndexes,
)
from hudi_index_service.sql.statement import Open, TableStatement

Statement: TypeAlias = TableStatement | ExplainIndex

STATEMENTS: dict[tuple[str, ...], type[TableStatement]] = {
    each.first_words: each
    for each in (
        *(CreateIndex, AlterIndex, DropIndex, ShowIndexes, RefreshIndex),
        *(OptimizeTable, ShowIndexing, CancelIndexing),
    )
}
"""First words → the statement about a table. `FirstWords.java` has the same words."""

EXPLAIN, EXPLAIN_ANALYZE = ("EXPLAIN", "INDEX"), ("EXPLAIN", "ANALYZE", "INDEX")
"""The first words of `ExplainIndex`."""

_QUERIES = {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"}
"""First words of Spark's queries (SqlBaseParser.g4 of Spark 3.5), apart from a parenthesis."""


def parse_statement(query: str) -> Statement | None:
    """The index statement in `query`; None if the query is left to Spark.

    Raises:
        StatementInvalid: it begins like an index statement but has a syntax error; the message
            names line, column and the words expected there.
    """
    words = first_words(query, 3)
    if words[:2] == EXPLAIN or words == EXPLAIN_ANALYZE:
        return _explain_index(query, analyze=words == EXPLAIN_ANALYZE)
    kind = STATEMENTS.get(words[:2])
    return None if kind is None else kind.parsed(Parser(query, words=2))


def description(text: str, open: Open) -> dict[str, str]:
    """What a text is that begins like an index statement, as `Source.java` describes it.

    Raises:
        IndexServiceError: it has a syntax error, or its table cannot be opened.
    """
    statement = parse_statement(text)
    if isinstance(statement, ExplainIndex):
        return {"columns": EXPLAINED, "query": statement.query}
    columns = None if statement is None else statement.result_columns(open)
    return {} if columns is None else {"columns": columns}


def _explain_index(query: str, *, analyze: bool) -> ExplainIndex:
    """The statement; the query after the first words is left to Spark unchanged."""
    start = after_words(query, 3 if analyze else 2)
    select = query[start:]
    if not select.startswith("(") and not _QUERIES.intersection(first_words(select, 1)):
        word = re.match(r"\w+|.", select, re.DOTALL)
        raise StatementInvalid(
            f"Query expected at {position(query, start)} of the statement, found "
            f"{repr(word.group()) if word else 'its end'}.",
            remedy="Write EXPLAIN INDEX before a SELECT.",
        )
    return ExplainIndex(blanks(query[:start]) + select, analyze)
