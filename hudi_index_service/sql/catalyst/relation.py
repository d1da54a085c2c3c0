"""Hudi relations in Spark's plans: the table, snapshot and columns that they read."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_index_service.read.planner import QueryType
from hudi_index_service.sql.catalyst.plan_reader import decoded, plan_reader

# Incremental and change data queries have other file indexes.
_FILE_INDEX = "org.apache.hudi.HoodieFileIndex"
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

_PATH = "_hudi_index_path"
_SEPARATOR = "\0\1\0"
_ID = re.compile(r"#(\d+)L?(?:-T\d+ms)?\Z")  # the end of AttributeReference.toString

# HoodieInstant.toString: [requested__completed__action__state]; old versions lack the second.
_INSTANT = re.compile(r"(\d{14,17})__(?:\d{14,17}__)?[a-z]+__COMPLETED")


@dataclass(frozen=True, slots=True)
class SnapshotQuery:
    """Which snapshot a relation reads.

    Attributes:
        query_type: ``snapshot`` or ``read_optimized``.
        as_of: The instant of a time travel query, as written; None for the latest snapshot.
    """

    query_type: QueryType
    as_of: str | None


@dataclass(frozen=True, slots=True)
class HudiRelation:
    """A relation that reads a snapshot of a Hudi table.

    Attributes:
        uri: The table's base path, as `open_table` takes it.
        query_type: ``snapshot`` or ``read_optimized``.
        as_of: The instant of a time travel query, as written; None for the latest snapshot.
        instants: The requested times of the completed commits that Spark's own reader would see.
        columns: All of its columns.
    """

    uri: str
    query_type: QueryType
    as_of: str | None
    instants: frozenset[str]
    columns: "Columns"


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a relation.

    Attributes:
        places: Their positions among its attributes.
        names: Their names.
        types: As Spark writes them in JSON; a struct has only the fields that the query needs.
        ids: The numbers of their attributes' expression ids.
        java: Returns the relation in the JVM.
    """

    places: list[int]
    names: list[str]
    types: list[str]
    ids: list[int]
    java: Callable[[], Any]

    def with_ids(self, ids: frozenset[int] | None) -> "Columns":
        """The columns with these attribute ids; None for all."""
        if ids is None:
            return self
        positions = [n for n, each in enumerate(self.ids) if each in ids]
        names, types = [self.names[n] for n in positions], [self.types[n] for n in positions]
        places, numbers = [self.places[n] for n in positions], [self.ids[n] for n in positions]
        return Columns(places, names, types, numbers, self.java)

    def attributes(self) -> list[Any]:
        """Catalyst's attributes. Each costs a call to the JVM."""
        output = self.java().output()
        return [output.apply(place) for place in self.places]


def attribute_id(attribute: Any) -> int:
    """The number of an attribute's expression id."""
    return int(attribute.exprId().id())


def attribute_ids(attributes: Any) -> list[int]:
    """The numbers of the expression ids of a Scala collection of attributes and named expressions.
    Fetched from the JVM in one call, as texts: ``id#7``, ``2 * id#7L AS n#8L``."""
    texts = str(attributes.mkString(_SEPARATOR)).split(_SEPARATOR)
    return [int(match[1]) for match in map(_ID.search, texts) if match]


def table_path(node: Any) -> str | None:
    """The base path of the Hudi table that a leaf of a plan in the JVM reads, by any kind of query;
    None if it reads none. Fetched from the JVM once per node."""
    cache: dict[str, Any] = node.__dict__
    if _PATH not in cache:
        cache[_PATH] = plan_reader(node).table(node)
    path: str | None = cache[_PATH]
    return path


def reads_hudi(node: Any) -> bool:
    """Whether a leaf of a plan in the JVM reads a Hudi table."""
    return table_path(node) is not None


def hudi_relation(node: Any) -> HudiRelation | str:
    """The relation of a leaf in the JVM for which `reads_hudi` is true; or the reason why it is
    left to Spark."""
    return read_relation(decoded(plan_reader(node).relation(node)), lambda: node)


def read_relation(description: dict[str, Any], java: Callable[[], Any]) -> HudiRelation | str:
    """Like `hudi_relation`, from the description of the leaf by `PlanReader.java`.

    Args:
        java: Returns the leaf in the JVM.
    """
    if description["location"] != _FILE_INDEX:
        return "it is no query on a snapshot"
    if description["streaming"]:
        return "it is a stream"
    query = snapshot_query(description["options"])
    if isinstance(query, str):
        return query
    names = description["names"]
    return HudiRelation(
        uri=description["table"],
        query_type=query.query_type,
        as_of=query.as_of,
        instants=frozenset(_INSTANT.findall(description["commits"])),
        columns=Columns(
            list(range(len(names))), names, description["types"], description["ids"], java
        ),
    )


def snapshot_query(options: Mapping[str, str]) -> SnapshotQuery | str:
    """The snapshot that a relation with these read options reads, or the reason why the relation is
    left to Spark."""
    unknown = sorted(each for each in options if not _changes_no_row(each.lower()))
    if unknown:
        return f"the service does not know the option {unknown[0]}"
    values = {name.lower(): value for name, value in options.items()}
    query_type = _QUERY_TYPES.get(values.get(_QUERY_TYPE, "snapshot"))
    if query_type is None:
        return "it is no query on a snapshot"
    return SnapshotQuery(query_type, values.get(_AS_OF))


def _changes_no_row(option: str) -> bool:
    if "merge" in option or "payload" in option:  # how log files are merged
        return False
    return option in _OPTIONS or option.startswith(_WRITE_OPTIONS)
