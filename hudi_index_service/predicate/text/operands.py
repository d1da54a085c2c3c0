"""Columns and literals in a where text, the operands of its conditions; and functions that are
conditions: array_contains, and full-text search."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from decimal import Context, Decimal
from typing import NoReturn

import pyarrow as pa

from hudi_index_service.arrow import FALSE, TRUE, integer_scalar, scalar, text_scalar
from hudi_index_service.columns import find_column
from hudi_index_service.errors import (
    ColumnAmbiguous,
    ColumnNotFound,
    PredicateInvalid,
    PredicateUnsupported,
    Remedy,
)
from hudi_index_service.predicate.cast import (
    TIMESTAMP,
    TIMESTAMP_NTZ,
    cast,
    fits,
    fits_exponent,
    integer,
)
from hudi_index_service.predicate.coerce import array_contains
from hudi_index_service.predicate.comparison import MAX_PRECISION, Literal, is_string, value_type
from hudi_index_service.predicate.expression import (
    AnalyzedText,
    BoundColumn,
    Constant,
    Match,
    MatchMode,
    Predicate,
)
from hudi_index_service.predicate.text.for_spark import may_be_spark_sql
from hudi_index_service.predicate.text.lex import (
    Token,
    TokenReader,
    hex_value,
    name_value,
    position,
    string_value,
    tokenize,
)
from hudi_index_service.wording import shortened

Operand = BoundColumn | Literal

Texts = Callable[[], Mapping[str, Sequence[AnalyzedText]]]
"""Returns the analyzed texts by column: exactly one if full text can be searched, else none or
several."""

_MODES = {mode.value.upper(): mode for mode in MatchMode}
_DEFAULT_EDITS = 1
_MOST_EDITS = 2
_MOST_CHARACTERS = 1000  # keeps a query's words below Lucene's limit
_LONGEST_WORD = 100

_TYPES = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "BYTE": pa.int8(),
    "SMALLINT": pa.int16(),
    "SHORT": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
}
_TYPED_LITERALS = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ")
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
# Words that end an operand; a column of such a name must be back-quoted.
_RESERVED = {"AND", "OR", "NOT", "IN", "IS", "LIKE", "BETWEEN", "ESCAPE", "FROM"}
# Words that are not columns unless the table has a column with that name.
_NOT_COLUMNS = {
    *("CASE", "EXISTS", "INTERVAL", "SELECT", "WITH", "VALUES", "ANY", "ALL", "SOME"),
    *("CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME", "LOCALTIMESTAMP"),
    *("CURRENT_USER", "SESSION_USER", "USER"),
}

# Well below the limit of Python's stack.
_MAX_DEPTH = 50

_NUMBER = re.compile(r"(-?)(([0-9.]+)(?:[eE]([+-]?[0-9]+))?)([A-Za-z]*)")
_INTEGERS = {"Y": pa.int8(), "S": pa.int16(), "L": pa.int64()}


def no_texts() -> Mapping[str, Sequence[AnalyzedText]]:
    """No column can be searched."""
    return {}


class OperandParser(TokenReader):
    """Steps through the tokens of a where text and reads operands (primaryExpression), or functions
    in their place."""

    def __init__(self, where: str, schema: pa.Schema, zone: tzinfo, texts: Texts) -> None:
        super().__init__(tokenize(where))
        self.where = where
        self.schema = schema
        self.zone = zone
        self.texts = texts
        self.depth = 0

    def open(self) -> None:
        """Steps over an opening parenthesis."""
        start = self.token
        self.expect("(")
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.unsupported(
                f"More than {_MAX_DEPTH} nested parentheses", start, "Nest them less deeply."
            )

    def close(self) -> None:
        """Steps over the closing parenthesis."""
        self.expect(")")
        self.depth -= 1

    def fail(self, expected: str) -> NoReturn:
        token = self.token
        where = f"at {self.at(token)}"
        actual = repr(shortened(token.text)) if token.text else "its end"
        if token.text == ";":
            raise PredicateUnsupported(
                f"More than one statement: ';' {where}.", remedy="Write one condition without ';'."
            )
        if len(self.tokens) == 1 or not may_be_spark_sql(self.where):
            raise PredicateInvalid(f"{expected} expected, but found {actual} {where}.")
        raise PredicateUnsupported(
            f"Not supported: {actual} {where} ({expected} expected).",
            remedy="Compare columns with literals by =, <=>, <>, <, <=, >, >=, BETWEEN, IN, LIKE, "
            "RLIKE, IS NULL, joined by AND, OR, NOT; or run the query through Spark.",
        )

    def unsupported(self, problem: str, token: Token, remedy: Remedy | str) -> PredicateUnsupported:
        return PredicateUnsupported(
            f"{problem}: {shortened(token.text)!r} at {self.at(token)}.", remedy=remedy
        )

    def at(self, token: Token) -> str:
        """Where a token begins, for messages."""
        return f"{position(self.where, token.start)} of the predicate"

    def operand(self) -> Operand:
        start = self.token
        operand = self.primary()
        if isinstance(operand, Predicate):
            raise self.unsupported(
                "A condition used as a value", start, "Compare columns with literals."
            )
        return operand

    def primary(self) -> Operand | Predicate:
        token = self.token
        if token.keyword == "(":
            return self.parenthesized()
        if token.kind == "number":
            return Literal(number_literal(self.advance().text), shortened(token.text))
        if token.keyword == "-" and self.next_token.kind == "number":
            self.advance()
            text = "-" + self.advance().text
            return Literal(number_literal(text), shortened(text))
        if token.kind in ("string", "raw"):
            return self.string()
        if token.kind == "hex":
            return Literal(scalar(hex_value(self.advance()), pa.binary()), shortened(token.text))
        if token.keyword in ("TRUE", "FALSE", "NULL"):
            value = {"TRUE": TRUE, "FALSE": FALSE, "NULL": pa.NULL}[self.advance().keyword]
            return Literal(value, token.text)
        if token.kind in ("word", "quoted"):
            return self.named()
        self.fail("A column or a literal")

    def parenthesized(self) -> Operand | Predicate:
        """An operand in parentheses; the subclass reads conditions."""
        raise NotImplementedError

    def string(self) -> Literal:
        start = self.token
        texts = []
        while self.token.kind in ("string", "raw"):  # Strings that follow each other are one.
            texts.append(string_value(self.advance()))
        return Literal(text_scalar("".join(texts)), self.text_from(start))

    def text_from(self, start: Token) -> str:
        """The text read since a token, shortened for messages."""
        return shortened(self.where[start.start : self.tokens[self.index - 1].stop])

    def named(self) -> Operand | Predicate:
        """An operand or a function, which begin with a word."""
        token = self.token
        follower = self.next_token
        if follower.keyword == "(" and token.keyword == "ARRAY_CONTAINS":
            return self.array_contains()
        if follower.keyword == "(" and token.keyword in _MODES:
            return self.match()
        if token.keyword in _TYPED_LITERALS and follower.kind in ("string", "raw"):
            return self.typed_literal()
        if token.keyword == "CAST" and follower.keyword == "(":
            return self.cast()
        if token.keyword in _RESERVED:
            self.fail("A column or a literal")
        if follower.keyword == "(":
            raise self.unsupported(
                "Functions are not supported",
                token,
                "Compare columns with literals; if this is a column, back-quote its name.",
            )
        return self.column()

    def column(self) -> BoundColumn:
        token = self.advance()
        parts = [name_value(token)]
        while self.accept("."):
            if self.token.kind not in ("word", "quoted"):
                self.fail("The name of a field")
            parts.append(name_value(self.advance()))
        at = f"({self.at(token)})"
        try:
            return BoundColumn(*find_column(self.schema, parts))
        except ColumnAmbiguous as error:
            raise PredicateInvalid(
                f"{error.message.rstrip('.')} {at}.", remedy=error.remedies
            ) from error
        except ColumnNotFound as error:
            if token.keyword in _NOT_COLUMNS:
                raise self.unsupported(
                    "Not supported", token, "Compare columns with literals."
                ) from error
            raise error.reworded(f"{error.message.rstrip('.')} {at}.") from error

    def typed_literal(self) -> Literal:
        start = self.advance()
        token = self.advance()
        value = cast(text_scalar(string_value(token)), _TYPES[start.keyword], self.zone)
        text = self.text_from(start)
        if not value.is_valid:
            raise PredicateInvalid(
                f"{text} at {self.at(start)} is not a valid {start.keyword}.",
                remedy="Write yyyy-MM-dd, for a timestamp followed by HH:mm:ss.",
            )
        return Literal(value, text)

    def cast(self) -> Literal:
        start = self.advance()
        self.open()
        token = self.token
        operand = self.operand()
        if isinstance(operand, BoundColumn):
            raise self.unsupported("CAST of a column", token, "Cast the literal instead.")
        self.expect("AS")
        target = self.type_name()
        self.close()
        return Literal(cast(operand.value, target, self.zone), self.text_from(start), plain=False)

    def type_name(self) -> pa.DataType:
        token = self.advance()
        if token.keyword in _TYPES:
            return _TYPES[token.keyword]
        if token.keyword not in _DECIMALS:
            raise self.unsupported(
                "Not a type that literals can be cast to",
                token,
                f"Use one of {', '.join((*_TYPES, 'DECIMAL'))}.",
            )
        precision, scale = 10, 0
        if self.accept("("):
            precision = self.digits()
            if self.accept(","):
                scale = self.digits()
            self.expect(")")
        if not (0 < precision <= MAX_PRECISION and scale <= precision):
            raise PredicateInvalid(
                f"There is no type {self.text_from(token)}.",
                remedy=f"Use a precision from 1 to {MAX_PRECISION}, and a scale up to it.",
            )
        return pa.decimal128(precision, scale)

    def digits(self) -> int:
        """Reads a number of digits, cut off if it is far too large, but still too large."""
        if not self.token.text.isdecimal():
            self.fail("A number of digits")
        return int(self.advance().text.lstrip("0")[:4] or "0")

    def array_contains(self) -> Predicate:
        column = self.first_argument("array_contains", "Name an array column.")
        token = self.token
        value = self.operand()
        if isinstance(value, BoundColumn):
            raise self.unsupported(
                "array_contains with a column as value", token, "Look for a literal."
            )
        self.close()
        return array_contains(column, value, self.zone)

    def match(self) -> Predicate:
        function = self.token
        mode = _MODES[function.keyword]
        column = self.first_argument(mode.value, "Name a string column.")
        if not is_string(value_type(column)):
            raise self.unsupported(
                f"{mode.value} in a column of type {column.type}", function, "Name a string column."
            )
        token = self.token
        text = self.operand()
        if isinstance(text, BoundColumn) or not (text.is_null or is_string(text.value.type)):
            raise self.unsupported(f"{mode.value} of a non-text value", token, "Quote the text.")
        edits = 0
        if mode is MatchMode.FUZZY:
            edits = self.edits() if self.accept(",") else _DEFAULT_EDITS
        self.close()
        words = self.analyzed_text(column, function)
        if text.is_null:
            return Constant(None)
        search_text = str(text.value.as_py())
        self.require_short(search_text, token)
        if mode is MatchMode.PREFIX and len(search_text.split()) != 1:
            raise PredicateInvalid(
                f"match_prefix takes the beginning of one word, not {shortened(token.text)} "
                f"({self.at(token)}).",
                remedy="Join several match_prefix conditions with AND.",
            )
        return Match(column, mode, search_text, words, edits)

    def first_argument(self, function: str, remedy: str) -> BoundColumn:
        """Reads a function's first argument, a column, up to and including the comma."""
        self.advance()
        self.open()
        token = self.token
        column = self.operand()
        if not isinstance(column, BoundColumn):
            raise self.unsupported(f"{function} on a value that is not a column", token, remedy)
        self.expect(",")
        return column

    def edits(self) -> int:
        token = self.token
        if token.text not in map(str, range(_MOST_EDITS + 1)):
            raise PredicateInvalid(
                f"A word may be 0, 1 or {_MOST_EDITS} edits away, not {shortened(token.text)!r} "
                f"({self.at(token)}).",
                remedy=f"Omit the number for {_DEFAULT_EDITS} edit.",
            )
        return int(self.advance().text)

    def require_short(self, text: str, token: Token) -> None:
        longest = max(map(len, text.split()), default=0)
        if len(text) > _MOST_CHARACTERS or longest > _LONGEST_WORD:
            raise self.unsupported(
                f"A search for more than {_MOST_CHARACTERS} characters, or {_LONGEST_WORD} in one "
                "word",
                token,
                "Shorten the text to search for.",
            )

    def analyzed_text(self, column: BoundColumn, function: Token) -> AnalyzedText:
        texts = self.texts().get(column.name, ())
        if len(texts) == 1:
            return texts[0]
        if not texts:
            raise self.unsupported(
                f"No index holds the words of {column}, which full-text search needs",
                function,
                _analyzer_remedy(column),
            )
        names = ", ".join(sorted(each.analyzer for each in texts))
        raise self.unsupported(
            f"Indexes analyze the words of {column} with different analyzers ({names})",
            function,
            Remedy(
                "Keep only one of them: see alter_index.",
                command="Keep only one of them: `hudi-index alter TABLE INDEX --drop COLUMN`.",
                sql="Keep only one of them: ALTER INDEX … ON … DROP (…).",
            ),
        )


def _analyzer_remedy(column: BoundColumn) -> Remedy:
    name = column.name
    return Remedy(
        f'Give {column} an analyzer: create_index("by_words", [Column(name="{name}", '
        'options={"analyzer": "standard"})]), or alter_index; then build or refresh.',
        command=f"Give {column} an analyzer: `hudi-index create TABLE by_words "
        f"{name}:analyzer=standard`, then `hudi-index build TABLE --strategy all`.",
        sql=f"Give {column} an analyzer: CREATE INDEX by_words ON … USING lucene ({column} "
        "OPTIONS(analyzer='standard')), then OPTIMIZE TABLE … STRATEGY ALL.",
    )


def number_literal(text: str) -> pa.Scalar:
    """The value of a number token, with its sign, in Spark's type.

    Raises:
        PredicateInvalid: the number does not fit its type.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise _invalid(text, "is not a number")
    sign, digits, mantissa, exponent, suffix = match.groups()
    suffix = suffix.upper()
    number = sign + digits
    integer_value = integer(number) if digits == mantissa and "." not in digits else None
    if exponent is not None and not fits_exponent(exponent):
        raise _invalid(text, "has an exponent of more than 32 bits")
    if suffix in _INTEGERS:
        if integer_value is None or not fits(integer_value, _INTEGERS[suffix]):
            raise _invalid(text, f"does not fit {_INTEGERS[suffix]}")
        return integer_scalar(integer_value, _INTEGERS[suffix])
    if suffix == "F":
        return _floating(text, number, pa.float32())
    if suffix == "D" or (suffix == "" and digits != mantissa):
        return _floating(text, number, pa.float64())
    if suffix == "" and integer_value is not None:
        for kind in (pa.int32(), pa.int64()):
            if fits(integer_value, kind):
                return integer_scalar(integer_value, kind)
    if len(mantissa.replace(".", "").lstrip("0")) > MAX_PRECISION:  # before all digits are read
        raise _too_long(text)
    return _decimal(text, Decimal(number))


def _floating(text: str, number: str, kind: pa.DataType) -> pa.Scalar:
    value = text_scalar(number).cast(kind)
    if math.isinf(value.as_py()):
        raise _invalid(text, f"does not fit {kind}")
    return value


def _decimal(text: str, number: Decimal) -> pa.Scalar:
    digits, exponent = number.as_tuple().digits, int(number.as_tuple().exponent)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale)
    if precision > MAX_PRECISION:
        raise _too_long(text)
    exact = number.quantize(Decimal(1).scaleb(-scale), context=Context(prec=MAX_PRECISION + 1))
    return scalar(exact, pa.decimal128(precision, scale))


def _too_long(text: str) -> PredicateInvalid:
    return _invalid(text, f"has more than {MAX_PRECISION} digits")


def _invalid(text: str, problem: str) -> PredicateInvalid:
    return PredicateInvalid(
        f"The number {shortened(text)} {problem}.",
        remedy="Write a number that fits, or use another suffix.",
    )
