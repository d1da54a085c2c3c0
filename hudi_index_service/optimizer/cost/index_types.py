"""Compares the costs of index types, for tables that have several: of those that answer a condition
equally well, the cheapest is used."""

from typing import NamedTuple

from hudi_index_service.optimizer.cost.constants import Constants
from hudi_index_service.predicate.expression import And, In, Not, Predicate


class TypeCosts(NamedTuple):
    """The `Constants` of one index type, in milliseconds.

    Attributes:
        open_ms: Cost of opening an entry.
        lookup_ms: Cost per condition.
        listed_ms: Cost per value of a list.
        step_ms: Cost per row.
    """

    open_ms: float
    lookup_ms: float
    listed_ms: float
    step_ms: float


def costs_of(kind: str, known: Constants) -> TypeCosts:
    """The costs of an index type, by name; types without measurements get those of Lucene.

    The shipped constants were measured on a base file of a million rows, warm: points, lists of 10
    and 100 scattered values, ranges, prefixes, and values that most rows have. HBase ran
    on the same machine without caching; over a network, a look-up takes one more round trip.
    """
    match kind:
        case "btree":
            costs = known.btree_lookup_ms, known.btree_listed_ms, known.btree_step_ms
            return TypeCosts(known.btree_open_ms, *costs)
        case "hbase":  # the inner part of its tree is a local one
            costs = known.hbase_lookup_ms, known.hbase_listed_ms, known.hbase_step_ms
            return TypeCosts(known.btree_open_ms, *costs)
    return TypeCosts(known.open_ms, known.lookup_ms, known.listed_ms, known.step_ms)


def answering_ms(kind: str, predicate: Predicate, rows: float, constants: Constants) -> float:
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
