"""The grammar of the index statements, as a sqlglot dialect on top of Spark's.

Only queries that begin with the words of an index statement are parsed with sqlglot. The
grammar follows Spark's own and Hudi's for CREATE, DROP and SHOW, and RFC-51 ("SQL layer") for
ALTER INDEX, OPTIMIZE TABLE, SHOW INDEXING and CANCEL INDEXING.
"""

import re
from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, TokenError

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import StatementInvalid
from hudi_index_service.index.metadata.definitions import Column
from hudi_index_service.predicate.text.lex import position
from hudi_index_service.sql.first_words import after_words, first_words, skip_gaps
from hudi_index_service.sql.statements import (
    AlterIndex,
    CancelIndexing,
    CreateIndex,
    DropColumns,
    DropIndex,
    ExplainIndex,
    OptimizeTable,
    RefreshIndex,
    ShowIndexes,
    ShowIndexing,
    Statement,
    TableName,
)
from hudi_index_service.sql.steps import Steps, blanks, either

HUDI_INDEX_TYPES = frozenset({"bloom_filters", "column_stats", "record_index", "secondary_index"})
"""The types of Hudi's own indexes, up to Hudi 1.2 (CreateIndexCommand): left to Hudi."""


def parse_statement(query: str) -> Statement | None:
    """The index statement in `query`; None if the query is left to Spark.

    Raises:
        StatementInvalid: it begins like an index statement but has a syntax error; the message
            names line, column and the words expected there.
    """
    words = first_words(query, 3)
    if words[:2] == _EXPLAIN or words == _EXPLAIN_ANALYZE:
        return _explain_index(query, analyze=words == _EXPLAIN_ANALYZE)
    if words[:2] not in _STATEMENTS:
        return None
    dialect = IndexDialect()
    try:
        tokens = dialect.tokenize(query)
    except TokenError as error:
        raise StatementInvalid(
            f"End of a string, back-quoted name or comment expected at "
            f"{position(query, len(query))} of the statement, found its end."
        ) from error
    _refuse_other_gaps(query, tokens)
    while tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise StatementInvalid(
                f"End of the statement expected after the ; at {position(query, token.start)}.",
                remedy="Pass one statement at a time.",
            )
    (tree,) = dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, query)
    assert isinstance(tree, IndexStatement)
    statement: Statement | None = tree.args["this"]
    return statement


def _refuse_other_gaps(query: str, tokens: list[Token]) -> None:
    """Raises StatementInvalid for gaps between tokens that Spark does not skip.

    sqlglot skips more than Spark's white space and comments, such as Unicode spaces and Jinja
    comments, and ends some comments earlier than Spark does.
    """
    end = 0
    for start, stop in [*((each.start, each.end + 1) for each in tokens), (len(query),) * 2]:
        gap = skip_gaps(query, end)
        if gap > start:
            raise StatementInvalid(
                f"End of the comment expected before {position(query, start)} of the "
                "statement: after a backslash it continues in the next line.",
                remedy="Remove the backslash.",
            )
        if gap < start:
            raise StatementInvalid(
                f"Blank or comment expected at {position(query, gap)} of the statement, found "
                f"{query[gap : gap + 1]!r}."
            )
        end = stop


_AFTER_WHERE = {"STRATEGY": {each.value.upper() for each in Strategy}, "DRY": {"RUN"}}


_EXPLAIN, _EXPLAIN_ANALYZE = ("EXPLAIN", "INDEX"), ("EXPLAIN", "ANALYZE", "INDEX")
_QUERIES = {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"}
"""First words of Spark's queries (SqlBaseParser.g4 of Spark 3.5), apart from a parenthesis."""


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


class IndexStatement(exp.Expression):
    """Carries a parsed `Statement` through sqlglot; None for a statement on Hudi's own indexes."""

    arg_types: ClassVar[dict[str, bool]] = {"this": False}


class _Parser(Steps):
    """Parses sqlglot's tokens; each method reads the part of the grammar that it is named after."""

    def _parse_statement(self) -> exp.Expr | None:
        parse = _STATEMENTS[self._curr.text.upper(), self._next.text.upper()]
        self._advance(2)
        statement = parse(self)
        if statement is None:
            self._advance(len(self._tokens) - self._index)
        return IndexStatement(this=statement)

    def create_index(self) -> CreateIndex | None:
        if_not_exists = self.condition("NOT", "EXISTS")
        name = self.index_name("index name" if if_not_exists else "IF NOT EXISTS or index name")
        self.expect("ON")
        table = self.table()
        if isinstance(table, TableName) and self.is_next("("):
            return None
        if not self.accept("USING"):
            self.fail("USING or (" if isinstance(table, TableName) else "USING")
        using = [self.name("index type")]
        if using[0].lower() in HUDI_INDEX_TYPES:
            return None
        while self.accept(","):
            using.append(self.name("index type"))
        columns = self.in_parentheses(self.column, "OPTIONS", first=", or (")
        include: list[str] = []
        if self.accept("INCLUDE"):
            include = self.in_parentheses(self.column_name)
        options = self.options()
        self.end_of_statement(
            "" if include or options else "INCLUDE", "OPTIONS" if not options else ""
        )
        return CreateIndex(
            name=name,
            table=table,
            using=tuple(using),
            columns=tuple(
                column.model_copy(update={"options": {**options, **column.options}})
                for column in columns
            ),
            include=tuple(include),
            if_not_exists=if_not_exists,
        )

    def alter_index(self) -> AlterIndex:
        name = self.index_name("index name")
        self.expect("ON")
        table = self.table()
        clauses = ["ADD", "DROP", "SET", "RENAME TO"]
        begin = self._index
        add, drop, rename_to = [], [], None
        set_columns: list[Column] = []
        options: dict[str, str] = {}
        if self.accept("ADD"):
            add, clauses = self.in_parentheses(self.column, "OPTIONS"), clauses[1:]
        if self.accept("DROP"):
            drop, clauses = self.in_parentheses(self.column_name), clauses[-2:]
        if self.accept("SET"):
            if self.is_next("OPTIONS"):
                options = self.options()
            else:
                set_columns = self.in_parentheses(self.column, "OPTIONS", first="OPTIONS or (")
            clauses = clauses[-1:]
        if self.accept("RENAME"):
            self.expect("TO")
            rename_to, clauses = self.name("new name"), []
        if self._index == begin:
            self.fail(either(clauses))
        self.end_of_statement(*clauses)
        return AlterIndex(
            name, table, tuple(add), tuple(drop), tuple(set_columns), options, rename_to
        )

    def drop_index(self) -> DropIndex | DropColumns:
        if self.accept("ON"):
            return self.drop_columns()
        if_exists = self.condition("EXISTS")
        name = self.index_name("index name" if if_exists else "IF EXISTS, ON or index name")
        self.expect("ON")
        table = self.table()
        purge = self.accept("PURGE")
        self.end_of_statement("" if purge else "PURGE")
        return DropIndex(name=name, table=table, if_exists=if_exists, purge=purge)

    def drop_columns(self) -> DropColumns:
        table = self.table()
        columns = tuple(self.in_parentheses(self.column_name))
        purge = self.accept("PURGE")
        self.end_of_statement("" if purge else "PURGE")
        return DropColumns(table, columns, purge)

    def show_indexes(self) -> ShowIndexes:
        if not (self.accept("FROM") or self.accept("IN")):
            self.fail("FROM or IN")
        table = self.table()
        self.end_of_statement()
        return ShowIndexes(table)

    def refresh_index(self) -> RefreshIndex:
        name = self.index_name("index name")
        self.expect("ON")
        table = self.table()
        self.end_of_statement()
        return RefreshIndex(name, table)

    def optimize_table(self) -> OptimizeTable:
        table = self.table_reference("table name or 'path'")
        where = self.where(_AFTER_WHERE) if self.accept("WHERE") else None
        strategy = None
        if self.accept("STRATEGY"):
            words = [each for each in Strategy if self.accept(each.value.upper())]
            strategy = words[0] if words else self.fail("INCREMENTAL, ALL or REFRESH")
        dry_run = self.accept("DRY")
        if dry_run:
            self.expect("RUN")
        if dry_run:
            self.end_of_statement()
        self.end_of_statement(*([] if strategy else ["WHERE", "STRATEGY"]), "DRY RUN")
        return OptimizeTable(table, strategy or Strategy.INCREMENTAL, dry_run, where)

    def show_indexing(self) -> ShowIndexing:
        of = self.accept("FROM") or self.accept("IN")
        table = self.table() if of else self.table("FROM", "IN")
        build = None
        if self.accept("BUILD"):
            build = self.build_id()
        self.end_of_statement("" if build else "BUILD")
        return ShowIndexing(table, build)

    def cancel_indexing(self) -> CancelIndexing:
        table = self.table()
        self.end_of_statement()
        return CancelIndexing(table)


class IndexDialect(Spark):
    """Spark SQL with the index statements."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokenizer, with every word as a separate token."""

        COMMANDS: ClassVar[set[TokenType]] = set()  # would swallow the words after SHOW
        HEX_STRINGS: ClassVar[list[Any]] = []
        BIT_STRINGS: ClassVar[list[Any]] = []

    Parser = _Parser


_STATEMENTS: dict[tuple[str, ...], Callable[[_Parser], Statement | None]] = {
    ("CREATE", "INDEX"): _Parser.create_index,
    ("ALTER", "INDEX"): _Parser.alter_index,
    ("DROP", "INDEX"): _Parser.drop_index,
    ("SHOW", "INDEXES"): _Parser.show_indexes,
    ("REFRESH", "INDEX"): _Parser.refresh_index,
    ("OPTIMIZE", "TABLE"): _Parser.optimize_table,
    ("SHOW", "INDEXING"): _Parser.show_indexing,
    ("CANCEL", "INDEXING"): _Parser.cancel_indexing,
}
