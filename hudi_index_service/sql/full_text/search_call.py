"""The arguments of a full-text condition's call in an analyzed plan."""

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError

from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported
from hudi_index_service.predicate.expression import MatchMode
from hudi_index_service.sql.catalyst.scala import elements

_STRING, _NULL = "string", "void"


@dataclass(frozen=True, slots=True)
class SearchCall:
    """The arguments of a call.

    Attributes:
        text_column: The expression to search.
        text: The search text; None for NULL.
        edits: Maximum edit distance of a word, as written; None if not given.
    """

    text_column: Any
    text: str | None
    edits: str | None

    @classmethod
    def of(cls, name: str, call: Any) -> "SearchCall":
        """Reads a call.

        Raises:
            PredicateInvalid: it has too few or too many arguments.
            PredicateUnsupported: the search text is not a constant text.
        """
        arguments = list(elements(call.children()))
        most = 3 if MatchMode(name) is MatchMode.FUZZY else 2
        if not 2 <= len(arguments) <= most:
            edits = ", and the maximum number of edits of a word" if most > 2 else ""
            raise PredicateInvalid(
                f"{name} was called with {len(arguments)} arguments.",
                remedy=f"Give it a column and the text to search for{edits}.",
            )
        column, text, *edits_expressions = arguments
        kind = str(text.dataType().catalogString())
        constant = _constant(text) if kind in (_STRING, _NULL) else None
        if constant is None:
            raise PredicateUnsupported(
                f"{name} cannot search for {text.sql()}, which is no text or not known before the "
                "query runs.",
                remedy="Quote the text, or pass it as a parameter of the query.",
            )
        edits_constants = [_constant(each) for each in edits_expressions]
        return cls(column, constant[0], _edits(name, edits_constants))


def _edits(name: str, constants: "list[tuple[str | None] | None]") -> str | None:
    if not constants:
        return None
    if constants[0] is None or constants[0][0] is None:
        raise PredicateUnsupported(
            f"{name} takes a number of edits that is known before the query runs.",
            remedy="Write the number.",
        )
    return constants[0][0]


def _constant(expression: Any) -> tuple[str | None] | None:
    """A tuple with the value of a constant as text, or with None for NULL; None if the expression
    is not a constant."""
    if not expression.foldable():
        return None
    try:
        value = expression.eval(None)
    except Py4JJavaError:  # the optimizer would have replaced it
        return None
    if value is None:
        return (None,)
    return (str(value.toString()) if hasattr(value, "toString") else str(value),)
