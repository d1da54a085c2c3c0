"""The capability gate: which tables are read without Spark's Hudi reader (design, rule 2).

The gate is an allow-list over ``hoodie.properties``: every ``hoodie.*`` key of a table must be
known here, with a value that is harmless or handled. The keys are those of Hudi 1.2's
`HoodieTableConfig` and of tables that Hudi 0.15, 1.0 and 1.1 wrote. docs/supported_tables.md is
generated from this module.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from types import MappingProxyType

import pyarrow as pa

from hudi_index_service.columns import VARIANT, hudi_types
from hudi_index_service.hudi.properties import is_true, split_columns

TABLE_VERSIONS = (6, 8, 9)


class Refusal(Enum):
    """Why a table is left to Spark's Hudi reader: sentences that name the unsupported feature."""

    BOOTSTRAPPED = "The table was bootstrapped over other files ({key}={value})."
    BASE_FILE_FORMAT = "The table's base files are not Parquet files ({key}={value})."
    UNKNOWN_PROPERTY = "The table has an unknown property ({key}={value})."
    OTHER_VALUE = "The table uses a feature that is not read without Spark ({key}={value})."
    NO_KEY = "The table has virtual keys (hoodie.populate.meta.fields=false) and no key."
    PARTITION_PATH = "Spark shows another value for partition {partition} than its files hold."
    PARTITION_WITHIN = (
        "Partition {partition} lies within partition {outer}, where Spark does not look for it."
    )
    PARTITION_FIELD = "The table is partitioned by {column}, which is not a top-level column."
    PARTITION_VALUE = (
        "Column {column} has its values from the partitions' paths, and only Spark reads that of "
        "{partition!r}."
    )
    PARTITION_TEXT = (
        "Spark finds other partitions by {column} = {text!r} than those that have this value."
    )
    COLUMN_TYPE = "Column {column} has or holds the type {type}, whose values only Spark reads."


@dataclass(frozen=True, slots=True)
class Allowed:
    """The values that a property may have.

    Attributes:
        values: The values.
        exact: Whether case and surrounding blanks matter.
    """

    values: tuple[str, ...]
    exact: bool = False

    def __contains__(self, value: str) -> bool:
        if self.exact:
            return value in self.values
        return value.strip().lower() in {each.lower() for each in self.values}


_MODEL = "org.apache.hudi.common.model."
_KEYGEN = "org.apache.hudi.keygen."
_EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"

# Payloads that only order by commit time or event time. Others merge columns (partial updates) or
# define their own deletes (CDC sources).
_PAYLOADS = Allowed(
    tuple(
        _MODEL + name
        for name in (
            "DefaultHoodieRecordPayload",
            "EventTimeAvroPayload",
            "OverwriteWithLatestAvroPayload",
        )
    ),
    exact=True,
)

# With these, Spark reads a partition column's values from the data file. With timestamp and custom
# key generators, it reads them from the path, in another form.
_KEY_GENERATOR_TYPES = Allowed(
    tuple(
        f"{kind}{avro}"
        for kind in ("SIMPLE", "COMPLEX", "NON_PARTITION", "GLOBAL_DELETE", "AUTO_RECORD")
        for avro in ("", "_AVRO")
    ),
    exact=True,
)
_KEY_GENERATOR_CLASSES = Allowed(
    tuple(
        _KEYGEN + name
        for name in (
            "SimpleKeyGenerator",
            "SimpleAvroKeyGenerator",
            "ComplexKeyGenerator",
            "ComplexAvroKeyGenerator",
            "NonpartitionedKeyGenerator",
            "NonpartitionedAvroKeyGenerator",
            "GlobalDeleteKeyGenerator",
            "GlobalAvroDeleteKeyGenerator",
        )
    ),
    exact=True,
)

# Keys whose values do not affect the rows of a snapshot.
HARMLESS = frozenset(
    {
        "hoodie.archivelog.folder",
        # Meaningful only next to hoodie.bootstrap.base.path, which is refused.
        "hoodie.bootstrap.index.class",
        "hoodie.bootstrap.index.enable",
        "hoodie.bootstrap.index.type",
        "hoodie.database.name",
        "hoodie.datasource.write.hive_style_partitioning",
        "hoodie.datasource.write.partitionpath.urlencode",
        # This service's own kill switch.
        "hoodie.index.read.enabled",
        "hoodie.partition.metafile.use.base.format",
        "hoodie.populate.meta.fields",
        # Change records are in separate files, see `snapshot.ListedLogFile.change_data`.
        "hoodie.table.cdc.enabled",
        "hoodie.table.cdc.supplemental.logging.mode",
        "hoodie.table.checksum",
        "hoodie.table.create.schema",
        "hoodie.table.index.defs.path",
        "hoodie.table.initial.version",
        "hoodie.table.metadata.partitions",
        "hoodie.table.metadata.partitions.inflight",
        "hoodie.table.name",
        "hoodie.table.partition.fields",
        "hoodie.table.partition_extractor_class",
        "hoodie.table.recordkey.fields",
        "hoodie.table.secondary.indexes.metadata",
        # Instants are only compared with instants of the same table.
        "hoodie.table.timeline.timezone",
        "hoodie.timeline.history.path",
        "hoodie.datasource.write.table.name",
    }
)


BOOTSTRAP = "hoodie.bootstrap.base.path"
"""The property with the path of the files that a table was bootstrapped over; always refused."""

KNOWN_VALUES: Mapping[str, Allowed] = MappingProxyType(
    {
        "hoodie.datasource.write.drop.partition.columns": Allowed(("false",)),
        "hoodie.table.base.file.format": Allowed(("PARQUET",)),
        "hoodie.table.format": Allowed(("native",)),
        "hoodie.table.keygenerator.class": _KEY_GENERATOR_CLASSES,
        "hoodie.table.keygenerator.type": _KEY_GENERATOR_TYPES,
        "hoodie.table.log.file.format": Allowed(("HOODIE_LOG",)),
        "hoodie.table.multiple.base.file.formats.enable": Allowed(("false",)),
        "hoodie.table.ro.file.format": Allowed(("PARQUET",)),
        "hoodie.table.rt.file.format": Allowed(("HOODIE_LOG",)),
        "hoodie.table.type": Allowed(("COPY_ON_WRITE", "MERGE_ON_READ")),
        "hoodie.table.version": Allowed(tuple(str(version) for version in TABLE_VERSIONS)),
        "hoodie.timeline.layout.version": Allowed(("1", "2")),
        "hoodie.timeline.path": Allowed(("timeline",)),
    }
)
"""Properties that must have one of these values."""

_BASE_FILE_FORMATS = ("hoodie.table.base.file.format", "hoodie.table.ro.file.format")

_NONE = Allowed(())
_STRATEGIES = Allowed((_EVENT_TIME_STRATEGY, _COMMIT_TIME_STRATEGY))

KNOWN_MERGES: Mapping[str, Allowed] = MappingProxyType(
    {
        "hoodie.compaction.payload.class": _PAYLOADS,
        "hoodie.compaction.record.merger.strategy": _STRATEGIES,
        "hoodie.record.merge.mode": Allowed(("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING")),
        "hoodie.record.merge.strategy.id": _STRATEGIES,
        "hoodie.table.legacy.payload.class": _PAYLOADS,
        "hoodie.table.partial.update.mode": Allowed(("NONE",)),
    }
)
"""Properties of the merge of log files with base files. A COPY_ON_WRITE table may have any value,
since it merges on write."""

ORDERING = ("hoodie.table.ordering.fields", "hoodie.table.precombine.field")
"""Properties with the columns that decide which of two versions of a record is the newer one. At
most one: hudi-rs merges by no more. A COPY_ON_WRITE table may have any number."""

MERGE_PROPERTY = "hoodie.record.merge.property."
"""Prefix of a merger's settings, such as a delete marker's column and value; always refused."""


def table_version(properties: Mapping[str, str]) -> int:
    """The table's version; 0 if the property is missing or not a number."""
    value = properties.get("hoodie.table.version", "").strip()
    return int(value) if value.isdigit() else 0


def ordering_columns(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The columns that decide which of two versions of a record is the newer one."""
    return split_columns(next((properties[key] for key in ORDERING if properties.get(key)), ""))


def is_merge_on_read(properties: Mapping[str, str]) -> bool:
    """Whether the table is MERGE_ON_READ."""
    return properties.get("hoodie.table.type", "").strip().upper() == "MERGE_ON_READ"


def unsupported_base_files(properties: Mapping[str, str]) -> str | None:
    """Why not even the table's base files alone can be read without Spark."""
    if BOOTSTRAP in properties:
        return Refusal.BOOTSTRAPPED.value.format(key=BOOTSTRAP, value=properties[BOOTSTRAP])
    if table_version(properties) not in TABLE_VERSIONS:
        return _other_value("hoodie.table.version", properties.get("hoodie.table.version", ""))
    layout = properties.get("hoodie.timeline.layout.version", "")
    if layout and (layout.strip() == "2") != (table_version(properties) >= 8):
        return _other_value("hoodie.timeline.layout.version", layout)
    for key, value in sorted(properties.items()):
        harmless = key in HARMLESS or key in ORDERING or _is_merge_property(key)
        if harmless or not key.startswith("hoodie."):
            continue
        if key not in KNOWN_VALUES:
            return Refusal.UNKNOWN_PROPERTY.value.format(key=key, value=value)
        if value not in KNOWN_VALUES[key]:
            other_format = key in _BASE_FILE_FORMATS and value
            refusal = Refusal.BASE_FILE_FORMAT if other_format else Refusal.OTHER_VALUE
            return refusal.value.format(key=key, value=value or "(none)")
    return None


def unsupported_merge(properties: Mapping[str, str]) -> str | None:
    """Why the table's log files cannot be merged with its base files without Spark. Reads of base
    files alone are not affected."""
    if not is_merge_on_read(properties):
        return None
    for key, value in sorted(properties.items()):
        if _is_merge_property(key) and value not in KNOWN_MERGES.get(key, _NONE):
            return _other_value(key, value)
    for key in ORDERING:
        if len(split_columns(properties.get(key, ""))) > 1:
            return _other_value(key, properties[key])
    if not is_true(properties, "hoodie.populate.meta.fields", default=True):
        keys = properties.get("hoodie.table.recordkey.fields", "")
        if not keys.strip():
            return Refusal.NO_KEY.value
    return None


def unsupported_partition(properties: Mapping[str, str], partitions: Iterable[str]) -> str | None:
    """Why only Spark can interpret a partition's path, in one sentence; None if there is no reason.

    Spark reads ``p=1`` in a path as hive style even if the table is not partitioned in hive style.
    It then shows the column's value as ``1``, whatever the data files hold. Below a partition it
    lists no others, except by the metadata table, or for ``p = 'a/b'``.
    """
    folders = sorted({f"{partition}/" for partition in partitions})
    for outer, inner in pairwise(folders):
        if inner.startswith(outer):
            return Refusal.PARTITION_WITHIN.value.format(partition=inner[:-1], outer=outer[:-1])
    if is_true(properties, "hoodie.datasource.write.hive_style_partitioning"):
        return None
    odd = next((folder[:-1] for folder in folders if "=" in folder), None)
    return odd and Refusal.PARTITION_PATH.value.format(partition=odd)


def unsupported_partition_column(
    partition_columns: Iterable[str], columns: Collection[str]
) -> str | None:
    """The partition column that is a struct field rather than a top-level column, in one sentence;
    None if there is none."""
    nested = next((name for name in partition_columns if name not in columns), None)
    if nested is None or not columns:  # before the first commit there may be no schema
        return None
    return Refusal.PARTITION_FIELD.value.format(column=nested)


def unsupported_partition_values(uncertain: Mapping[str, str]) -> dict[str, str]:
    """The partition columns whose values only Spark reads, each with the reason in one sentence.

    Args:
        uncertain: Column → a partition whose path does not give its value with certainty.
    """
    return {
        column: Refusal.PARTITION_VALUE.value.format(column=column, partition=partition)
        for column, partition in uncertain.items()
    }


def unsupported_columns(schema: pa.Schema) -> dict[str, str]:
    """The top-level columns whose values cannot be read without Spark, each with the reason in one
    sentence. Spark 3.5 shows a variant's parts, Spark 4 its value."""
    return {
        field.name: Refusal.COLUMN_TYPE.value.format(column=field.name, type=VARIANT)
        for field in schema
        if VARIANT in hudi_types(field)
    }


def _is_merge_property(key: str) -> bool:
    return key in KNOWN_MERGES or key.startswith(MERGE_PROPERTY)


def _other_value(key: str, value: str) -> str:
    return Refusal.OTHER_VALUE.value.format(key=key, value=value or "(none)")
