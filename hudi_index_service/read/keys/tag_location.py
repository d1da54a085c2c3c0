"""Finds the locations of record keys: the requested keys, and the answer for each of them."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import as_numbers, integer_scalar, numbers_array, texts_array
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hudi.properties import read_properties
from hudi_index_service.hudi.snapshot import Snapshot
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.routed import Routed
from hudi_index_service.optimizer.plan import QueryPlan, SlicePlan
from hudi_index_service.read.base_file.record_keys import RecordKeys, record_keys
from hudi_index_service.read.keys.key_locator import KeyLocator
from hudi_index_service.read.keys.key_routes import KeyValues, RoutedKeys, routed_keys
from hudi_index_service.read.keys.keys_together import KeysTogether, SoughtKeys
from hudi_index_service.read.keys.rows_of_slices import LOCATIONS
from hudi_index_service.read.parallel import mapped
from hudi_index_service.read.planner import BaseFiles, QueryPlanner
from hudi_index_service.read.query import Query
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_reader import SliceReader
from hudi_index_service.read.statistics import ReadStatistics, SliceStatistics
from hudi_index_service.read.whole_snapshot import on_a_whole_snapshot

log = logging.getLogger(__name__)

KEY, PARTITION = "record_key", "partition"
KEY_NAMES = {KEY: KEY, "_hoodie_record_key": KEY}
PARTITION_NAMES = {PARTITION: PARTITION, "_hoodie_partition_path": PARTITION}

ANSWER = pa.schema([field for field in LOCATIONS if field.name != "deleted"])
"""The answer's columns, with one row for each key, or several rows for a key in several places.
``file_id`` is NULL if the key is absent, ``row_id`` if only log files hold it. ``instant`` is the
requested time of the instant that wrote the base file."""

Keys: TypeAlias = Sequence[str] | Sequence[tuple[str, str]] | pa.Table
"""Record keys as Hudi prints them (``a:1,b:2`` for several columns): a list, or an Arrow table with
a column ``record_key``. If a key may occur in several partitions: (partition, key) pairs, or a
column ``partition`` in the table. Each key is then searched in its partition only, otherwise in
all. Hudi's own names of the two columns will do."""


@dataclass(frozen=True, slots=True)
class RequestedKeys:
    """The requested keys. Make it by `of`.

    Attributes:
        table: The columns ``record_key`` and, if keys are looked up in one partition each,
            ``partition``, in the requested order.
    """

    table: pa.Table

    @classmethod
    def of(cls, keys: Keys) -> "RequestedKeys":
        """Checks and converts the keys.

        Raises:
            ConfigInvalid: the keys are invalid.
        """
        if isinstance(keys, str):
            raise _no_keys("A string is not a list of keys.")
        if not isinstance(keys, pa.Table):
            keys = _table_of(list(keys))
        source_columns = {PARTITION: named_column(keys.column_names, PARTITION_NAMES)}
        source_columns[KEY] = named_column(keys.column_names, KEY_NAMES)
        if source_columns[KEY] is None:
            raise _no_keys(f"The table has no column {KEY}.")
        columns = {
            name: _text(keys.column(column)) for name, column in source_columns.items() if column
        }
        return cls(pa.table(columns))

    @property
    def partitioned(self) -> bool:
        """Whether each key is looked up in its own partition only."""
        return PARTITION in self.table.column_names

    def by_partition(self) -> Callable[[str], pa.StringArray]:
        """A function that returns the distinct keys to look up in a partition, without NULL."""
        if not self.partitioned:
            all_keys = pc.unique(self.table.column(KEY)).drop_null()
            return lambda partition: all_keys
        grouped = self.table.group_by(PARTITION).aggregate([(KEY, "distinct")])
        names, lists = grouped.column(PARTITION).to_pylist(), grouped.column(f"{KEY}_distinct")
        keys_by_partition = {name: keys.values for name, keys in zip(names, lists, strict=True)}
        nothing = pa.nulls(0, pa.string())
        return lambda partition: keys_by_partition.get(partition, nothing)

    def answered(self, locations: pa.Table) -> pa.Table:
        """The answer (`ANSWER`): in the requested order, one row per key, or several if the key has
        several locations.

        Args:
            locations: The locations found (`LOCATIONS`).
        """
        locations = living(locations) if not self.partitioned else locations
        on = [KEY, PARTITION] if self.partitioned else [KEY]
        numbered_keys = self.table.append_column(
            "number", numbers_array(np.arange(self.table.num_rows))
        )
        joined = numbered_keys.join(locations.drop_columns(["deleted"]), on, join_type="left outer")
        order = [("number", "ascending"), (PARTITION, "ascending"), ("file_id", "ascending")]
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

    def answer(
        self, requested: RequestedKeys, statistics: ReadStatistics | None = None
    ) -> pa.Table:
        """The answer (`ANSWER`), found by threads of this process.

        Args:
            statistics: Collects the statistics of each slice.

        Raises:
            TableFeatureUnsupported: the table or its virtual keys cannot be read without Spark.
            SnapshotChanged: files were cleaned during the search, twice.
        """

        def locate() -> pa.Table:
            base_files = self._planner.base_files()
            locator = self._locator(base_files.snapshot, partitioned=requested.partitioned)
            if base_files.folder is not None and not self._table.storage.is_local:
                base_files.folder.start_runtimes(locator.keys.columns.names)
            wanted = _Wanted.of(base_files, locator.keys, requested)
            plan = self._planner.base_file_entries(base_files, wanted.slices)
            log.info(
                "%d keys are looked for in %d slices.", requested.table.num_rows, len(wanted.slices)
            )
            return self._locations(locator, plan, wanted, statistics or ReadStatistics())

        return requested.answered(on_a_whole_snapshot(locate))

    def planned(self, *, partitioned: bool) -> tuple[QueryPlan, KeyLocator]:
        """The slices of the present snapshot, and the locator of keys in them.

        Args:
            partitioned: Whether each key is looked up in its own partition only.

        Raises:
            TableFeatureUnsupported, SnapshotChanged: see `HudiTable.snapshot` and `record_keys`.
        """
        plan = self._planner.base_file_entries(self._planner.base_files())
        return plan, self._locator(plan.snapshot, partitioned=partitioned)

    def _locator(self, snapshot: Snapshot, *, partitioned: bool) -> KeyLocator:
        table = self._table
        keys = record_keys(
            snapshot.schema,
            table.record_key_columns(),
            lambda: read_properties(table.storage),
        )
        query = Query(None, None, keys.columns, keys.columns, snapshot.schema)
        reader = SliceReader(table, query, snapshot.instant, self._pool, self._settings)
        # An update can have moved a key to another partition; where it was, it must not count.
        partitions = {each.partition for each in snapshot.slices}
        find_deleted = not partitioned and len(partitions) > 1
        return KeyLocator(reader, keys, find_deleted)

    def _locations(
        self,
        locator: KeyLocator,
        plan: QueryPlan,
        wanted: "_Wanted",
        statistics: ReadStatistics,
    ) -> pa.Table:
        """The locations (`LOCATIONS`) of the keys in slices."""
        statistics.start(plan.slices)
        tables, done = [pa.Table.from_batches([], LOCATIONS)], dict[int, SliceStatistics]()
        sought = wanted.together() if self._table.storage.is_local else None
        if sought is not None:
            together = KeysTogether(self._table.storage, self._pool, locator.keys)
            located, done = together.locate(sought, plan.slices)
            tables += located
            statistics.begun.update(done)
        jobs = [
            (plan.slices[number], search_keys, statistics.begin(number))
            for number in wanted.slices
            if number not in done and len(search_keys := wanted.keys_of(number))
        ]
        statistics.reached = len(plan.slices)

        def work(job: tuple[SlicePlan, pa.StringArray, SliceStatistics]) -> pa.Table:
            return locator.locate(*job)

        most = self._settings.read.parallelism
        tables += mapped(work, jobs, most, may_be_fast=self._table.storage.is_local)
        return pa.concat_tables(tables)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The keys to look for in the slices of a snapshot. Make it by `of`.

    Attributes:
        every_key: All keys, each once.
        in_partition: Returns the keys to look for in a partition.
        routed: What is known of the keys that base files may hold.
        slices: The numbers of the slices that may hold one of the keys.
    """

    snapshot: Snapshot
    requested: RequestedKeys
    every_key: pa.StringArray
    in_partition: Callable[[str], pa.StringArray]
    routed: Sequence[RoutedKeys]
    slices: Sequence[int]

    @classmethod
    def of(cls, base_files: BaseFiles, keys: RecordKeys, requested: RequestedKeys) -> "_Wanted":
        """The keys that were requested, as far as segments do not exclude them."""
        snapshot = base_files.snapshot
        every_key = pc.unique(requested.table.column(KEY)).drop_null()
        in_partition = requested.by_partition()
        routed = routed_keys(base_files, keys, every_key)
        may_hold = np.ones(len(snapshot.slices), dtype=bool)
        for each in routed:
            if not len(each.values.anywhere):
                may_hold &= ~each.located.is_known | each.located.routed.any()
        partitions = {each.partition for each in snapshot.slices}
        asked = {each for each in partitions if len(in_partition(each))}
        slices = [
            number
            for number, (each, may) in enumerate(
                zip(snapshot.slices, may_hold.tolist(), strict=True)
            )
            # A log file may hold any key.
            if (may or each.log_files) and each.partition in asked
        ]
        return cls(snapshot, requested, every_key, in_partition, routed, slices)

    def keys_of(self, number: int) -> pa.StringArray:
        """The keys to look for in a slice."""
        file_slice = self.snapshot.slices[number]
        keys = self.in_partition(file_slice.partition)
        known = [each.of_slice(number) for each in self.routed]
        held = next((each for each in known if each is not None), None)
        if held is None or file_slice.log_files:
            return keys
        among = self.every_key.take(numbers_array(held))
        return keys.filter(pc.is_in(keys, value_set=among)) if self.requested.partitioned else among

    def together(self) -> SoughtKeys | None:
        """The keys to look for in slices without log files, by the values of the first column of
        which values are routed; None if there is none."""
        for each in self.routed:
            if len(each.values.anywhere) or not len(each.values.values):
                continue
            numbers = np.array(self.slices, dtype=np.int64)
            slices = [self.snapshot.slices[number] for number in self.slices]
            has_logs = np.array([bool(each.log_files) for each in slices], dtype=bool)
            numbers = numbers[~has_logs & each.located.is_known[numbers]]
            if len(numbers):
                routed = each.located.routed.of_files(numbers)
                if self.requested.partitioned:
                    routed = self._in_own_partition(numbers, each.values, routed)
                return SoughtKeys(self.every_key, each.values, numbers, routed)
        return None

    def _in_own_partition(
        self, numbers: npt.NDArray[np.int64], values: KeyValues, routed: Routed
    ) -> Routed:
        """The values to look for in slices without those of keys that were requested in other
        partitions."""
        names = [self.snapshot.slices[number].partition for number in numbers.tolist()]
        partitions = {name: number for number, name in enumerate(dict.fromkeys(names))}
        of_slices = np.array([partitions[name] for name in names], dtype=np.int64)
        table, count = self.requested.table, len(self.every_key)
        asked = [partitions.get(name, -1) for name in table.column(PARTITION).to_pylist()]
        places = pc.index_in(table.column(KEY), value_set=self.every_key).combine_chunks()
        keys = as_numbers(pc.fill_null(places, integer_scalar(-1, places.type)))
        pairs = np.array(asked, dtype=np.int64) * count + keys
        pairs = pairs[(pairs >= 0) & (keys >= 0)]
        return routed.only(
            lambda files, positions: np.isin(
                of_slices[files] * count + values.keys[positions], pairs
            )
        )


def living(locations: pa.Table) -> pa.Table:
    """The locations without rows that log files delete and whose keys are elsewhere."""
    deleted = locations.column("deleted")
    elsewhere = pc.is_in(
        locations.column(KEY),
        value_set=locations.column(KEY).filter(pc.invert(deleted)).combine_chunks(),
    )
    return locations.filter(pc.invert(pc.and_(deleted, elsewhere)))


def named_column(columns: Iterable[str], names: dict[str, str]) -> str | None:
    """The first of the columns that has one of the names."""
    return next((column for column in columns if column in names), None)


def _table_of(keys: list[Any]) -> pa.Table:
    try:
        if keys and all(isinstance(key, tuple) for key in keys):
            pairs = [(partition, key) for partition, key in keys]
            columns = [texts_array(column, pa.string()) for column in zip(*pairs, strict=True)]
            return pa.table(columns, names=[PARTITION, KEY])
        return pa.table({KEY: texts_array(keys, pa.string())})
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as error:
        raise _no_keys(f"The keys are invalid: {error}.") from error


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
