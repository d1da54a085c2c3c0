"""Compares the costs of index types, for tables that have several: of those that answer a condition
equally well, the cheapest is used."""

from hudi_index_service.index.contract import IndexType, TypeCosts
from hudi_index_service.optimizer.cost.constants import Constants
from hudi_index_service.predicate.expression import And, In, Not, Predicate


def costs_of(kind: IndexType, known: Constants) -> TypeCosts:
    """The costs of an index type: its own, or those that this machine was calibrated for; types
    without either get those of Lucene.

    The shipped constants were measured on a base file of a million rows, warm: points, lists of 10
    and 100 scattered values, ranges, prefixes, and values that most rows have.
    """
    if kind.costs is not None:
        return kind.costs
    if kind.name == "btree":
        costs = known.btree_lookup_ms, known.btree_listed_ms, known.btree_step_ms
        return TypeCosts(known.btree_open_ms, *costs)
    return TypeCosts(known.open_ms, known.lookup_ms, known.listed_ms, known.step_ms)


def answering_ms(kind: IndexType, predicate: Predicate, rows: float, constants: Constants) -> float:
    """Milliseconds that an open entry of a type takes to answer a leaf or conjuncts with this many
    matching rows."""
    costs = costs_of(kind, constants)
    listed_ms = _listed_values(predicate) * costs.listed_ms
    return costs.lookup_ms + listed_ms + rows * costs.step_ms


def _listed_values(predicate: Predicate) -> int:
    match predicate:
        case In(_, values):
            return len(values)
        case Not(operand):
            return _listed_values(operand)
        case And(operands):
            return sum(map(_listed_values, operands))
    return 0
