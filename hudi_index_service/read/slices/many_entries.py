"""Looks up a leaf in many open entries by one call."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.index.contract import ManyReaders, Positions
from hudi_index_service.index.routed import Routed
from hudi_index_service.optimizer.cost.constants import FEW_ROWS
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.expression import In
from hudi_index_service.predicate.fold import Condition
from hudi_index_service.read.slices.reader_pool import OpenEntry, ReaderPool

log = logging.getLogger(__name__)

_MOST_ROWS = 65_536  # of one entry, with listed values

_Ask: TypeAlias = Callable[
    [ManyReaders, Positions, npt.NDArray[np.int64]], Sequence[BitMap | None] | None
]
"""Asks readers at some positions, given with the numbers of their entries among all."""


@dataclass(frozen=True, slots=True)
class RowsOfOpen:
    """The rows that one open entry has answered.

    Attributes:
        entry: The entry. It may be closed meanwhile.
        rows: Those of `IndexReader.row_ids`.
        ms: Its share of the milliseconds of the call.
    """

    entry: OpenEntry
    rows: BitMap
    ms: float


def few_rows(
    leaf: Condition, servings: Sequence[ServingEntry], pool: ReaderPool
) -> list[RowsOfOpen | None]:
    """The rows of a leaf in those entries that are open and have few. None for others, for those
    that have changed since, and for those that must be asked one by one.

    Args:
        servings: Entries of one index type and layout, which answer the leaf.
    """
    return _asked(servings, pool, lambda readers, at, _: readers.few_rows(leaf, at, FEW_ROWS))


def narrowed_rows(
    leaf: Condition, servings: Sequence[ServingEntry], rows: Sequence[BitMap], pool: ReaderPool
) -> list[RowsOfOpen | None]:
    """The same among a few rows of each entry, which answers the leaf exactly."""
    return _asked(
        servings,
        pool,
        lambda readers, at, numbers: readers.narrowed(leaf, at, [rows[n] for n in numbers]),
    )


def listed_rows(
    leaf: In, servings: Sequence[ServingEntry], values: Routed, pool: ReaderPool
) -> list[RowsOfOpen | None]:
    """The same for listed values, of each entry for those that its base file may hold.

    Args:
        values: For each entry, the positions in `leaf.values` of those values.
    """
    return _asked(
        servings,
        pool,
        lambda readers, at, numbers: readers.rows_of_values(
            leaf, at, values.of_files(numbers), _MOST_ROWS
        ),
    )


def _asked(
    servings: Sequence[ServingEntry], pool: ReaderPool, ask: _Ask
) -> list[RowsOfOpen | None]:
    started = perf_counter_ns()
    found: list[RowsOfOpen | None] = [None] * len(servings)
    with pool.held() as held:
        group = held.group(servings)
        if group is None:
            return found
        positions = np.array([group.position(each) for each in servings], dtype=np.int32)
        asked = np.flatnonzero(positions >= 0)
        positions = positions[asked]
        try:
            answers = ask(group.readers, positions, asked)
        except EntryUnusable as error:  # looking up each slice reports it
            log.info("%d entries are asked one by one: %s", len(asked), error)
            answers = None
        if answers is None:
            return found
        is_valid = group.are_as_opened(positions).tolist()
        ms = (perf_counter_ns() - started) / 1e6 / max(1, len(asked))
        for at, (number, rows) in enumerate(zip(asked.tolist(), answers, strict=True)):
            if rows is not None and is_valid[at]:
                entry = group.entries[positions[at]]
                entry.asked = True
                found[number] = RowsOfOpen(entry, rows, ms)
    return found
