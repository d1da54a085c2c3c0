"""Which snapshot of a Hudi table a relation of Spark reads."""

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_index_service.read.planner import QueryType

_QUERY_TYPE = "hoodie.datasource.query.type"
_QUERY_TYPES: dict[str, QueryType] = {
    "snapshot": "snapshot",
    "read_optimized": "read_optimized",
}
_AS_OF = "as.of.instant"

# Options that change no row of a snapshot; with any other, the relation is left to Spark.
_OPTIONS = {
    *(_QUERY_TYPE, _AS_OF, "path", "hoodie.enable.data.skipping", "hoodie.populate.meta.fields"),
    *("type", "primarykey", "precombinefield", "orderingfields", "provider", "table", "comment"),
    "serialization.format",
}
_WRITE_OPTIONS = (
    *("hoodie.datasource.write.", "hoodie.datasource.hive_sync.", "hoodie.datasource.meta.sync."),
    *("hoodie.write.", "hoodie.metadata.", "hoodie.compact.", "hoodie.clustering.", "hoodie.clean"),
    *("hoodie.index.", "hoodie.insert.", "hoodie.upsert.", "hoodie.bulkinsert.", "hoodie.delete."),
    *("hoodie.parquet.", "hoodie.table.", "hoodie.database.", "hoodie.bucket.", "hoodie.bloom."),
    *("hoodie.embed.", "hoodie.archive", "hoodie.keep.", "hoodie.simple.", "hoodie.rollback."),
)


@dataclass(frozen=True, slots=True)
class SnapshotQuery:
    """Which snapshot a relation reads.

    Attributes:
        query_type: ``snapshot`` or ``read_optimized``.
        as_of: The instant of a time travel query, as written; None for the latest snapshot.
    """

    query_type: QueryType
    as_of: str | None


def snapshot_query(options: Mapping[str, str]) -> SnapshotQuery | str:
    """The snapshot that a relation with these read options reads, or the reason why the relation is
    left to Spark."""
    unknown = sorted(each for each in options if not _changes_no_row(each.lower()))
    if unknown:
        return f"the service does not know the option {unknown[0]}"
    values = {name.lower(): value for name, value in options.items()}
    query_type = _QUERY_TYPES.get(values.get(_QUERY_TYPE, "snapshot"))
    if query_type is None:
        return "not a snapshot query"
    return SnapshotQuery(query_type, values.get(_AS_OF))


def _changes_no_row(option: str) -> bool:
    if "merge" in option or "payload" in option:  # how log files are merged
        return False
    return option in _OPTIONS or option.startswith(_WRITE_OPTIONS)
