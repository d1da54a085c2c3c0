"""What a call of a full-text condition asks for, as it stands in an analyzed plan."""

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError

from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported
from hudi_index_service.predicate.expression import MatchMode
from hudi_index_service.sql.select.scala import elements

_STRING, _NULL = "string", "void"


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of a call.

    Attributes:
        text_column: The expression that is searched.
        text: What is searched for; None for NULL.
        edits: How far a word may be away, as written; None where that is not said.
    """

    text_column: Any
    text: str | None
    edits: str | None

    @classmethod
    def of(cls, name: str, call: Any) -> "Asked":
        """Reads a call.

        Raises:
            PredicateInvalid: it has too few or too many arguments.
            PredicateUnsupported: what is searched for is no text that is known beforehand.
        """
        arguments = list(elements(call.children()))
        most = 3 if MatchMode(name) is MatchMode.FUZZY else 2
        if not 2 <= len(arguments) <= most:
            edits = ", and how many edits a word may be away" if most > 2 else ""
            raise PredicateInvalid(
                f"{name} was called with {len(arguments)} arguments.",
                remedy=f"It takes a column and the text to search for{edits}.",
            )
        column, text, *edits_given = arguments
        kind = str(text.dataType().catalogString())
        known = _constant(text) if kind in (_STRING, _NULL) else None
        if known is None:
            raise PredicateUnsupported(
                f"{name} of {text.sql()}, which is no text, or not known before the query runs.",
                remedy="Quote the text, or pass it as a parameter of the query.",
            )
        edits_known = [_constant(each) for each in edits_given]
        return cls(column, known[0], _edits(name, edits_known))


def _edits(name: str, known: "list[tuple[str | None] | None]") -> str | None:
    if not known:
        return None
    if known[0] is None or known[0][0] is None:
        raise PredicateUnsupported(
            f"{name} with a number of edits that is not known before the query runs.",
            remedy="Write the number.",
        )
    return known[0][0]


def _constant(expression: Any) -> tuple[str | None] | None:
    """The value of a constant as text, None for NULL; None if it is none."""
    if not expression.foldable():
        return None
    try:
        value = expression.eval(None)
    except Py4JJavaError:  # the optimizer would have put something else in its place
        return None
    if value is None:
        return (None,)
    return (str(value.toString()) if hasattr(value, "toString") else str(value),)
