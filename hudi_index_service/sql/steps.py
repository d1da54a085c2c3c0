"""Parses the tokens of an index statement, and the parts that several statements share: names,
tables, columns, options."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import NoReturn, TypeVar

from sqlglot import Token, TokenType
from sqlglot.parsers.spark import SparkParser

from hudi_index_service.build.record import build_id
from hudi_index_service.columns import column_name
from hudi_index_service.errors import PredicateUnsupported, StatementInvalid
from hudi_index_service.index.metadata.definitions import Column
from hudi_index_service.predicate.text.lex import Token as LiteralToken
from hudi_index_service.predicate.text.lex import position, string_value
from hudi_index_service.sql.statements import TableName, TablePath, TableReference

_Item = TypeVar("_Item")
_DIGITS = re.compile(r"[0-9]{1,18}")
_WORD = re.compile(r"\w+", re.ASCII)
_NOT_WORDS = {TokenType.STRING, TokenType.RAW_STRING, TokenType.NUMBER, TokenType.IDENTIFIER}


class Steps(SparkParser):
    """Parsing steps. A method that reads a part is named after it; each raises StatementInvalid."""

    # --- parts -------------------------------------------------------------------------------

    def condition(self, *words: str) -> bool:
        """Reads IF and the words, unless IF is the name of an index."""
        ahead = self._next and self.sql[self._next.start : self._next.end + 1]
        if not self.is_next("IF") or _upper(ahead or "") == "ON":
            return False
        self._advance()
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
        has_keyword = (
            self.is_next("TABLE") and self._next and self._next.token_type is not TokenType.DOT
        )
        if has_keyword:
            self._advance()
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
        self._match(TokenType.EQ)
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
        while self._curr and not (depth == 0 and self._begins(clauses)):
            last = self.take()
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(last.token_type, 0)
        if last is None:
            self.fail("predicate over partition columns")
        return blanks(self.sql[: start.start]) + self.sql[start.start : last.end + 1]

    def _begins(self, clauses: Mapping[str, Collection[str]]) -> bool:
        follower = self.sql[self._next.start : self._next.end + 1] if self._next else ""
        return _upper(follower) in clauses.get(_upper(self.source), ())

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
        if self._curr and self._curr.token_type not in _NOT_WORDS and _WORD.fullmatch(self.source):
            return self.take().text
        self.fail(expected)

    # --- steps -------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The next token as written in the statement."""
        return self.sql[self._curr.start : self._curr.end + 1] if self._curr else ""

    def take(self) -> Token:
        token = self._curr
        self._advance()
        return token

    def is_next(self, word: str) -> bool:
        """Whether the next token is the unquoted word, in any case, or the symbol."""
        return _upper(self.source) == word

    def accept(self, word: str) -> bool:
        """Skips the word if it comes next; returns whether it did."""
        if not self.is_next(word):
            return False
        self._advance()
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self.fail(word)

    def end_of_statement(self, *optional: str) -> None:
        """Requires the end; `optional` lists the alternatives for the message."""
        if self._curr:
            self.fail(either([*optional, "the end"]))

    def fail(self, expected: str) -> NoReturn:
        offset = self._curr.start if self._curr else self._prev.end + 1
        actual = repr(self.source) if self._curr else "its end"
        raise StatementInvalid(
            f"{expected[0].upper()}{expected[1:]} expected at {position(self.sql, offset)} "
            f"of the statement, found {actual}."
        )


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
