"""The grammar of the index statements, as a sqlglot dialect on top of Spark's.

Only a query whose first two words are one of ours is parsed; sqlglot never sees any other. The
grammar follows Spark's own and Hudi's for CREATE, DROP and SHOW, and RFC-51 ("SQL layer") for
ALTER INDEX, OPTIMIZE TABLE and SHOW INDEXING.
"""

import re
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, TypeVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, TokenError
from sqlglot.parsers.spark import SparkParser

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.columns import column_name
from hudi_index_service.definitions import Column
from hudi_index_service.errors import StatementInvalid
from hudi_index_service.predicate.lex import position
from hudi_index_service.sql.first_words import first_words
from hudi_index_service.sql.statements import (
    AlterIndex,
    CreateIndex,
    DropColumns,
    DropIndex,
    OptimizeTable,
    RefreshIndex,
    ShowIndexes,
    ShowIndexing,
    Statement,
    TableName,
    TablePath,
    TableReference,
)

HUDI_INDEX_TYPES = frozenset({"bloom_filters", "column_stats", "record_index", "secondary_index"})
"""The types of Hudi's own indexes, up to Hudi 1.2 (CreateIndexCommand): left to Hudi."""

_Item = TypeVar("_Item")
_WORD = re.compile(r"\w+")
_NOT_WORDS = {TokenType.STRING, TokenType.RAW_STRING, TokenType.NUMBER, TokenType.IDENTIFIER}


def parse_statement(query: str) -> Statement | None:
    """The index statement that `query` is, or None if it is Spark's to understand.

    Raises:
        StatementInvalid: it begins like an index statement but goes on wrongly; the message names
            line, column and the words expected there.
    """
    if first_words(query) not in _STATEMENTS:
        return None
    dialect = IndexDialect()
    try:
        tokens = dialect.tokenize(query)
    except TokenError as error:
        raise StatementInvalid(
            f"End of a string, back-quoted name or comment expected at "
            f"{position(query, len(query))} of the statement, found its end."
        ) from error
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


class IndexStatement(exp.Expression):
    """Carries a parsed `Statement` through sqlglot; None for a statement on Hudi's own indexes."""

    arg_types: ClassVar[dict[str, bool]] = {"this": False}


class _Parser(SparkParser):
    """Steps through sqlglot's tokens; a method reads the part of the grammar it is named after."""

    def _parse_statement(self) -> exp.Expr | None:
        # sqlglot ends a comment at every line, Spark not after a backslash: then it is Spark's.
        read = _STATEMENTS.get((self._curr.text.upper(), self._next.text.upper()))
        self._advance(2)
        statement = read(self) if read is not None else None
        if statement is None:
            self._advance(len(self._tokens) - self._index)
        return IndexStatement(this=statement)

    def create_index(self) -> CreateIndex | None:
        if_not_exists = self.accept("IF", "NOT", "EXISTS")
        name = self.index_name("index name" if if_not_exists else "IF NOT EXISTS or index name")
        self.expect("ON")
        table = self.table()
        if isinstance(table, TableName) and not self.is_next("USING"):
            return None
        self.expect("USING")
        using = [self.name("index type")]
        if using[0].lower() in HUDI_INDEX_TYPES:
            return None
        while self.accept(","):
            using.append(self.name("index type"))
        columns = self.in_parentheses(self.column, "OPTIONS")
        options = self.options()
        self.end_of_statement("OPTIONS" if not options else "")
        return CreateIndex(
            name=name,
            table=table,
            using=tuple(using),
            columns=tuple(
                column.model_copy(update={"options": {**options, **column.options}})
                for column in columns
            ),
            if_not_exists=if_not_exists,
        )

    def alter_index(self) -> AlterIndex:
        name = self.index_name("index name")
        self.expect("ON")
        table = self.table()
        left = ["ADD", "DROP", "SET", "RENAME TO"]
        begin = self._index
        add, drop, changed, rename_to = [], [], [], None
        if self.accept("ADD"):
            add, left = self.in_parentheses(self.column, "OPTIONS"), left[1:]
        if self.accept("DROP"):
            drop, left = self.in_parentheses(self.column_name), left[-2:]
        if self.accept("SET"):
            changed, left = self.in_parentheses(self.column, "OPTIONS"), left[-1:]
        if self.accept("RENAME", "TO"):
            rename_to, left = self.name("new name"), []
        if self._index == begin:
            self.fail(_either(left))
        self.end_of_statement(*left)
        return AlterIndex(name, table, tuple(add), tuple(drop), tuple(changed), rename_to)

    def drop_index(self) -> DropIndex | DropColumns:
        if self.accept("ON"):
            return self.drop_columns()
        if_exists = self.accept("IF", "EXISTS")
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
        strategy = None
        if self.accept("STRATEGY"):
            words = [each for each in Strategy if self.accept(each.value.upper())]
            strategy = words[0] if words else self.fail("INCREMENTAL, ALL or REFRESH")
        dry_run = self.accept("DRY")
        if dry_run:
            self.expect("RUN")
        self.end_of_statement(
            *([] if dry_run else ["DRY RUN"] if strategy else ["STRATEGY", "DRY RUN"])
        )
        return OptimizeTable(table, strategy or Strategy.INCREMENTAL, dry_run)

    def show_indexing(self) -> ShowIndexing:
        if not self.accept("FROM"):
            self.accept("IN")
        table = self.table()
        self.end_of_statement()
        return ShowIndexing(table)

    # --- parts -------------------------------------------------------------------------------

    def index_name(self, expected: str) -> str:
        if self.is_next("ON"):
            self.fail(expected)
        return self.name(expected)

    def table(self) -> TableReference:
        # A table may be called table.
        named = self.is_next("TABLE") and self._next and self._next.token_type is not TokenType.DOT
        if named:
            self._advance()
        return self.table_reference(
            "table name or 'path'" if named else "TABLE, table name or 'path'"
        )

    def table_reference(self, expected: str) -> TableReference:
        if self._curr.token_type is TokenType.STRING and self._curr.text:
            return TablePath(self.take().text)
        parts = self.dotted_name(expected)
        # No name in Spark's catalog holds a slash.
        if len(parts) == 2 and parts[0].lower() == "hudi" and "/" in parts[1]:
            return TablePath(parts[1])
        return TableName(parts)

    def column(self) -> Column:
        return Column(name=self.column_name(), options=self.options())

    def column_name(self) -> str:
        return column_name(self.dotted_name("column name"))

    def options(self) -> dict[str, str]:
        if not self.accept("OPTIONS"):
            return {}
        return dict(self.in_parentheses(self.option))

    def option(self) -> tuple[str, str]:
        if self._curr.token_type is TokenType.STRING:
            key = self.take().text
        else:
            key = ".".join(self.dotted_name("option name"))
        self._match(TokenType.EQ)
        if self._curr.token_type in (TokenType.STRING, TokenType.NUMBER):
            return key, self.take().text
        if self.is_next("TRUE") or self.is_next("FALSE"):
            return key, self.take().text.lower()
        self.fail("quoted value, number, true or false")

    def in_parentheses(self, read: Callable[[], _Item], optional: str = "") -> list[_Item]:
        """One or more, separated by commas. `optional`: what could have come after an item."""
        self.expect("(")
        items = [read()]
        while self.accept(","):
            items.append(read())
        if not self.accept(")"):
            self.fail(_either([optional, ",", ")"]))
        return items

    def dotted_name(self, expected: str) -> tuple[str, ...]:
        parts = [self.name(expected)]
        while self.accept("."):
            parts.append(self.name("name"))
        return tuple(parts)

    def name(self, expected: str) -> str:
        """A back-quoted name or a bare word."""
        if self._curr.token_type is TokenType.IDENTIFIER and self._curr.text:
            return self.take().text
        if self._curr and self._curr.token_type not in _NOT_WORDS and _WORD.fullmatch(self.source):
            return self.take().text
        self.fail(expected)

    # --- steps -------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The next token as it stands in the statement."""
        return self.sql[self._curr.start : self._curr.end + 1] if self._curr else ""

    def take(self) -> Token:
        token = self._curr
        self._advance()
        return token

    def is_next(self, word: str) -> bool:
        """Whether the bare word, in any case, or the symbol comes next."""
        return bool(self._curr) and self.source.upper() == word

    def accept(self, *words: str) -> bool:
        """Steps over the words if they come next, all of them in this order."""
        start = self._index
        for word in words:
            if not self.is_next(word):
                self._retreat(start)
                return False
            self._advance()
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self.fail(word)

    def end_of_statement(self, *optional: str) -> None:
        """`optional`: what could have come instead."""
        if self._curr:
            self.fail(_either([*optional, "the end"]))

    def fail(self, expected: str) -> NoReturn:
        offset = self._curr.start if self._curr else self._prev.end + 1
        found = repr(self.source) if self._curr else "its end"
        raise StatementInvalid(
            f"{expected[0].upper()}{expected[1:]} expected at {position(self.sql, offset)} "
            f"of the statement, found {found}."
        )


class IndexDialect(Spark):
    """Spark SQL with the index statements."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's, with every word a token of its own."""

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
}


def _either(words: list[str]) -> str:
    named = [word for word in words if word]
    return " or ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
