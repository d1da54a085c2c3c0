"""Finds the locations of record keys: the requested keys, and the answer for each of them."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_index_service.arrow import (
    as_numbers,
    as_truths,
    integer_scalar,
    numbers_array,
    texts_array,
    truths_array,
)
from hudi_index_service.config import Settings
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hudi.properties import read_properties
from hudi_index_service.hudi.snapshot import Snapshot
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.optimizer.decide import are_many
from hudi_index_service.optimizer.plan import QueryPlan
from hudi_index_service.read.base_file.key_join import Numbers
from hudi_index_service.read.base_file.record_keys import record_keys
from hudi_index_service.read.keys.key_locator import LOCATIONS, PLACE, KeyLocator
from hudi_index_service.read.keys.key_routes import KEY, PARTITION, KeyRoutes
from hudi_index_service.read.planner import QueryPlanner
from hudi_index_service.read.query import Query
from hudi_index_service.read.slices.reader_pool import ReaderPool
from hudi_index_service.read.slices.slice_reader import SliceReader
from hudi_index_service.read.statistics import ReadStatistics
from hudi_index_service.read.whole_snapshot import on_a_whole_snapshot

log = logging.getLogger(__name__)

_NAMES = {KEY: (KEY, "_hoodie_record_key"), PARTITION: (PARTITION, "_hoodie_partition_path")}

NAMED_LOCATIONS = LOCATIONS.set(0, pa.field(KEY, pa.string()))
"""Locations with their keys in place of the positions of these, as Spark's tasks return them."""

ANSWER = pa.schema([field for field in NAMED_LOCATIONS if field.name != "deleted"])
"""The answer's columns, with one row for each key, or several rows for a key in several places.
``file_id`` is NULL if the key is absent, ``row_id`` if only log files hold it. ``instant`` is the
requested time of the instant that wrote the base file."""

Keys: TypeAlias = Sequence[str] | Sequence[tuple[str, str]] | pa.Table
"""Record keys as Hudi prints them (``a:1,b:2`` for several columns): a list, or an Arrow table with
a column ``record_key``. If a key may occur in several partitions: (partition, key) pairs, or a
column ``partition`` in the table. Each key is then searched in its partition only, otherwise in
all. Hudi's own names of the two columns will do."""


@dataclass(frozen=True)
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
        names = key_columns(keys.column_names)
        if KEY not in names:
            raise _no_keys(f"The table has no column {KEY}.")
        return cls(pa.table({column: _text(keys.column(name)) for column, name in names.items()}))

    @property
    def partitioned(self) -> bool:
        """Whether each key is looked up in its own partition only."""
        return PARTITION in self.table.column_names

    @cached_property
    def _encoded(self) -> pa.DictionaryArray:
        return self.table.column(KEY).dictionary_encode().combine_chunks()

    @property
    def every_key(self) -> pa.StringArray:
        """All keys, each once, without NULL."""
        return self._encoded.dictionary

    def by_partition(self) -> Callable[[str], Numbers] | None:
        """A function that returns the positions in `every_key` of the keys to look up in a
        partition, ascending; None for all keys in each partition."""
        if not self.partitioned:
            return None
        names = pc.unique(self.table.column(PARTITION)).drop_null()
        pairs = np.unique(self._pairs(self._places, self.table.column(PARTITION), names))
        number = {name: number for number, name in enumerate(names.to_pylist())}

        def asked(partition: str) -> Numbers:
            count = len(self.every_key)
            first = number.get(partition, len(number)) * count
            start, end = np.searchsorted(pairs, (first, first + count))
            return pairs[start:end] - first

        return asked

    def answered(self, locations: pa.Table, *, ordered: bool = True) -> pa.Table:
        """The answer (`ANSWER`): one row per key, or several if the key has several locations.

        Args:
            locations: The locations found (`LOCATIONS`), with positions in `every_key`.
            ordered: Whether rows are in the requested order, and then in that of locations.
        """
        if ordered:
            order = [(name, "ascending") for name in (PARTITION, "file_id", "row_id")]
            locations = locations.sort_by(order)
        places, asked = as_numbers(locations.column(PLACE)), self._places
        if self.partitioned:
            names = pc.unique(self.table.column(PARTITION))
            places = self._pairs(places, locations.column(PARTITION), names)
            asked = self._pairs(asked, self.table.column(PARTITION), names)
        else:
            # Rows that log files delete count only where they are the only ones of their keys.
            deleted = as_truths(locations.column("deleted"))
            living = ~deleted | ~np.isin(places, places[~deleted])
            places, locations = places[living], locations.filter(truths_array(living))
        by_place = np.argsort(places, kind="stable")
        places = places[by_place]
        first = np.searchsorted(places, asked, "left")
        counts = np.where(asked < 0, 0, np.searchsorted(places, asked, "right") - first)
        rows = np.repeat(np.arange(len(asked)), np.maximum(counts, 1))
        starts = np.cumsum(np.maximum(counts, 1)) - np.maximum(counts, 1)
        at = first[rows] + np.arange(len(rows)) - starts[rows]
        is_absent = counts[rows] == 0
        at[is_absent] = 0
        taken = by_place[at] if len(by_place) else at
        asked_for, found = numbers_array(rows), numbers_array(taken, is_absent)
        columns = [
            self.table.column(name).take(asked_for)
            if name in self.table.column_names
            else locations.column(name).take(found)
            for name in ANSWER.names
        ]
        return pa.table(columns, schema=ANSWER)

    def named(self, locations: pa.Table) -> pa.Table:
        """Locations (`LOCATIONS`) with their keys (`NAMED_LOCATIONS`)."""
        keys = self.every_key.take(locations.column(PLACE))
        return locations.set_column(0, NAMED_LOCATIONS.field(0), keys)

    def placed(self, locations: pa.Table) -> pa.Table:
        """Locations with their keys (`NAMED_LOCATIONS`) as `LOCATIONS`."""
        places = numbers_array(_positions(locations.column(KEY), self.every_key))
        return locations.set_column(0, LOCATIONS.field(0), places)

    @property
    def _places(self) -> Numbers:
        """The position of each requested key in `every_key`; -1 for NULL."""
        return _filled(self._encoded.indices)

    def _pairs(self, places: Numbers, partitions: pa.ChunkedArray, names: pa.Array) -> Numbers:
        """A number for each pair of a key and a partition; -1 for none."""
        of_names = _positions(partitions, names)
        pairs = of_names * len(self.every_key) + places
        return np.where((places < 0) | (of_names < 0), -1, pairs)


def _positions(values: pa.ChunkedArray, among: pa.Array) -> Numbers:
    """The position of each text among others; -1 for NULL and absent ones."""
    return _filled(pc.index_in(values, value_set=among.drop_null(), skip_nulls=True))


def _filled(positions: pa.Array | pa.ChunkedArray) -> Numbers:
    """Positions, -1 in place of NULL."""
    filled = pc.fill_null(positions, integer_scalar(-1, positions.type))
    return as_numbers(filled).astype(np.int64)


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
            routes = KeyRoutes(
                locator.keys, requested.every_key, requested.by_partition(), base_files
            )
            numbers = routes.slices(base_files)
            plans = self._planner.base_file_entries(base_files, numbers).slices
            log.info("%d keys are looked for in %d slices.", len(requested.table), len(numbers))
            read = statistics or ReadStatistics()
            read.start(plans)
            slices = {number: plans[number] for number in numbers}
            located = locator.locate(slices, routes, read, self._settings.read.parallelism)
            read.reached = len(plans)
            return located

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
        of_many = are_many(len(snapshot.slices))
        reader = SliceReader(table, query, snapshot.instant, self._pool, self._settings, of_many)
        # An update can have moved a key to another partition; where it was, it must not count.
        partitions = {each.partition for each in snapshot.slices}
        find_deleted = not partitioned and len(partitions) > 1
        return KeyLocator(reader, keys, find_deleted)


def key_columns(names: Sequence[str]) -> dict[str, str]:
    """The columns of keys and of their partitions, as far as there are: `KEY` and `PARTITION` → the
    first of the names that stands for it."""
    found = {column: [each for each in names if each in own] for column, own in _NAMES.items()}
    return {column: own[0] for column, own in found.items() if own}


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
