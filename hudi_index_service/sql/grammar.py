"""The tokens of a statement, and the parts that several index statements share: first words, names,
tables, columns, options.

The grammar follows Spark's own and Hudi's for CREATE, DROP and SHOW, and RFC-51 ("SQL layer") for
ALTER INDEX, OPTIMIZE TABLE, SHOW INDEXING and CANCEL INDEXING. sqlglot only splits texts.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, TypeVar

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from hudi_index_service.columns import column_name
from hudi_index_service.errors import PredicateUnsupported, StatementInvalid
from hudi_index_service.index.metadata.build_records import build_id
from hudi_index_service.index.metadata.definitions import Column
from hudi_index_service.predicate.text.lex import Token as LiteralToken
from hudi_index_service.predicate.text.lex import position, string_value

_Item = TypeVar("_Item")
_DIGITS = re.compile(r"[0-9]{1,18}")
_NAME = re.compile(r"\w+", re.ASCII)
_NOT_WORDS = {TokenType.STRING, TokenType.RAW_STRING, TokenType.NUMBER, TokenType.IDENTIFIER}

# White space, and comments to the end of the line (SqlBaseLexer.g4 of Spark 3.5).
_GAP = re.compile(r"[ \t\r\n]+|--(?:\\\n|[^\r\n])*")
_COMMENT_MARK = re.compile(r"/\*|\*/")
_WORD = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class TableName:
    """A table of Spark's catalog: ``t``, ``db.t`` or ``catalog.db.t``, unquoted."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class TablePath:
    """A table by its base path, written ``'path'`` or ``hudi.`path` ``."""

    path: str

    def __str__(self) -> str:
        return self.path


TableReference = TableName | TablePath


def first_words(query: str, count: int = 2) -> tuple[str, ...]:
    """The first `count` words in upper case, without comments; fewer if another token comes before.
    Reads no further."""
    return tuple(match.group().upper() for match in _matches(query, count))


def after_words(query: str, count: int) -> int:
    """The offset after the first `count` words and any comments that follow them."""
    words = _matches(query, count)
    return skip_gaps(query, words[-1].end() if words else 0)


def _matches(query: str, count: int) -> list[re.Match[str]]:
    words: list[re.Match[str]] = []
    offset = 0
    while len(words) < count:
        match = _WORD.match(query, skip_gaps(query, offset))
        if match is None:
            break
        words.append(match)
        offset = match.end()
    return words


def skip_gaps(query: str, offset: int) -> int:
    """The end of the white space and comments that begin at an offset, by Spark's rules."""
    while True:
        gap = _GAP.match(query, offset)
        if gap is not None:
            offset = gap.end()
        # A hint, /*+ … */, is not a comment.
        elif query.startswith("/*", offset) and not query.startswith("/*+", offset):
            offset = _comment_end(query, offset)
        else:
            return offset


def _comment_end(query: str, start: int) -> int:
    """The end of a bracketed comment. These nest in Spark; an unclosed one reaches to the end."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(query, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(query)


class _Words(Spark):
    """Spark SQL with every word as a token of its own."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokenizer without what it takes for one token."""

        COMMANDS: ClassVar[set[TokenType]] = set()  # would swallow the words after SHOW
        HEX_STRINGS: ClassVar[list[Any]] = []
        BIT_STRINGS: ClassVar[list[Any]] = []


def tokens_of(query: str) -> list[Token]:
    """The tokens of a text.

    Raises:
        sqlglot.errors.TokenError: a string, a back-quoted name or a comment does not end.
    """
    return _Words().tokenize(query)


class Parser:
    """Parses an index statement. A method that reads a part is named after it; each raises
    StatementInvalid, with line, column and the words expected there.

    Args:
        query: The statement.
        words: The number of its first words, which are known.
    """

    def __init__(self, query: str, words: int) -> None:
        try:
            tokens = tokens_of(query)
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
        after = tokens[-1].end + 1
        self.sql = query
        self._tokens = [*tokens, Token(TokenType.SENTINEL, "", start=after, end=after - 1)]
        self._index = words

    # --- parts -------------------------------------------------------------------------------

    def condition(self, *words: str) -> bool:
        """Reads IF and the words, unless IF is the name of an index."""
        if not self.is_next("IF") or _upper(self._source(self._next)) == "ON":
            return False
        self.take()
        for word in words:
            self.expect(word)
        return True

    def index_name(self, expected: str) -> str:
        if self.is_next("ON"):
            self.fail(expected)
        return self.name(expected)

    def table(self, *before: str) -> TableReference:
        """Reads a table; `before` lists the alternatives for the message."""
        # A table may be named "table".
        has_keyword = self.is_next("TABLE") and self._next.token_type not in (
            TokenType.DOT,
            TokenType.SENTINEL,
        )
        if has_keyword:
            self.take()
        return self.table_reference(
            "table name or 'path'"
            if has_keyword
            else either([*before, "TABLE", "table name", "'path'"])
        )

    def table_reference(self, expected: str) -> TableReference:
        if self._curr.token_type is TokenType.STRING and self._curr.text:
            return TablePath(self.string())
        parts = self.dotted_name(expected)
        # No name in Spark's catalog contains a slash.
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
        if self._curr.token_type is TokenType.STRING and self._curr.text:
            key = self.string()
        else:
            key = ".".join(self.dotted_name("option name"))
        if self._curr.token_type is TokenType.EQ:
            self.take()
        if self._curr.token_type is TokenType.STRING:
            return key, self.string()
        if self._curr.token_type is TokenType.NUMBER:
            return key, self.take().text
        if self.is_next("TRUE") or self.is_next("FALSE"):
            return key, self.take().text.lower()
        self.fail("quoted value, number, true or false")

    def where(self, clauses: Mapping[str, Collection[str]]) -> str:
        """A predicate, with blanks before it that keep its position in the statement. Only its end
        is determined.

        Args:
            clauses: Clauses that may follow: first word → possible second words, by which a clause
                differs from a column of the same name.
        """
        start, last, depth = self._curr, None, 0
        while not self.is_at_end and not (depth == 0 and self._begins(clauses)):
            last = self.take()
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(last.token_type, 0)
        if last is None:
            self.fail("predicate over partition columns")
        return blanks(self.sql[: start.start]) + self.sql[start.start : last.end + 1]

    def _begins(self, clauses: Mapping[str, Collection[str]]) -> bool:
        return _upper(self._source(self._next)) in clauses.get(_upper(self.source), ())

    def build_id(self) -> str:
        """A build's id as in its record, from a number with or without quotes."""
        kind, text = self._curr.token_type, self._curr.text
        if kind not in (TokenType.STRING, TokenType.NUMBER) or not _DIGITS.fullmatch(text):
            self.fail("build id, such as '000001',")
        return build_id(int(self.take().text))

    def in_parentheses(
        self, parse_item: Callable[[], _Item], optional: str = "", *, first: str = "("
    ) -> list[_Item]:
        """Reads one or more items, separated by commas.

        Args:
            optional: Alternative after an item, for the message.
            first: Expected text for the message if there is no opening parenthesis.
        """
        if not self.accept("("):
            self.fail(first)
        items = [parse_item()]
        while self.accept(","):
            items.append(parse_item())
        if not self.accept(")"):
            self.fail(either([optional, ",", ")"]))
        return items

    def string(self) -> str:
        """The value of the quoted text in the next token."""
        token = self.take()
        source = self.sql[token.start : token.end + 1]
        try:
            return string_value(LiteralToken("string", source, token.start))
        except PredicateUnsupported as error:
            raise StatementInvalid(
                f"Quoted text of Unicode characters expected at "
                f"{position(self.sql, token.start)} of the statement, found {source}.",
                remedy=error.remedies,
            ) from error

    def dotted_name(self, expected: str) -> tuple[str, ...]:
        parts = [self.name(expected)]
        while self.accept("."):
            parts.append(self.name("name"))
        return tuple(parts)

    def name(self, expected: str) -> str:
        """A back-quoted name or a bare word."""
        if self._curr.token_type is TokenType.IDENTIFIER and self._curr.text:
            return self.take().text
        if self._curr.token_type not in _NOT_WORDS and _NAME.fullmatch(self.source):
            return self.take().text
        self.fail(expected)

    # --- steps -------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The next token as written in the statement; empty at its end."""
        return self._source(self._curr)

    @property
    def is_at_end(self) -> bool:
        """Whether no token is left."""
        return self._curr.token_type is TokenType.SENTINEL

    def take(self) -> Token:
        """Skips the next token, and returns it."""
        token = self._curr
        self._index += 1
        return token

    def is_next(self, word: str) -> bool:
        """Whether the next token is the unquoted word, in any case, or the symbol."""
        return _upper(self.source) == word

    def accept(self, word: str) -> bool:
        """Skips the word if it comes next; returns whether it did."""
        if not self.is_next(word):
            return False
        self.take()
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self.fail(word)

    def end_of_statement(self, *optional: str) -> None:
        """Requires the end; `optional` lists the alternatives for the message."""
        if not self.is_at_end:
            self.fail(either([*optional, "the end"]))

    def fail(self, expected: str) -> NoReturn:
        """Raises the error that something else is expected than the next token."""
        actual = "its end" if self.is_at_end else repr(self.source)
        raise StatementInvalid(
            f"{expected[0].upper()}{expected[1:]} expected at "
            f"{position(self.sql, self._curr.start)} of the statement, found {actual}."
        )

    @property
    def _curr(self) -> Token:
        return self._tokens[self._index]

    @property
    def _next(self) -> Token:
        return self._tokens[min(self._index + 1, len(self._tokens) - 1)]

    def _source(self, token: Token) -> str:
        return self.sql[token.start : token.end + 1]


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


def _upper(word: str) -> str:
    """An ASCII word in upper case, like Spark's keywords; other words unchanged, since upper-casing
    could turn them into keywords."""
    return word.upper() if word.isascii() else word


def blanks(text: str) -> str:
    """The text with blanks for all characters except line breaks."""
    return re.sub(r"[^\n]", " ", text)


def either(words: list[str]) -> str:
    """The words as an enumeration, ``A, B or C``, without empty ones."""
    alternatives = [word for word in words if word]
    return " or ".join(
        [", ".join(alternatives[:-1]), alternatives[-1]] if len(alternatives) > 1 else alternatives
    )
