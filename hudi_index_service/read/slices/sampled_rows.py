"""Samples a predicate's candidates from all over a base file without looking up all of them. If the
pages of the sample cost more than a scan, so do the pages of all candidates."""

from collections.abc import Sequence

from pyroaring import BitMap

from hudi_index_service.optimizer.cost.constants import FEWEST_STEPS
from hudi_index_service.optimizer.grouping import grouped
from hudi_index_service.predicate.expression import And, Or, Predicate, Together
from hudi_index_service.read.slices.entry_lookups import EntryLookups


def spread_rows(rows: BitMap, total: int) -> BitMap:
    """A sample of `rows` from all over a file of `total` rows."""
    return rows & BitMap(range(0, total, max(1, total // FEWEST_STEPS)))


def sampled_rows(predicate: Predicate, samples: EntryLookups) -> BitMap:
    """Some candidates for a predicate in negation normal form; none if a sample is not far cheaper
    than all."""
    return _sampled(grouped(predicate, samples.entries.plan.entries), samples)


def _sampled(predicate: Predicate, samples: EntryLookups) -> BitMap:
    match predicate:
        case Or(operands):
            return BitMap.union(*(_sampled(each, samples) for each in operands))
        case And(operands) if not isinstance(predicate, Together):
            return _of_all(operands, samples)
    if not samples.entries.answered(predicate):
        return BitMap()
    return samples.entries.sample(predicate, FEWEST_STEPS)


def _of_all(operands: Sequence[Predicate], samples: EntryLookups) -> BitMap:
    """A sample of one conjunct, narrowed by the others. Conjuncts with a look-up must be able to
    check single rows, since samples of two conjuncts say nothing about their intersection."""
    with_lookup = [each for each in operands if _is_answered(each, samples)]
    for first in with_lookup:
        rows = _sampled(first, samples)
        for other in with_lookup:
            if rows and other is not first:
                rows = samples.narrowed(other, rows).possible or BitMap()
        if rows:
            for other in operands:
                if other not in with_lookup:
                    rows = samples.rows(other).within(rows).possible or BitMap()
            return rows
    return BitMap()


def _is_answered(operand: Predicate, samples: EntryLookups) -> bool:
    return any(map(samples.entries.answered, (operand, *operand.leaves())))
