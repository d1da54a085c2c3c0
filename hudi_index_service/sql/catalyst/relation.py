"""Hudi relations in Spark's plans: which table they read, and what of it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hudi_index_service.read.planner import QueryType
from hudi_index_service.sql.catalyst.plan_reader import plan_reader, told

# Incremental and change data queries have other file indexes.
_FILE_INDEX = "org.apache.hudi.HoodieFileIndex"
_QUERY_TYPE = "hoodie.datasource.query.type"
_QUERY_TYPES: dict[str, QueryType] = {
    "snapshot": "snapshot",
    "read_optimized": "read_optimized",
}
_AS_OF = "as.of.instant"

# Options that change no row of a snapshot: everything else, and the relation is Spark's.
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
_ID = re.compile(r"#(\d+)L?(?:-T\d+ms)?\Z")  # as AttributeReference.toString ends

# HoodieInstant.toString: [requested__completed__action__state], on old versions without the second.
_INSTANT = re.compile(r"(\d{14,17})__(?:\d{14,17}__)?[a-z]+__COMPLETED")


@dataclass(frozen=True, slots=True)
class HudiRelation:
    """A relation that reads a snapshot of a Hudi table.

    Attributes:
        uri: The table's base path, as `open_table` takes it.
        query_type: ``snapshot`` or ``read_optimized``.
        as_of: What the query travels to in time, as written; None for the latest snapshot.
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
        places: Where they stand among its attributes.
        names: Their names.
        types: As Spark writes them in JSON: of a struct with the fields alone that the query needs.
        ids: The numbers of their attributes' expression ids.
        java: Gives the relation in the JVM.
    """

    places: list[int]
    names: list[str]
    types: list[str]
    ids: list[int]
    java: Callable[[], Any]

    def asked(self, ids: frozenset[int] | None) -> "Columns":
        """Those that are asked for, by the ids of their attributes; None for all."""
        if ids is None:
            return self
        chosen = [n for n, each in enumerate(self.ids) if each in ids]
        names, types = [self.names[n] for n in chosen], [self.types[n] for n in chosen]
        places, numbers = [self.places[n] for n in chosen], [self.ids[n] for n in chosen]
        return Columns(places, names, types, numbers, self.java)

    def attributes(self) -> list[Any]:
        """Catalyst's attributes. Each costs a call to the JVM."""
        output = self.java().output()
        return [output.apply(place) for place in self.places]


def attribute_id(attribute: Any) -> int:
    """The number of an attribute's expression id."""
    return int(attribute.exprId().id())


def attribute_ids(attributes: Any) -> list[int]:
    """The numbers of the expression ids of a Scala collection of attributes, and of what has a name
    in a list of columns. Asked of the JVM at once, as texts: ``id#7``, ``2 * id#7L AS n#8L``."""
    texts = str(attributes.mkString(_SEPARATOR)).split(_SEPARATOR)
    return [int(found[1]) for found in map(_ID.search, texts) if found]


def table_path(node: Any) -> str | None:
    """The base path of the Hudi table that a leaf of a plan in the JVM reads, in whatever way; None
    if it reads none. Asked of the JVM once for a node."""
    known: dict[str, Any] = node.__dict__
    if _PATH not in known:
        known[_PATH] = plan_reader(node).table(node)
    path: str | None = known[_PATH]
    return path


def reads_hudi(node: Any) -> bool:
    """Whether a leaf of a plan in the JVM reads a Hudi table."""
    return table_path(node) is not None


def hudi_relation(node: Any) -> HudiRelation | str:
    """What a leaf in the JVM for which `reads_hudi` holds reads; or why it is left to Spark."""
    return read_relation(told(plan_reader(node).relation(node)), lambda: node)


def read_relation(described: dict[str, Any], java: Callable[[], Any]) -> HudiRelation | str:
    """The same of how `PlanReader.java` describes the leaf.

    Args:
        java: Gives the leaf.
    """
    if described["location"] != _FILE_INDEX:
        return "it is no query on a snapshot"
    if described["streaming"]:
        return "it is a stream"
    options = described["options"]
    unknown = sorted(each for each in options if not _changes_no_row(each.lower()))
    if unknown:
        return f"the service does not know the option {unknown[0]}"
    chosen = {name.lower(): value for name, value in options.items()}
    query_type = _QUERY_TYPES.get(chosen.get(_QUERY_TYPE, "snapshot"))
    if query_type is None:
        return "it is no query on a snapshot"
    names = described["names"]
    return HudiRelation(
        uri=described["table"],
        query_type=query_type,
        as_of=chosen.get(_AS_OF),
        instants=frozenset(_INSTANT.findall(described["commits"])),
        columns=Columns(list(range(len(names))), names, described["types"], described["ids"], java),
    )


def _changes_no_row(option: str) -> bool:
    if "merge" in option or "payload" in option:  # how log files are merged
        return False
    return option in _OPTIONS or option.startswith(_WRITE_OPTIONS)
