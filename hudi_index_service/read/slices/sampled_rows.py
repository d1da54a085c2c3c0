"""Samples a predicate's candidates from all over a base file without looking up all of them. If the
pages of the sample cost more than a scan, so do the pages of all candidates."""

from typing import Protocol

from pyroaring import BitMap

from hudi_index_service.optimizer.cost.constants import FEWEST_STEPS
from hudi_index_service.predicate.expression import And, Constant, Or, Predicate
from hudi_index_service.read.row_ids import Lookups, joined


def spread_rows(rows: BitMap, total: int) -> BitMap:
    """A sample of `rows` from all over a file of `total` rows."""
    return rows & BitMap(range(0, total, max(1, total // FEWEST_STEPS)))


class Samples(Lookups, Protocol):
    """Look-ups that can also sample rows."""

    def answered(self, leaf: Predicate) -> bool:
        """Whether there is a look-up for a leaf, or for conjuncts."""

    def sample(self, predicate: Predicate, most: int) -> BitMap:
        """At most `most` of the candidates; none if sampling is not cheap."""


def sampled_rows(predicate: Predicate, samples: Samples) -> BitMap:
    """Some candidates for a predicate in negation normal form; none if a sample is not far cheaper
    than all."""
    match predicate:
        case Constant():
            return BitMap()
        case And(operands) if not samples.answered(predicate):
            return _of_all(joined(operands, samples.answers, samples.keys), samples)
        case Or(operands):
            return BitMap.union(*(sampled_rows(each, samples) for each in operands))
    return samples.sample(predicate, FEWEST_STEPS) if samples.answered(predicate) else BitMap()


def _of_all(operands: list[Predicate], samples: Samples) -> BitMap:
    """A sample of one conjunct, narrowed by the others. Conjuncts with a look-up must be able to
    check single rows, since samples of two conjuncts say nothing about their intersection."""
    with_lookup = [each for each in operands if _is_answered(each, samples)]
    for first in with_lookup:
        rows = sampled_rows(first, samples)
        for other in with_lookup:
            if rows and other is not first:
                rows = samples.narrowed(other, rows).rows or BitMap()
        if rows:
            return _within_pages(
                rows, [each for each in operands if each not in with_lookup], samples
            )
    return BitMap()


def _within_pages(rows: BitMap, others: list[Predicate], samples: Samples) -> BitMap:
    for other in others:
        candidates = samples.rows(other, None).rows
        rows = rows if candidates is None else rows & candidates
    return rows


def _is_answered(operand: Predicate, samples: Samples) -> bool:
    return samples.answered(operand) or any(map(samples.answered, operand.leaves()))
