"""Some of a predicate's candidates, from all over a base file, without looking all of them up:
where the pages that hold these cost more than a scan, those that hold all do, too."""

from typing import Protocol

from pyroaring import BitMap

from hudi_index_service.optimizer.cost.constants import FEWEST_STEPS
from hudi_index_service.predicate.expression import And, Constant, Match, Not, Or, Predicate, RLike
from hudi_index_service.read.row_ids import Lookups, joined


def is_soon_checked(predicate: Predicate) -> bool:
    """Whether to check a row takes no longer than to read it: not so for full text, which is
    analysed, and expressions."""
    leaves = (leaf.operand if isinstance(leaf, Not) else leaf for leaf in predicate.leaves())
    return not any(isinstance(leaf, Match | RLike) for leaf in leaves)


def spread_rows(rows: BitMap, total: int) -> BitMap:
    """Some of so many rows, from all over the file."""
    return rows & BitMap(range(0, total, max(1, total // FEWEST_STEPS)))


class Samples(Lookups, Protocol):
    """Look-ups that also know some of the rows."""

    def answered(self, leaf: Predicate) -> bool:
        """Whether there is a look-up for a leaf, or for conjuncts."""

    def sample(self, asked: Predicate, most: int) -> BitMap:
        """Some of the candidates, at most so many; none where they cannot be had for little."""


def sampled_rows(predicate: Predicate, samples: Samples) -> BitMap:
    """Rows that are candidates for a predicate in negation normal form; none where some cannot be
    had for far less than all."""
    match predicate:
        case Constant():
            return BitMap()
        case And(operands) if not samples.answered(predicate):
            return _of_all(joined(operands, samples), samples)
        case Or(operands):
            return BitMap.union(*(sampled_rows(each, samples) for each in operands))
    return samples.sample(predicate, FEWEST_STEPS) if samples.answered(predicate) else BitMap()


def _of_all(operands: list[Predicate], samples: Samples) -> BitMap:
    """A sample of one conjunct, of which the others take their part: those that are looked up must
    be able to look at each row, since of what two have in common a sample of each tells nothing."""
    asked = [each for each in operands if _is_answered(each, samples)]
    for first in asked:
        rows = sampled_rows(first, samples)
        for other in asked:
            if rows and other is not first:
                rows = samples.narrowed(other, rows).rows or BitMap()
        if rows:
            return _within_pages(rows, [each for each in operands if each not in asked], samples)
    return BitMap()


def _within_pages(rows: BitMap, others: list[Predicate], samples: Samples) -> BitMap:
    for other in others:
        left = samples.rows(other, None).rows
        rows = rows if left is None else rows & left
    return rows


def _is_answered(operand: Predicate, samples: Samples) -> bool:
    return samples.answered(operand) or any(map(samples.answered, operand.leaves()))
