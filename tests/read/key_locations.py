"""The locations of record keys: by Spark, and as the service answers."""

import pyarrow as pa

from hudi_index_service import IndexedTable
from hudi_index_service.read.keys.tag_location import Keys, KeySearch, RequestedKeys
from hudi_index_service.read.statistics import ReadStatistics

Location = tuple[str | None, str | None, str | None]
"""Partition, file id, instant."""


def by_spark(rows: pa.Table) -> dict[tuple[str, str], Location]:
    """(Partition, key) → location, by Hudi's meta columns in the rows that Spark read."""
    columns = ["_hoodie_partition_path", "_hoodie_record_key", "_hoodie_file_name"]
    found = zip(*(rows.column(name).to_pylist() for name in columns), strict=True)
    locations = {}
    for partition, key, name in found:
        file_id, _, instant = name.removesuffix(".parquet").split("_")
        locations[partition, key] = (partition, file_id, instant)
    return locations


def locations(answer: pa.Table) -> list[tuple[str, Location]]:
    """Key and location of each row."""
    columns = ["record_key", "partition", "file_id", "instant"]
    rows = zip(*(answer.column(name).to_pylist() for name in columns), strict=True)
    return [(key, (partition, file_id, instant)) for key, partition, file_id, instant in rows]


def search(table: IndexedTable, keys: Keys) -> tuple[pa.Table, ReadStatistics]:
    """The answer for keys, as `tag_location` takes them, and what was read for it."""
    statistics = ReadStatistics()
    return key_search(table).answer(RequestedKeys.of(keys), statistics), statistics


def key_search(table: IndexedTable) -> KeySearch:
    """Searches the table for keys."""
    queries = table._queries
    return KeySearch(table.hudi_table, queries.planner, queries.pool, table._settings)
