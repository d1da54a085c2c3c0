"""Finds slices without matching rows by few calls for all of them: open entries are asked together
whether they have any row for one conjunct of the predicate.

A query on thousands of base files, of which few hold matching rows, would otherwise spend most of
its time on calls to the indexes of the others.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from hudi_index_service.index.contract import Answer
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.expression import And, Constant, Or, Predicate
from hudi_index_service.read.row_ids import joined
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_entries import INDEX_FAILURES

FEWEST_SLICES = 16
"""The number of slices below which each is asked by itself."""


def empty_slices(
    plans: Sequence[SlicePlan], predicate: Predicate | None, pool: ReaderPool
) -> frozenset[int]:
    """The positions of slices in which, by an open entry, no row makes the predicate TRUE. Slices
    without an open entry, or with a damaged one, are not among them.

    Args:
        predicate: In negation normal form.
    """
    remaining = [n for n, plan in enumerate(plans) if plan.access is Access.INDEX and plan.entries]
    empty: set[int] = set()
    for leaf in _conjuncts(predicate, plans, remaining):
        if len(remaining) < FEWEST_SLICES:
            break
        for positions, servings in _alike(leaf, plans, remaining):
            empty.update(
                position
                for position, is_empty in zip(positions, _empty(leaf, servings, pool), strict=True)
                if is_empty
            )
        remaining = [n for n in remaining if n not in empty]
    return frozenset(empty)


def _conjuncts(
    predicate: Predicate | None, plans: Sequence[SlicePlan], positions: Sequence[int]
) -> list[Predicate]:
    """The conjuncts that are looked up, grouped as the entries of the first slice answer them."""
    if predicate is None or not positions:
        return []
    entries = plans[positions[0]].entries
    operands = predicate.operands if isinstance(predicate, And) else (predicate,)
    leaves = [each for each in operands if not isinstance(each, And | Or | Constant)]
    return joined(
        leaves, lambda some: any(each.answer(some) is not Answer.NONE for each in entries)
    )


def _alike(
    leaf: Predicate, plans: Sequence[SlicePlan], positions: Sequence[int]
) -> Iterator[tuple[list[int], list[ServingEntry]]]:
    """Slices with the first entry that answers the leaf, grouped by entries of one layout."""
    answers: dict[tuple[str, int], bool] = {}
    groups: defaultdict[tuple[str, int], tuple[list[int], list[ServingEntry]]]
    groups = defaultdict(lambda: ([], []))
    columns = leaf.columns()
    for position in positions:
        plan = plans[position]
        if not columns.isdisjoint(plan.values):
            continue  # the partition's path has the column's value, not the base file
        for serving in plan.entries:
            key = serving.index_type.name, serving.layout
            if key not in answers:
                answers[key] = serving.answer(leaf) is not Answer.NONE
            if answers[key]:
                groups[key][0].append(position)
                groups[key][1].append(serving)
                break
    for group in groups.values():
        if len(group[0]) >= FEWEST_SLICES:
            yield group


def _empty(leaf: Predicate, servings: Sequence[ServingEntry], pool: ReaderPool) -> list[bool]:
    """For each entry, whether it is open and has no row for the leaf."""
    with pool.lease_open(servings) as entries:
        known = [each for each in entries if each is not None]
        if len(known) < FEWEST_SLICES:
            return [False] * len(entries)
        try:
            may_match = servings[0].index_type.may_match(leaf, [each.reader for each in known])
        except INDEX_FAILURES:  # looking up each slice reports it
            may_match = None
        if may_match is None:
            return [False] * len(entries)
        answers = iter(may_match)
        # An answer of a file that has changed since it was opened does not count.
        return [
            each is not None and not next(answers) and not each.file.has_changed()
            for each in entries
        ]
