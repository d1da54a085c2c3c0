"""Compares the costs of index types, for tables that have several: of those that answer a condition
equally well, the cheapest is asked."""

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
    and 100 values far from each other, ranges, prefixes, and values that most rows have. HBase ran
    on the same machine without caching; over a network, a look-up takes one more round trip.
    """
    match kind:
        case "btree":
            asking = known.btree_lookup_ms, known.btree_listed_ms, known.btree_step_ms
            return TypeCosts(known.btree_open_ms, *asking)
        case "hbase":  # the inner part of its tree is a local one
            asking = known.hbase_lookup_ms, known.hbase_listed_ms, known.hbase_step_ms
            return TypeCosts(known.btree_open_ms, *asking)
    return TypeCosts(known.open_ms, known.lookup_ms, known.listed_ms, known.step_ms)


def answering_ms(kind: str, asked: Predicate, rows: float, known: Constants) -> float:
    """Milliseconds that an open entry of a type takes to answer a leaf or conjuncts with this many
    matching rows."""
    of_type = costs_of(kind, known)
    listed = _listed(asked) * of_type.listed_ms
    return of_type.lookup_ms + listed + rows * of_type.step_ms


def _listed(asked: Predicate) -> int:
    match asked:
        case In(_, values):
            return len(values)
        case Not(operand):
            return _listed(operand)
        case And(operands):
            return sum(map(_listed, operands))
    return 0
