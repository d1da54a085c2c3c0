"""The tokens of a statement, and the parts that several index statements share: first words, names,
tables, columns, options.

The grammar follows Spark's own and Hudi's for CREATE, DROP and SHOW, and RFC-51 ("SQL layer") for
ALTER INDEX, OPTIMIZE TABLE, SHOW INDEXING and CANCEL INDEXING.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from hudi_index_service.columns import column_name
from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported, StatementInvalid
from hudi_index_service.index.metadata.build_records import build_id
from hudi_index_service.index.metadata.definitions import Column
from hudi_index_service.predicate.text.lex import (
    Token,
    TokenReader,
    name_value,
    position,
    skip_gaps,
    string_value,
    tokenize,
)

_Item = TypeVar("_Item")
_DIGITS = re.compile(r"[0-9]{1,18}")
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


class Parser(TokenReader):
    """Parses an index statement. A method that reads a part is named after it; each raises
    StatementInvalid, with line, column and the words expected there.

    Args:
        query: The statement.
        words: The number of its first words, which are known.
    """

    def __init__(self, query: str, words: int) -> None:
        try:
            *tokens, end = tokenize(query)
        except PredicateInvalid as error:
            message = error.message.replace("of the predicate", "of the statement")
            raise StatementInvalid(message, remedy=error.remedies) from error
        while tokens[-1].text == ";":
            tokens.pop()
        for token in tokens:
            if token.text == ";":
                raise StatementInvalid(
                    f"End of the statement expected after the ; at {position(query, token.start)}.",
                    remedy="Pass one statement at a time.",
                )
        super().__init__([*tokens, Token("end", "", tokens[-1].stop if tokens else end.start)])
        self.sql = query
        self.index = words

    # --- parts -------------------------------------------------------------------------------

    def condition(self, *words: str) -> bool:
        """Reads IF and the words, unless IF is the name of an index."""
        if not self.is_next("IF") or self.next_token.keyword == "ON":
            return False
        self.advance()
        for word in words:
            self.expect(word)
        return True

    def index_of_table(self, expected: str) -> tuple[str, TableReference]:
        """Reads an index's name, ON and its table."""
        if self.is_next("ON"):
            self.fail(expected)
        name = self.name(expected)
        self.expect("ON")
        return name, self.table()

    def table(self, *before: str) -> TableReference:
        """Reads a table; `before` lists the alternatives for the message."""
        # A table may be named "table".
        has_keyword = self.is_next("TABLE") and self.next_token.text not in (".", "")
        if has_keyword:
            self.advance()
        return self.table_reference(
            "table name or 'path'"
            if has_keyword
            else either([*before, "TABLE", "table name", "'path'"])
        )

    def table_reference(self, expected: str) -> TableReference:
        if self._is_string and len(self.token.text) > 2:
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
        if self._is_string and len(self.token.text) > 2:
            key = self.string()
        else:
            key = ".".join(self.dotted_name("option name"))
        self.accept("=")
        if self._is_string:
            return key, self.string()
        if self.token.kind == "number":
            return key, self.advance().text
        if self.is_next("TRUE") or self.is_next("FALSE"):
            return key, self.advance().text.lower()
        self.fail("quoted value, number, true or false")

    def where(self, clauses: Mapping[str, Collection[str]]) -> str:
        """A predicate, with blanks before it that keep its position in the statement. Only its end
        is determined.

        Args:
            clauses: Clauses that may follow: first word → possible second words, by which a clause
                differs from a column of the same name.
        """
        start, last, depth = self.token, None, 0
        while not self.is_at_end and not (depth == 0 and self._begins(clauses)):
            last = self.advance()
            depth += {"(": 1, ")": -1}.get(last.text, 0)
        if last is None:
            self.fail("predicate over partition columns")
        return blanks(self.sql[: start.start]) + self.sql[start.start : last.stop]

    def _begins(self, clauses: Mapping[str, Collection[str]]) -> bool:
        return self.next_token.keyword in clauses.get(self.token.keyword, ())

    def build_id(self) -> str:
        """A build's id as in its record, from a number with or without quotes."""
        text = self.token.text[1:-1] if self._is_string else self.token.text
        if not _DIGITS.fullmatch(text):
            self.fail("build id, such as '000001',")
        self.advance()
        return build_id(int(text))

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
        token = self.advance()
        try:
            return string_value(token)
        except PredicateUnsupported as error:
            raise StatementInvalid(
                f"Quoted text of Unicode characters expected at "
                f"{position(self.sql, token.start)} of the statement, found {token.text}.",
                remedy=error.remedies,
            ) from error

    def dotted_name(self, expected: str) -> tuple[str, ...]:
        parts = [self.name(expected)]
        while self.accept("."):
            parts.append(self.name("name"))
        return tuple(parts)

    def name(self, expected: str) -> str:
        """A back-quoted name or a bare word."""
        if self.token.kind not in ("word", "quoted"):
            self.fail(expected)
        return name_value(self.advance())

    # --- steps -------------------------------------------------------------------------------

    @property
    def is_at_end(self) -> bool:
        """Whether no token is left."""
        return self.token.kind == "end"

    def is_next(self, word: str) -> bool:
        """Whether the next token is the unquoted word, in any case, or the symbol."""
        return self.token.keyword == word

    def end_of_statement(self, *optional: str) -> None:
        """Requires the end; `optional` lists the alternatives for the message."""
        if not self.is_at_end:
            self.fail(either([*optional, "the end"]))

    def fail(self, expected: str) -> NoReturn:
        actual = "its end" if self.is_at_end else repr(self.token.text)
        raise StatementInvalid(
            f"{expected[0].upper()}{expected[1:]} expected at "
            f"{position(self.sql, self.token.start)} of the statement, found {actual}."
        )

    @property
    def _is_string(self) -> bool:
        return self.token.kind == "string"


def blanks(text: str) -> str:
    """The text with blanks for all characters except line breaks."""
    return re.sub(r"[^\n]", " ", text)


def either(words: list[str]) -> str:
    """The words as an enumeration, ``A, B or C``, without empty ones."""
    *others, last = filter(None, words)
    return f"{', '.join(others)} or {last}" if others else last
