"""The table's schema: the latest, or that of an earlier instant."""

from typing import Any

import pyarrow as pa

from hudi_index_service.errors import StorageFailed, TableFeatureUnsupported
from hudi_index_service.table.avro_schema import (
    UnknownAvroType,
    arrow_schema,
    unreadable_column,
)
from hudi_index_service.table.hudi_rs_errors import hudi_rs_errors_named

_META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


def latest_schema(table: Any, uri: str, *, populated: bool) -> tuple[pa.Schema, str | None]:
    """The schema, and which column of it hudi-rs cannot read, if any.

    Args:
        table: hudi-rs' table.
        populated: Whether it has Hudi's meta columns.

    Raises:
        StorageFailed: it cannot be read.
        TableFeatureUnsupported: a type is not known here.
    """
    suffix = "_with_meta_fields" if populated else ""
    try:
        with hudi_rs_errors_named(f"The schema of {uri}"):
            avro = getattr(table, f"get_schema_in_avro_str{suffix}")()
    except StorageFailed as error:
        if "no create schema" in error.message:
            return pa.schema([]), None
        if "No schema found in the commit metadata" not in error.message:
            raise
        # hudi-rs takes it from a base file of that commit then.
        with hudi_rs_errors_named(f"The schema of {uri}"):
            stored = getattr(table, f"get_schema{suffix}")()
        return pa.schema([each.with_nullable(True) for each in stored]), None
    return _known(avro, uri), unreadable_column(avro)


def schema_of_instant(
    requested: str, avro: str | None, latest: pa.Schema, *, uri: str, by_hudi_rs: bool
) -> pa.Schema:
    """The schema of an earlier instant, as Hudi takes it for time travel.

    Args:
        requested: The instant.
        avro: What its commit metadata holds; without Hudi's meta columns.
        latest: The table's latest, which tells whether there are meta columns.
        by_hudi_rs: Whether hudi-rs reads rows of that instant.

    Raises:
        TableFeatureUnsupported: the instant does not tell it, or it cannot be read here.
    """
    if not avro:
        raise TableFeatureUnsupported(f"Instant {requested} does not tell the table's schema.")
    reason = unreadable_column(avro) if by_hudi_rs else None
    if reason is not None:
        raise TableFeatureUnsupported(f"hudi-rs cannot read instant {requested}: {reason}.")
    fields = [each for each in latest if each.name in _META_COLUMNS]
    present = {each.name for each in fields}
    return pa.schema([*fields, *(each for each in _known(avro, uri) if each.name not in present)])


def _known(avro: str, uri: str) -> pa.Schema:
    try:
        return arrow_schema(avro)
    except UnknownAvroType as error:
        raise TableFeatureUnsupported(
            f"The schema of {uri} has a type that is not known here: {error}."
        ) from error
