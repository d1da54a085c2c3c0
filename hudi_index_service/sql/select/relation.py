"""Hudi relations in Spark's plans: which table they read, and what of it."""

import json
import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StructType

from hudi_index_service.read.planner import QueryType
from hudi_index_service.sql.select.scala import class_name, elements

RELATION = "org.apache.spark.sql.execution.datasources.LogicalRelation"
_FILES = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
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

_LOCATION, _PATH = "_hudi_index_location", "_hudi_index_path"
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
        node: The relation itself.
    """

    uri: str
    query_type: QueryType
    as_of: str | None
    node: Any

    def output(self) -> list[Any]:
        """Catalyst's attributes."""
        return list(elements(self.node.output()))

    def columns(self, asked: frozenset[int] | None) -> "Columns":
        """Those of its columns that are asked for, by the ids of their attributes, or all."""
        every = _attributes(self.node.output())
        wanted = {n: each for n, each in enumerate(every) if asked is None or each[1] in asked}
        names, ids = [name for name, _ in wanted.values()], [id for _, id in wanted.values()]
        return Columns(self.node, list(wanted), names, ids)

    def instants(self) -> frozenset[str]:
        """The requested times of the completed commits that Spark's own reader would see."""
        metadata = _location(self.node).metaClient()
        timeline = metadata.getActiveTimeline().getCommitsTimeline()
        completed = timeline.filterCompletedInstants().getInstants().toString()
        return frozenset(_INSTANT.findall(completed))


@dataclass(frozen=True, slots=True)
class Columns:
    """Some columns of a relation.

    Attributes:
        places: Where they stand among its attributes.
        names: Their names.
        ids: The numbers of their attributes' expression ids.
    """

    _node: Any
    places: list[int]
    names: list[str]
    ids: list[int]

    def types(self) -> list[str]:
        """As Spark writes them."""
        fields = StructType.fromJson(json.loads(str(self._node.schema().json()))).fields
        return [fields[place].dataType.simpleString() for place in self.places]

    def attributes(self) -> list[Any]:
        """Catalyst's attributes. Each costs a call to the JVM."""
        output = self._node.output()
        return [output.apply(place) for place in self.places]


def attribute_id(attribute: Any) -> int:
    """The number of an attribute's expression id."""
    return int(attribute.exprId().id())


def attribute_ids(attributes: Any) -> list[int]:
    """The numbers of the expression ids of a Scala collection of attributes, and of what has a name
    in a list of columns."""
    return [number for _, number in _attributes(attributes)]


def _attributes(attributes: Any) -> list[tuple[str, int]]:
    """What stands before each expression id, and its number. Asked of the JVM at once, as texts:
    ``id#7``, ``2 * id#7L AS n#8L``."""
    texts = str(attributes.mkString(_SEPARATOR)).split(_SEPARATOR)
    found = ((text, _ID.search(text)) for text in texts)
    return [(text[: at.start()], int(at[1])) for text, at in found if at]


def reads_hudi(node: Any, kind: str | None = None) -> bool:
    """Whether a leaf of a plan is a relation over the files of a Hudi table, of any kind.

    Args:
        kind: The name of its class, where that is known already.
    """
    if (class_name(node) if kind is None else kind) != RELATION:
        return False
    location = _location(node)
    return location is not None and class_name(location).startswith("org.apache.hudi.")


def _location(node: Any) -> Any:
    """The index of the files that a LogicalRelation reads; None if it reads no files. Asked of the
    JVM once for a node."""
    known: dict[str, Any] = node.__dict__
    if _LOCATION not in known:
        relation = node.relation()
        known[_LOCATION] = relation.location() if class_name(relation) == _FILES else None
    return known[_LOCATION]


def table_path(node: Any) -> str:
    """The base path of the table that a relation reads. Asked of the JVM once for a node."""
    known: dict[str, Any] = node.__dict__
    if _PATH not in known:
        known[_PATH] = str(_location(node).metaClient().getBasePath().toString())
    return str(known[_PATH])


def hudi_relation(node: Any) -> HudiRelation | str:
    """What a relation for which `reads_hudi` holds reads; or why it is left to Spark."""
    if class_name(_location(node)) != _FILE_INDEX:
        return "it is no query on a snapshot"
    if node.isStreaming():
        return "it is a stream"
    options = node.relation().options()
    names = str(options.keySet().mkString("\n")).split("\n")
    unknown = sorted(each for each in names if not _changes_no_row(each.lower()))
    if unknown:
        return f"the service does not know the option {unknown[0]}"
    query_type = _QUERY_TYPES.get(_option(options, names, _QUERY_TYPE) or "snapshot")
    if query_type is None:
        return "it is no query on a snapshot"
    return HudiRelation(
        uri=table_path(node),
        query_type=query_type,
        as_of=_option(options, names, _AS_OF),
        node=node,
    )


def _changes_no_row(option: str) -> bool:
    if "merge" in option or "payload" in option:  # how log files are merged
        return False
    return option in _OPTIONS or option.startswith(_WRITE_OPTIONS)


def _option(options: Any, names: list[str], name: str) -> str | None:
    if name not in map(str.lower, names):  # a call less; they may be found in any case
        return None
    found = options.get(name)
    return str(found.get()) if found.isDefined() else None
