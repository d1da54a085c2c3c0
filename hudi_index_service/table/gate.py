"""The capability gate: which tables are read without Spark's Hudi reader (design, rule 2).

An allow-list over ``hoodie.properties``: every ``hoodie.*`` key a table carries has to be known
here, with a value known to change nothing, or to be handled. The keys are those of Hudi 1.2's
`HoodieTableConfig` and of tables that Hudi 0.15, 1.0 and 1.1 wrote.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from hudi_index_service.table.properties import is_true

TABLE_VERSIONS = (6, 8, 9)

_MODEL = "org.apache.hudi.common.model."
_KEYGEN = "org.apache.hudi.keygen."
_EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"

# Payloads whose merge is plain ordering by commit time or by event time. Others merge columns
# (partial updates) or know deletes of their own (CDC sources).
_PAYLOADS = frozenset(
    _MODEL + name
    for name in (
        "DefaultHoodieRecordPayload",
        "EventTimeAvroPayload",
        "OverwriteWithLatestAvroPayload",
    )
)

# With these, Spark takes a partition column's values from the data file. Timestamp and custom key
# generators make it take them from the path, in another form.
_KEY_GENERATOR_TYPES = frozenset(
    f"{kind}{avro}"
    for kind in ("SIMPLE", "COMPLEX", "NON_PARTITION", "GLOBAL_DELETE", "AUTO_RECORD")
    for avro in ("", "_AVRO")
)
_KEY_GENERATOR_CLASSES = frozenset(
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
)

# Keys whose value changes nothing about which rows a snapshot holds.
_HARMLESS = frozenset(
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
        # Change records are files of their own, see `file_names.LogFileName.change_data`.
        "hoodie.table.cdc.enabled",
        "hoodie.table.cdc.supplemental.logging.mode",
        "hoodie.table.checksum",
        "hoodie.table.create.schema",
        "hoodie.table.index.defs.path",
        "hoodie.table.initial.version",
        "hoodie.table.metadata.partitions",
        "hoodie.table.metadata.partitions.inflight",
        "hoodie.table.name",
        "hoodie.table.ordering.fields",
        "hoodie.table.partition.fields",
        "hoodie.table.partition_extractor_class",
        "hoodie.table.precombine.field",
        "hoodie.table.recordkey.fields",
        "hoodie.table.secondary.indexes.metadata",
        # Instants are compared with instants of the same table only.
        "hoodie.table.timeline.timezone",
        "hoodie.timeline.history.path",
        "hoodie.datasource.write.table.name",
    }
)


def _one_of(*values: str) -> Callable[[str], bool]:
    allowed = {value.lower() for value in values}
    return lambda value: value.strip().lower() in allowed


_KNOWN_VALUES: dict[str, Callable[[str], bool]] = {
    "hoodie.datasource.write.drop.partition.columns": _one_of("false"),
    "hoodie.table.base.file.format": _one_of("PARQUET"),
    "hoodie.table.format": _one_of("native"),
    "hoodie.table.keygenerator.class": lambda value: value in _KEY_GENERATOR_CLASSES,
    "hoodie.table.keygenerator.type": lambda value: value in _KEY_GENERATOR_TYPES,
    "hoodie.table.log.file.format": _one_of("HOODIE_LOG"),
    "hoodie.table.multiple.base.file.formats.enable": _one_of("false"),
    "hoodie.table.ro.file.format": _one_of("PARQUET"),
    "hoodie.table.rt.file.format": _one_of("HOODIE_LOG"),
    "hoodie.table.type": _one_of("COPY_ON_WRITE", "MERGE_ON_READ"),
    "hoodie.table.version": _one_of(*(str(version) for version in TABLE_VERSIONS)),
    "hoodie.timeline.layout.version": _one_of("1", "2"),
    "hoodie.timeline.path": _one_of("timeline"),
}

# How log files merge with base files: on a COPY_ON_WRITE table that is settled when writing, so
# any value will do there.
_KNOWN_MERGES: dict[str, Callable[[str], bool]] = {
    "hoodie.compaction.payload.class": lambda value: value in _PAYLOADS,
    "hoodie.compaction.record.merger.strategy": _one_of(
        _EVENT_TIME_STRATEGY, _COMMIT_TIME_STRATEGY
    ),
    "hoodie.record.merge.mode": _one_of("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"),
    "hoodie.record.merge.strategy.id": _one_of(_EVENT_TIME_STRATEGY, _COMMIT_TIME_STRATEGY),
    "hoodie.table.legacy.payload.class": lambda value: value in _PAYLOADS,
    "hoodie.table.partial.update.mode": _one_of("NONE"),
}
# Settings of a merger, such as which value of which column means a delete.
_MERGE_PROPERTY = "hoodie.record.merge.property."


def table_version(properties: Mapping[str, str]) -> int:
    """The table's version; 0 where the property is missing or no number."""
    value = properties.get("hoodie.table.version", "").strip()
    return int(value) if value.isdigit() else 0


def is_merge_on_read(properties: Mapping[str, str]) -> bool:
    """Whether the table is MERGE_ON_READ."""
    return properties.get("hoodie.table.type", "").strip().upper() == "MERGE_ON_READ"


def unsupported_feature(properties: Mapping[str, str]) -> str | None:
    """Why the table cannot be read without Spark, in one sentence that names property and value;
    None if nothing speaks against it."""
    return unsupported_base_files(properties) or unsupported_merge(properties)


def unsupported_base_files(properties: Mapping[str, str]) -> str | None:
    """Why not even the table's base files alone can be read without Spark."""
    if "hoodie.bootstrap.base.path" in properties:
        base = properties["hoodie.bootstrap.base.path"]
        return f"The table was bootstrapped over other files (hoodie.bootstrap.base.path={base})."
    if table_version(properties) not in TABLE_VERSIONS:
        return _refused("hoodie.table.version", properties.get("hoodie.table.version", ""))
    layout = properties.get("hoodie.timeline.layout.version", "")
    if layout and (layout.strip() == "2") != (table_version(properties) >= 8):
        return _refused("hoodie.timeline.layout.version", layout)
    for key, value in sorted(properties.items()):
        if not key.startswith("hoodie.") or key in _HARMLESS or _says_how_to_merge(key):
            continue
        if key not in _KNOWN_VALUES:
            return f"The table carries a property that is not known here ({key}={value})."
        if not _KNOWN_VALUES[key](value):
            return _refused(key, value)
    return None


def unsupported_merge(properties: Mapping[str, str]) -> str | None:
    """Why the table's log files cannot be merged with its base files without Spark. That does not
    matter where base files are read alone."""
    if not is_merge_on_read(properties):
        return None
    for key, value in sorted(properties.items()):
        if _says_how_to_merge(key) and not _KNOWN_MERGES.get(key, _never)(value):
            return _refused(key, value)
    if not is_true(properties, "hoodie.populate.meta.fields", default=True):
        keys = properties.get("hoodie.table.recordkey.fields", "")
        if not keys.strip():
            return "The table has virtual keys (hoodie.populate.meta.fields=false) and no key."
    return None


def unsupported_partition(properties: Mapping[str, str], partitions: Iterable[str]) -> str | None:
    """Why a partition's path is Spark's to interpret, in one sentence; None if none is.

    Where a table is not partitioned in hive style, Spark takes ``p=1`` in a path for hive style all
    the same, and shows the column's value as ``1``, whatever the data files hold.
    """
    if is_true(properties, "hoodie.datasource.write.hive_style_partitioning"):
        return None
    odd = next((partition for partition in partitions if "=" in partition), None)
    return odd and f"Spark shows another value for partition {odd} than its files hold."


def unsupported_partition_column(
    partition_columns: Iterable[str], columns: Collection[str]
) -> str | None:
    """Which partition column is none of the table's columns but a field of one, in a sentence; None
    if none is. hudi-rs makes no slices of such a table."""
    inner = next((name for name in partition_columns if name not in columns), None)
    if inner is None or not columns:  # before the first commit there may be no schema
        return None
    return f"The table is partitioned by {inner}, which is no column of its own."


def _says_how_to_merge(key: str) -> bool:
    return key in _KNOWN_MERGES or key.startswith(_MERGE_PROPERTY)


def _never(value: str) -> bool:
    return False


def _refused(key: str, value: str) -> str:
    return f"The table uses a feature that is not read without Spark ({key}={value or '(none)'})."
