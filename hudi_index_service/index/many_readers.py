"""Asks many open entries by one call. A call to an index takes longer than most look-ups in it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from hudi_index_service.predicate.expression import Predicate

Positions: TypeAlias = npt.NDArray[np.int32]
"""Positions of entries among those that are asked together."""

Truths: TypeAlias = npt.NDArray[np.bool_]


class ManyReaders(ABC):
    """Open entries of one index type, whose columns have equal layouts. Made by
    `IndexType.together`. Safe to use from several threads.

    A *leaf* here is one for which `IndexType.answer` is not NONE, or an `And` of leaves on one
    column.
    """

    @abstractmethod
    def few_rows(self, leaf: Predicate, most: int) -> Sequence[BitMap | None] | None:
        """The rows of `IndexReader.row_ids` in each entry; None for entries with more than `most`,
        or that cannot be asked in this way. None for all if the leaf has to be looked up one by
        one.

        Raises:
            EntryInvalid, NativeModuleMissing: no entry can be asked in this way.
        """

    @abstractmethod
    def without_rows(self, leaf: Predicate, among: Positions) -> Truths | None:
        """For each of some entries, whether `IndexReader.row_ids` certainly finds no row. None if
        the leaf has to be looked up one by one.

        Raises:
            EntryInvalid, NativeModuleMissing: no entry can be asked in this way.
        """
