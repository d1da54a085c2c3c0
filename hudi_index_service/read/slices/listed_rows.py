"""The rows with listed values in many open entries, of each those that its base file may hold."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter_ns

import numpy as np
from pyroaring import BitMap

from hudi_index_service.errors import EntryUnusable
from hudi_index_service.index.routed import Routed
from hudi_index_service.optimizer.serving import ServingEntry
from hudi_index_service.predicate.expression import In
from hudi_index_service.read.slices.reader_pool import OpenEntry, ReaderPool

log = logging.getLogger(__name__)

_MOST_ROWS = 65_536  # of one entry


@dataclass(frozen=True, slots=True)
class ListedRows:
    """The rows that one entry has answered.

    Attributes:
        entry: The entry. It may be closed meanwhile.
        rows: Those of `IndexReader.row_ids`.
        ms: Its share of the milliseconds of the call.
    """

    entry: OpenEntry
    rows: BitMap
    ms: float


def listed_rows(
    leaf: In, servings: Sequence[ServingEntry], values: Routed, pool: ReaderPool
) -> list[ListedRows | None]:
    """Asks those entries that are open by one call. None for those that are not, that have changed
    since, or that must be asked one by one.

    Args:
        servings: Entries of one index type and layout, which answer the leaf.
        values: For each entry, the positions in `leaf.values` of those that its base file may hold.
    """
    started = perf_counter_ns()
    found: list[ListedRows | None] = [None] * len(servings)
    with pool.held() as held:
        group = held.group(servings)
        if group is None:
            return found
        positions = np.array([group.position(each) for each in servings], dtype=np.int32)
        asked = np.flatnonzero(positions >= 0)
        positions = positions[asked]
        try:
            answers = group.readers.rows_of_values(
                leaf, positions, values.of_files(asked), _MOST_ROWS
            )
        except EntryUnusable as error:  # looking up each slice reports it
            log.info("%d entries are asked one by one: %s", len(asked), error)
            answers = None
        if answers is None:
            return found
        is_valid = group.are_as_opened(positions).tolist()
        ms = (perf_counter_ns() - started) / 1e6 / max(1, len(asked))
        for at, (number, rows) in enumerate(zip(asked.tolist(), answers, strict=True)):
            if rows is not None and is_valid[at]:
                found[number] = ListedRows(group.entries[positions[at]], rows, ms)
    return found
