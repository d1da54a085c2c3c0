"""What index types take next to each other, for tables that have several: of those that answer a
condition equally well, the one that takes least is asked."""

from dataclasses import dataclass

from hudi_index_service.optimizer.cost.constants import Constants
from hudi_index_service.predicate.expression import And, In, Not, Predicate


@dataclass(frozen=True, slots=True)
class TypeCosts:
    """As multiples of the `Constants`, which are Lucene's.

    Attributes:
        opening: Of `open_ms`.
        lookup: Of `lookup_ms`, for a condition.
        listed: Of `lookup_ms`, for each value of a list.
        step: Of `step_ms`.
    """

    opening: float = 1.0
    lookup: float = 1.0
    listed: float = 0.25
    step: float = 1.0


_LUCENE = TypeCosts()

_COSTS = {"lucene": _LUCENE, "btree": TypeCosts(0.35, 0.5, 1.0, 0.7)}
# Measured on a base file of a million rows, warm: points, lists of 10 and 100 values that are far
# from each other, ranges, beginnings of texts, and what most rows have.


def costs_of(kind: str) -> TypeCosts:
    """Of an index type, by its name; those that nobody measured count like Lucene."""
    return _COSTS.get(kind, _LUCENE)


def answering_ms(kind: str, asked: Predicate, rows: float, known: Constants) -> float:
    """What an open entry of a type takes to answer a leaf, or conjuncts, which so many rows make
    TRUE."""
    of_type = costs_of(kind)
    lookup = of_type.lookup + of_type.listed * _listed(asked)
    return lookup * known.lookup_ms + rows * of_type.step * known.step_ms


def _listed(asked: Predicate) -> int:
    match asked:
        case In(_, values):
            return len(values)
        case Not(operand):
            return _listed(operand)
        case And(operands):
            return sum(map(_listed, operands))
    return 0
