"""Finds the locations of record keys: the requested keys, and the answer for each of them."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import numbers_array, texts_array
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hudi.properties import read_properties
from hudi_index_service.hudi.snapshot import Snapshot
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.optimizer.plan import QueryPlan, SlicePlan
from hudi_index_service.read.base_file.record_keys import RecordKeys, record_keys
from hudi_index_service.read.keys.key_locator import KeyLocator
from hudi_index_service.read.keys.key_routes import key_holders
from hudi_index_service.read.keys.locations import LOCATIONS
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
            searched = self._searched(base_files, locator.keys, requested)
            plan = self._planner.base_file_entries(base_files, searched.keys())
            log.info(
                "%d keys are looked for in %d slices.", requested.table.num_rows, len(searched)
            )
            return _locations(locator, plan, searched, statistics or ReadStatistics())

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

    def _searched(
        self, base_files: BaseFiles, keys: RecordKeys, requested: RequestedKeys
    ) -> dict[int, pa.StringArray]:
        """The keys to look for in each slice, by its number. Slices that can have none of them are
        left out."""
        every_key = pc.unique(requested.table.column(KEY)).drop_null()
        held = key_holders(base_files, keys, every_key)
        in_partition = requested.by_partition()
        searched: dict[int, pa.StringArray] = {}
        for number, each in enumerate(base_files.snapshot.slices):
            search_keys = in_partition(each.partition)
            # A log file may hold any key.
            if number in held and not each.log_files:
                among, search_keys = search_keys, held[number]
                if requested.partitioned:
                    search_keys = search_keys.filter(pc.is_in(search_keys, value_set=among))
            if len(search_keys):
                searched[number] = search_keys
        return searched


def _locations(
    locator: KeyLocator,
    plan: QueryPlan,
    searched: Mapping[int, pa.StringArray],
    statistics: ReadStatistics,
) -> pa.Table:
    """The locations (`LOCATIONS`) of keys in slices, by their numbers."""
    statistics.start(plan.slices)
    jobs = [
        (plan.slices[number], search_keys, statistics.begin(number))
        for number, search_keys in searched.items()
    ]
    statistics.reached = len(plan.slices)

    def work(job: tuple[SlicePlan, pa.StringArray, SliceStatistics]) -> pa.Table:
        return locator.locate(*job)

    reader = locator.reader
    tables = mapped(
        work, jobs, reader.settings.read.parallelism, may_be_fast=reader.table.storage.is_local
    )
    return pa.concat_tables([pa.Table.from_batches([], LOCATIONS), *tables])


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
