"""The tokens of Spark SQL (SqlBaseLexer.g4 of Spark 3.5): of predicates, and of statements."""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import islice
from typing import NoReturn

from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported
from hudi_index_service.wording import shortened

# A number must not run into a word: Spark reads 1abc as an identifier. Repetition is possessive
# (`*+`) throughout: it keeps no state per character and does not backtrack.
_AFTER_DIGITS = r"(?:[eE][+-]?[0-9]++)?+(?:[LlSsYyFfDd]|[Bb][Dd])?+(?![A-Za-z0-9_])"
_TOKEN = re.compile(
    rf"""
    (?P<string>  '(?:[^'\\]++|\\.)*+' | "(?:[^"\\]++|\\.)*+" )
  | (?P<raw>     [rR](?:'[^']*+'|"[^"]*+") )
  | (?P<hex>     [xX](?:'[0-9A-Fa-f]*+'|"[0-9A-Fa-f]*+") )
  | (?P<number>  (?:[0-9]++\.[0-9]*+{_AFTER_DIGITS} | \.?[0-9]++{_AFTER_DIGITS}) )
  | (?P<quoted>  `(?:[^`]++|``)++` )
  | (?P<word>    [A-Za-z0-9_]++ )
  | (?P<symbol>  <=> | <> | != | <= | >= | == | !< | !> | \|\| | ::
                 | [-+*/%=<>!(),;.~&|^\[\]{{}}:?@\#] )
    """,
    re.VERBOSE | re.DOTALL,
)

# A list of plain strings or whole numbers is one token, since it may be long.
_LITERAL = r"(?:'[^'\\]*+'|-?[0-9]++)"
_SPACE = r"[ \t\r\n]*+"
_LIST = re.compile(rf"{_SPACE}(\({_SPACE}{_LITERAL}(?:{_SPACE},{_SPACE}{_LITERAL})*+{_SPACE}\))")
_LISTED = re.compile(_LITERAL)

# White space, and comments to the end of the line.
_GAP = re.compile(r"(?:[ \t\r\n]++|--(?:[^\r\n\\]++|\\\n|\\)*+)++")
_COMMENT_MARK = re.compile(r"/\*|\*/")

# SparkParserUtils.unescapeSQLString; a backslash before any other character is dropped, but kept
# before % and _ for LIKE.
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7][0-7])|(.))", re.DOTALL)
_ESCAPED = {
    "0": "\0",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "Z": "\x1a",
    "%": "\\%",
    "_": "\\_",
}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the where text.

    Attributes:
        kind: ``string``, ``raw``, ``hex``, ``number``, ``quoted``, ``word``, ``symbol``, ``list``
            (after IN) or ``end``.
        text: Its text in the where text.
        start: Offset of its first character.
    """

    kind: str
    text: str
    start: int

    @property
    def keyword(self) -> str:
        """The upper-case word, or the symbol; empty for everything else."""
        return self.text.upper() if self.kind in ("word", "symbol") else ""

    @property
    def stop(self) -> int:
        """Offset after its last character."""
        return self.start + len(self.text)


def position(where: str, offset: int) -> str:
    """``line l, column c`` of an offset, both 1-based."""
    line_start = where.rfind("\n", 0, offset) + 1
    return f"line {where.count(chr(10), 0, offset) + 1}, column {offset - line_start + 1}"


def tokenize(where: str) -> list[Token]:
    """The tokens of `where` without white space and comments, closed by an ``end`` token.

    Raises:
        PredicateInvalid: a character that begins no token, a lone surrogate, or an unterminated
            string or comment.
    """
    try:
        where.encode()
    except UnicodeEncodeError as error:
        raise PredicateInvalid(
            f"Half a surrogate pair at {position(where, error.start)} of the predicate.",
            remedy="Write the whole character.",
        ) from error
    tokens = []
    offset = skip_gaps(where, 0)
    while offset < len(where):
        match = _TOKEN.match(where, offset)
        if match is None:
            problem = "Unterminated text" if where[offset] in "'\"`" else "Unexpected character"
            raise PredicateInvalid(
                f"{problem} {where[offset]!r} at {position(where, offset)} of the predicate.",
                remedy="Close the quotation, or back-quote the name.",
            )
        if where.startswith("/*", offset) and not where.startswith("/*+", offset):
            raise PredicateInvalid(
                f"Unterminated comment at {position(where, offset)} of the predicate.",
                remedy="Close it with */.",
            )
        tokens.append(Token(str(match.lastgroup), match.group(), offset))
        offset = skip_gaps(where, match.end())
        if tokens[-1].keyword == "IN":
            listed = _LIST.match(where, match.end())
            if listed is not None:
                tokens.append(Token("list", listed.group(1), listed.start(1)))
                offset = skip_gaps(where, listed.end())
    tokens.append(Token("end", "", len(where)))
    return tokens


def skip_gaps(text: str, offset: int) -> int:
    """The end of the white space and comments that begin at an offset. A hint, ``/*+ … */``, is no
    comment, and one that does not end begins no gap."""
    while True:
        if (gap := _GAP.match(text, offset)) is not None:
            offset = gap.end()
        elif text.startswith("/*", offset) and not text.startswith("/*+", offset):
            end = _comment_end(text, offset)
            if end is None:
                return offset
            offset = end
        else:
            return offset


def _comment_end(text: str, start: int) -> int | None:
    """The end of a bracketed comment; in Spark these nest. None if there is none."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return None


def string_value(token: Token) -> str:
    """The value of a ``string`` or ``raw`` token.

    Raises:
        PredicateUnsupported: an escape yields a lone surrogate, or no Unicode character.
    """
    if token.kind == "raw":
        return token.text[2:-1]
    try:
        text = token.text[1:-1]
        if "\\" not in text:
            return text
        text = _ESCAPE.sub(_unescape, text)
        # Escapes may spell a character as a surrogate pair, as Java's strings hold it.
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except (UnicodeDecodeError, ValueError, OverflowError) as error:
        raise PredicateUnsupported(
            f"The literal {shortened(token.text)} holds an escape that is not a Unicode character.",
            remedy="Write the character itself.",
        ) from error


def listed_texts(token: Token) -> list[str]:
    """The literals of a ``list`` token, as they are written."""
    return _LISTED.findall(token.text)


def listed_token(token: Token, number: int) -> Token:
    """The token of one of these literals, counted from 0."""
    literal = next(islice(_LISTED.finditer(token.text), number, None))
    return Token("literal", literal.group(), token.start + literal.start())


def _unescape(match: re.Match[str]) -> str:
    four, eight, octal, character = match.groups()
    if character is not None:
        return _ESCAPED.get(character, character)
    return chr(int(octal, 8) if octal else int(four or eight, 16))


def name_value(token: Token) -> str:
    """The column name that a ``word`` or ``quoted`` token spells; other tokens as they are."""
    return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text


def hex_value(token: Token) -> bytes:
    """The bytes of a ``hex`` token; an odd number of digits gets a leading zero, as in Spark."""
    digits = token.text[2:-1]
    return bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)


class TokenReader(ABC):
    """Steps through the tokens of a text, of which the last is ``end``.

    Attributes:
        index: Of the next token.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.index = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.index]

    @property
    def next_token(self) -> Token:
        """The token after it."""
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    def advance(self) -> Token:
        """Steps over the next token, and returns it."""
        token = self.token
        self.index += token.kind != "end"
        return token

    def accept(self, *keywords: str) -> bool:
        """Steps over the keywords if all of them come next, in this order."""
        ahead = self.tokens[self.index : self.index + len(keywords)]
        if tuple(token.keyword for token in ahead) != keywords:
            return False
        self.index += len(keywords)
        return True

    def expect(self, keyword: str) -> None:
        """Steps over the keyword, or fails."""
        if not self.accept(keyword):
            self.fail(keyword)

    @abstractmethod
    def fail(self, expected: str) -> NoReturn:
        """Raises the error that something else is expected than the next token."""
