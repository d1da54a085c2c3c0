"""Functions that are conditions: array_contains, and full-text search."""

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo

import pyarrow as pa

from hudi_index_service.errors import PredicateInvalid, Remedy
from hudi_index_service.predicate.coerce import array_contains
from hudi_index_service.predicate.comparison import is_string, value_type
from hudi_index_service.predicate.expression import (
    AnalyzedText,
    BoundColumn,
    Constant,
    Match,
    MatchMode,
    Predicate,
)
from hudi_index_service.predicate.text.lex import Token
from hudi_index_service.predicate.text.operands import Operand, OperandParser
from hudi_index_service.wording import shortened

Texts = Callable[[], Mapping[str, Sequence[AnalyzedText]]]
"""Returns the analyzed texts by column: exactly one if full text can be searched, else none or
several."""

_MODES = {mode.value.upper(): mode for mode in MatchMode}
_DEFAULT_EDITS = 1
_MOST_EDITS = 2
_MOST_CHARACTERS = 1000  # keeps a query's words below Lucene's limit
_LONGEST_WORD = 100


def no_texts() -> Mapping[str, Sequence[AnalyzedText]]:
    """No column can be searched."""
    return {}


class FunctionParser(OperandParser):
    """Parses functions in place of operands and conditions."""

    def __init__(self, where: str, schema: pa.Schema, zone: tzinfo, texts: Texts) -> None:
        super().__init__(where, schema, zone)
        self.texts = texts

    def named(self) -> Operand | Predicate:
        if self.next_token.keyword == "(":
            if self.token.keyword == "ARRAY_CONTAINS":
                return self.array_contains()
            if self.token.keyword in _MODES:
                return self.match()
        return super().named()

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
