"""Parses a where text to a predicate, in the supported part of Spark SQL's grammar.

The parser is hand-written over Spark's own tokens, since every answer must rest on Spark's reading
of the text. sqlglot, for one, reads TRY_CAST as CAST and drops hints and SYMMETRIC. It only
classifies text outside the grammar: text that sqlglot can parse is unsupported, other text is
invalid.
"""

from collections.abc import Callable
from datetime import tzinfo

import pyarrow as pa

from hudi_index_service.arrow import TRUE, text_scalar, truth_scalar
from hudi_index_service.config import ReadSettings
from hudi_index_service.config import settings as process_settings
from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported
from hudi_index_service.predicate.cast import session_zone
from hudi_index_service.predicate.coerce import compare, in_list, in_plain_list
from hudi_index_service.predicate.comparison import Literal, is_string, value_type
from hudi_index_service.predicate.evaluate import evaluate
from hudi_index_service.predicate.expression import (
    BoundColumn,
    Compare,
    Constant,
    IsNull,
    Like,
    Not,
    Operator,
    Predicate,
    RLike,
    conjunction,
    disjunction,
)
from hudi_index_service.predicate.like import parse_like
from hudi_index_service.predicate.regex import RegexUnsupported, parse_regex
from hudi_index_service.predicate.text.lex import (
    Token,
    listed_texts,
    listed_token,
    string_value,
)
from hudi_index_service.predicate.text.operands import (
    Operand,
    OperandParser,
    Texts,
    no_texts,
    number_literal,
)
from hudi_index_service.wording import shortened

_OPERATORS = {
    "=": Operator.EQ,
    "==": Operator.EQ,
    "<=>": Operator.EQ_NULL_SAFE,
    "<>": Operator.NE,
    "!=": Operator.NE,
    "<": Operator.LT,
    "<=": Operator.LE,
    "!>": Operator.LE,
    ">": Operator.GT,
    ">=": Operator.GE,
    "!<": Operator.GE,
}
_FLIPPED = {
    Operator.LT: Operator.GT,
    Operator.GT: Operator.LT,
    Operator.LE: Operator.GE,
    Operator.GE: Operator.LE,
}


def parse_predicate(
    where: str,
    schema: pa.Schema,
    *,
    time_zone: str = "UTC",
    texts: Texts = no_texts,
    settings: ReadSettings | None = None,
) -> Predicate:
    """Parses the Spark SQL condition `where` for a table of `schema`.

    Args:
        where: The condition, without WHERE.
        schema: The table's columns in their Arrow types; names are matched case-insensitively.
        time_zone: The session's time zone, for times without one: a region such as
            ``Europe/Paris``, ``UTC`` or an offset such as ``+08:00``.
        texts: Returns the columns that full-text functions can search; called only for these.
        settings: Limits of the text's and its lists' lengths; None for the process's own settings.

    Raises:
        PredicateInvalid: not text, a syntax error, or a comparison that Spark cannot make.
        PredicateUnsupported: Spark would answer it, but it is not answered here; or it is too long.
        ColumnNotFound: the table does not have a named column.
        ConfigInvalid: no such time zone.
    """
    if not isinstance(where, str):
        raise PredicateInvalid(
            f"A predicate is a text, not {type(where).__name__}.",
            remedy="Give the condition after WHERE as text.",
        )
    limits = process_settings().read if settings is None else settings
    if len(where) > limits.max_predicate_length:
        raise PredicateUnsupported(
            f"The predicate has {len(where):,} characters; at most "
            f"{limits.max_predicate_length:,} are read.",
            remedy="Raise the setting read.max_predicate_length, or join with a table of values.",
        )
    zone = session_zone(time_zone)
    return _Parser(where, schema, zone, texts, limits.max_in_values).parse()


class _Parser(OperandParser):
    """Recursive descent over the conditions (booleanExpression of Spark's SqlBaseParser.g4).

    A method that may read a plain operand, such as ``(id)``, returns it unbound: only the following
    tokens show whether it is a condition.
    """

    def __init__(
        self, where: str, schema: pa.Schema, zone: tzinfo, texts: Texts, max_in_values: int
    ) -> None:
        super().__init__(where, schema, zone, texts)
        self.max_in_values = max_in_values

    def parse(self) -> Predicate:
        condition = self.disjunction()
        if self.token.kind != "end":
            self.fail("AND, OR or the end")
        return self.truth(condition)

    def disjunction(self) -> Operand | Predicate:
        first = self.conjunction()
        if self.token.keyword != "OR":
            return first
        operands = [self.truth(first)]
        while self.accept("OR"):
            operands.append(self.truth(self.conjunction()))
        return disjunction(operands)

    def conjunction(self) -> Operand | Predicate:
        first = self.negation()
        if self.token.keyword != "AND":
            return first
        operands = [self.truth(first)]
        while self.accept("AND"):
            operands.append(self.truth(self.negation()))
        return conjunction(operands)

    def negation(self) -> Operand | Predicate:
        negations = 0
        while self.accept("NOT") or self.accept("!"):
            negations += 1
        condition = self.condition()
        if negations == 0:
            return condition
        predicate = self.truth(condition)
        return Not(predicate) if negations % 2 else predicate

    def parenthesized(self) -> Operand | Predicate:
        self.open()
        inner = self.disjunction()
        self.close()
        return inner

    def truth(self, operand: Operand | Predicate) -> Predicate:
        """The condition for an operand without a comparison."""
        if isinstance(operand, Predicate):
            return operand
        if isinstance(operand, BoundColumn):
            kind, text = value_type(operand), str(operand)
            if pa.types.is_boolean(kind):
                return Compare(operand, Operator.EQ, TRUE)
        else:
            kind, text = operand.value.type, operand.text
            if operand.is_null:
                return Constant(None)
            if pa.types.is_boolean(kind):
                return Constant(operand.value.as_py())
        if self.token.kind != "end" and self.token.keyword not in ("AND", "OR", ")"):
            self.fail("A comparison")
        raise PredicateInvalid(
            f"{text} is of type {kind}, not boolean (before {self.at(self.token)}).",
            remedy="Compare it with a literal.",
        )

    def condition(self) -> Operand | Predicate:
        start = self.token
        operand = self.primary()
        if isinstance(operand, Predicate):
            return operand
        if self.token.keyword in _OPERATORS:
            operator = _OPERATORS[self.advance().keyword]
            return self.compare(operand, operator, self.operand(), start)
        if self.accept("IS"):
            return self.is_condition(operand, start)
        negated = self.accept("NOT")
        if self.accept("BETWEEN"):
            predicate = self.between(operand, start)
        elif self.accept("IN"):
            predicate = self.in_list(operand)
        elif self.accept("LIKE"):
            predicate = self.like(operand, start)
        elif self.accept("RLIKE") or self.accept("REGEXP"):
            predicate = self.rlike(operand, start)
        elif negated:
            self.fail("BETWEEN, IN, LIKE or RLIKE")
        else:
            return operand
        return Not(predicate) if negated else predicate

    def compare(self, left: Operand, operator: Operator, right: Operand, start: Token) -> Predicate:
        if isinstance(right, Literal):
            return self.on_column(left, lambda c: compare(c, operator, right, self.zone))
        if isinstance(left, BoundColumn):
            raise self.unsupported(
                "A column compared with a column", start, "Compare columns with literals."
            )
        return compare(right, _FLIPPED.get(operator, operator), left, self.zone)

    def on_column(self, left: Operand, bind: Callable[[BoundColumn], Predicate]) -> Predicate:
        """Binds to a column; a literal on the left is bound as a column with one row."""
        if isinstance(left, BoundColumn):
            return bind(left)
        kind = pa.bool_() if pa.types.is_null(left.value.type) else left.value.type
        # Not through Python's values, whose dates end with the year 9999.
        values = pa.nulls(1, kind) if left.is_null else pa.repeat(left.value, 1)
        row = pa.table({"literal": values})
        return Constant(evaluate(bind(BoundColumn("literal", kind)), row)[0].as_py())

    def is_condition(self, operand: Operand, start: Token) -> Predicate:
        negated = self.accept("NOT")
        if self.accept("NULL"):
            predicate = self.on_column(operand, IsNull)
        elif self.accept("DISTINCT", "FROM"):
            negated = not negated
            predicate = self.compare(operand, Operator.EQ_NULL_SAFE, self.operand(), start)
        elif (
            self.token.keyword in ("TRUE", "FALSE")
            and isinstance(operand, BoundColumn)
            and pa.types.is_boolean(value_type(operand))
        ):
            value = self.advance().keyword == "TRUE"
            predicate = Compare(operand, Operator.EQ_NULL_SAFE, truth_scalar(value))
        else:
            self.fail("NULL")
        return Not(predicate) if negated else predicate

    def between(self, operand: Operand, start: Token) -> Predicate:
        low = self.operand()
        self.expect("AND")
        high = self.operand()
        return conjunction(
            (
                self.compare(operand, Operator.GE, low, start),
                self.compare(operand, Operator.LE, high, start),
            )
        )

    def in_list(self, operand: Operand) -> Predicate:
        if self.token.kind == "list":
            return self.plain_list(operand, self.advance())
        self.expect("(")
        if self.token.keyword == ")":
            raise PredicateInvalid(
                f"An empty IN list at {self.at(self.token)}.",
                remedy="List at least one value.",
            )
        literals = []
        while True:
            token = self.token
            item = self.operand()
            if isinstance(item, BoundColumn):
                raise self.unsupported("A column in an IN list", token, "List literals only.")
            literals.append(item)
            if len(literals) > self.max_in_values:
                raise self.too_many_values(token)
            if not self.accept(","):
                break
        self.expect(")")
        return self.on_column(operand, lambda column: in_list(column, literals, self.zone))

    def plain_list(self, operand: Operand, token: Token) -> Predicate:
        texts = listed_texts(token)
        if len(texts) > self.max_in_values:
            raise self.too_many_values(listed_token(token, self.max_in_values))

        def bound(column: BoundColumn) -> Predicate:
            predicate = in_plain_list(column, texts)
            if predicate is not None:
                return predicate
            return in_list(column, list(map(_plain_literal, texts)), self.zone)

        return self.on_column(operand, bound)

    def too_many_values(self, token: Token) -> PredicateUnsupported:
        return self.unsupported(
            f"More than {self.max_in_values:,} values in an IN list",
            token,
            "Raise the setting read.max_in_values, or join with a table of values.",
        )

    def like(self, operand: Operand, start: Token) -> Predicate:
        column = self.string_column(operand, start, "LIKE")
        pattern = self.pattern("LIKE")
        escape = "\\"
        if self.accept("ESCAPE"):
            token = self.advance()
            escape = string_value(token) if token.kind in ("string", "raw") else ""
            if len(escape.encode("utf-16-le")) != 2:
                raise PredicateInvalid(
                    f"ESCAPE takes a string of one character, not {shortened(token.text)!r} at "
                    f"{self.at(token)}.",
                    remedy="Write ESCAPE '!', for example.",
                )
        if pattern is None:
            return Constant(None)
        return Like(column, pattern, escape, parse_like(pattern, escape))

    def rlike(self, operand: Operand, start: Token) -> Predicate:
        column = self.string_column(operand, start, "RLIKE")
        token = self.token
        pattern = self.pattern("RLIKE")
        if pattern is None:
            return Constant(None)
        try:
            return RLike(column, pattern, parse_regex(pattern))
        except RegexUnsupported as error:
            raise self.unsupported(
                f"A regular expression with {error}",
                token,
                "Use characters, classes, groups, alternatives, ^, $ and simple quantifiers; "
                "LIKE; or run the query through Spark.",
            ) from error

    def string_column(self, operand: Operand, start: Token, operator: str) -> BoundColumn:
        if not isinstance(operand, BoundColumn) or not is_string(value_type(operand)):
            raise self.unsupported(
                f"{operator} on a value that is not a string column",
                start,
                f"Use {operator} on string columns only.",
            )
        return operand

    def pattern(self, operator: str) -> str | None:
        """A string literal; None for NULL."""
        token = self.token
        pattern = self.operand()
        if isinstance(pattern, BoundColumn) or not (
            pattern.is_null or pa.types.is_string(pattern.value.type)
        ):
            raise self.unsupported(
                f"A {operator} pattern that is not a string literal", token, "Quote the pattern."
            )
        return None if pattern.is_null else str(pattern.value.as_py())


def _plain_literal(text: str) -> Literal:
    value = text_scalar(text[1:-1]) if text.startswith("'") else number_literal(text)
    return Literal(value, shortened(text))
