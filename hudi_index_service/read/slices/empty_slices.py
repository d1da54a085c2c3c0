"""In which of many slices a predicate is TRUE for no row, by what is known of its leaves."""

from collections.abc import Callable, Iterable

import numpy as np

from hudi_index_service.index.contract import Truths
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.predicate.fold import Condition, fold

_Empty = Callable[[Truths], Truths]


def slices_without_rows(
    predicate: Predicate,
    among: Truths,
    of_leaf: Callable[[Condition, Truths], Truths],
    *,
    every_arm: bool = False,
) -> Truths:
    """For each slice, whether it is one of these and no row of it makes the predicate TRUE.

    Conjuncts are looked up only in slices that those before them leave; arms of an OR only in those
    where no arm before them has rows.

    Args:
        predicate: In negation normal form.
        of_leaf: Returns the same for a leaf, or for conjuncts looked up together.
        every_arm: Whether each arm of an OR is looked up, since its rows are of use later.
    """

    def all_of(parts: Iterable[_Empty]) -> _Empty:
        conjuncts = list(parts)

        def without(among: Truths) -> Truths:
            is_empty = np.zeros_like(among)
            for each in conjuncts:
                is_empty |= each(among & ~is_empty)
            return is_empty

        return without

    def any_of(parts: Iterable[_Empty]) -> _Empty:
        arms = list(parts)

        def without(among: Truths) -> Truths:
            left = among
            for each in arms:
                left = left & each(among if every_arm else left)
            return left

        return without

    def empty(leaf: Condition) -> _Empty:
        return lambda some: of_leaf(leaf, some)

    return fold(predicate, empty, all_of, any_of, together=True)(among)
