"""Where record keys lie: the keys that are asked for, and the answer for each of them."""

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.optimizer.plan import QueryPlan, SlicePlan
from hudi_index_service.read.key_locator import LOCATIONS, KeyLocator
from hudi_index_service.read.planner import QueryPlanner
from hudi_index_service.read.reader_pool import ReaderPool
from hudi_index_service.read.record_keys import record_keys
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics
from hudi_index_service.read.whole_snapshot import on_a_whole_snapshot
from hudi_index_service.table.properties import read_properties
from hudi_index_service.table.protocol import HudiTable

log = logging.getLogger(__name__)

KEY, PARTITION = "record_key", "partition"
KEY_NAMES = {KEY: KEY, "_hoodie_record_key": KEY}
PARTITION_NAMES = {PARTITION: PARTITION, "_hoodie_partition_path": PARTITION}

ANSWER = pa.schema([field for field in LOCATIONS if field.name != "deleted"])
"""The answer's columns. A key without `file_id` is absent; a location without `row_id` is in log
files alone."""

Keys: TypeAlias = Sequence[str] | Sequence[tuple[str, str]] | pa.Table
"""Record keys; or (partition, record key) pairs; or a table with columns ``record_key`` and, if
wanted, ``partition`` (or by Hudi's names)."""


@dataclass(frozen=True, slots=True)
class AskedKeys:
    """The keys as they were asked for. Make it by `of`.

    Attributes:
        table: Columns ``record_key`` and, if keys are looked for in one partition each,
            ``partition``, in the order asked.
    """

    table: pa.Table

    @classmethod
    def of(cls, keys: Keys) -> "AskedKeys":
        """Raises ConfigInvalid: these are no keys."""
        if isinstance(keys, str):
            raise _no_keys("One text is no list of keys.")
        if not isinstance(keys, pa.Table):
            keys = _table_of(list(keys))
        named = {PARTITION: named_column(keys.column_names, PARTITION_NAMES)}
        named[KEY] = named_column(keys.column_names, KEY_NAMES)
        if named[KEY] is None:
            raise _no_keys(f"The table has no column {KEY}.")
        columns = {name: _text(keys.column(found)) for name, found in named.items() if found}
        return cls(pa.table(columns))

    @property
    def partitioned(self) -> bool:
        """Whether each key is looked for in its own partition only."""
        return PARTITION in self.table.column_names

    def by_partition(self) -> "Callable[[str], pa.StringArray]":
        """Tells the distinct keys that are looked for in a partition."""
        if not self.partitioned:
            everywhere = distinct(self.table.column(KEY))
            return lambda partition: everywhere
        codes = self.table.column(PARTITION).combine_chunks().dictionary_encode()
        order = pc.sort_indices(codes.indices)
        keys, sorted_codes = self.table.column(KEY).take(order), codes.indices.take(order)
        runs = pc.run_end_encode(sorted_codes)
        starts = [0, *runs.run_ends.to_pylist()]
        within = {
            codes.dictionary[code].as_py(): distinct(keys.slice(start, end - start))
            for code, start, end in zip(
                runs.values.to_pylist(), starts[:-1], starts[1:], strict=True
            )
            if code is not None
        }
        nothing = pa.array([], pa.string())
        return lambda partition: within.get(partition, nothing)

    def answered(self, found: pa.Table) -> pa.Table:
        """The answer (`ANSWER`): a row for each key asked, in that order, or several where the key
        is in several places.

        Args:
            found: What was located of them (`LOCATIONS`).
        """
        found = living(found) if not self.partitioned else found
        on = [KEY, PARTITION] if self.partitioned else [KEY]
        asked = self.table.append_column("asked", pa.array(range(self.table.num_rows), pa.int64()))
        joined = asked.join(found.drop_columns(["deleted"]), on, join_type="left outer")
        order = [("asked", "ascending"), (PARTITION, "ascending"), ("file_id", "ascending")]
        return joined.sort_by([*order, ("row_id", "ascending")]).select(ANSWER.names).cast(ANSWER)


class KeySearch:
    """Searches the present snapshot of one table for record keys."""

    def __init__(
        self, table: HudiTable, planner: QueryPlanner, pool: ReaderPool, settings: Settings
    ) -> None:
        self._table = table
        self._planner = planner
        self._pool = pool
        self._settings = settings

    def answer(self, asked: AskedKeys, statistics: ReadStatistics | None = None) -> pa.Table:
        """The answer (`ANSWER`), found by threads of this process.

        Args:
            statistics: Takes what is read of each slice.

        Raises:
            TableFeatureUnsupported: the table, or its virtual keys, cannot be read right here.
            SnapshotChanged: files were cleaned during the search, twice.
        """

        def found() -> pa.Table:
            plan = self.plan()
            return locate(self.locator(plan), plan, asked, statistics)

        return asked.answered(on_a_whole_snapshot(found))

    def plan(self) -> QueryPlan:
        """See `QueryPlanner.base_file_entries`."""
        return self._planner.base_file_entries()

    def locator(self, plan: QueryPlan) -> KeyLocator:
        """Finds keys in the plan's slices. Raises TableFeatureUnsupported: see `record_keys`."""
        snapshot, table = plan.snapshot, self._table
        keys = record_keys(
            snapshot.schema,
            table.record_key_columns(),
            lambda: read_properties(table.storage),
        )
        return KeyLocator(
            table, keys, snapshot.schema, snapshot.instant, self._pool, self._settings
        )


def locate(
    locator: KeyLocator,
    plan: QueryPlan,
    asked: AskedKeys,
    statistics: ReadStatistics | None = None,
) -> pa.Table:
    """What is found (`LOCATIONS`) of the keys in the slices of a plan, several read at once.

    Args:
        statistics: Takes what is read of each slice.
    """
    statistics = statistics if statistics is not None else ReadStatistics()
    keys = asked.by_partition()
    find_deleted = finds_deleted(plan, asked.partitioned)
    jobs: list[tuple[SlicePlan, pa.StringArray, SliceStatistics]] = []
    for each in plan.slices:
        wanted = keys(each.file_slice.partition)
        if len(wanted):
            jobs.append((each, wanted, SliceStatistics(each.file_slice.name, each.access)))
    statistics.slices.extend(of_slice for _, _, of_slice in jobs)

    def work(job: tuple[SlicePlan, pa.StringArray, SliceStatistics]) -> pa.Table:
        return locator.locate(*job, find_deleted=find_deleted)

    with ThreadPoolExecutor(locator.settings.read.parallelism, "index-locate") as pool:
        found = list(pool.map(work, jobs))
    log.info("%d keys looked for in %d slices.", asked.table.num_rows, len(jobs))
    return pa.concat_tables([LOCATIONS.empty_table(), *found])


def finds_deleted(plan: QueryPlan, partitioned: bool) -> bool:
    """Whether a key may be found in several places, of which those that are deleted do not count:
    where it is looked for in several partitions, since an update can have moved it."""
    return not partitioned and len({each.file_slice.partition for each in plan.slices}) > 1


def living(found: pa.Table) -> pa.Table:
    """The locations without rows that log files delete, as far as their keys are elsewhere."""
    deleted = found.column("deleted").fill_null(False)
    elsewhere = pc.is_in(
        found.column(KEY), value_set=found.column(KEY).filter(pc.invert(deleted)).combine_chunks()
    )
    return found.filter(pc.invert(pc.and_(deleted, elsewhere)))


def named_column(columns: Iterable[str], names: dict[str, str]) -> str | None:
    """The first of the columns that has one of the names."""
    return next((column for column in columns if column in names), None)


def distinct(keys: pa.ChunkedArray) -> pa.StringArray:
    """The distinct keys; NULL is none."""
    return pc.unique(keys).drop_null()


def _table_of(keys: list[Any]) -> pa.Table:
    try:
        if keys and all(isinstance(key, tuple) for key in keys):
            pairs = [(partition, key) for partition, key in keys]
            columns = [pa.array(column, pa.string()) for column in zip(*pairs, strict=True)]
            return pa.table(columns, names=[PARTITION, KEY])
        return pa.table({KEY: pa.array(keys, pa.string())})
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as error:
        raise _no_keys(f"What is asked for are no keys: {error}.") from error


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise _no_keys(f"Keys and partitions are text, not {column.type}.")
    return column.cast(pa.string())


def _no_keys(message: str) -> ConfigInvalid:
    return ConfigInvalid(
        message,
        remedy="Give record keys as Hudi prints them, (partition, key) pairs, or a table of both.",
    )
