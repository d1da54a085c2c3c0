"""The table's schema: the latest, or that of an earlier instant."""

from typing import Any

import pyarrow as pa

from hudi_index_service.errors import StorageFailed, TableFeatureUnsupported
from hudi_index_service.hudi.avro_schema import (
    UnknownAvroType,
    arrow_schema,
    unreadable_column,
)
from hudi_index_service.hudi.hudi_rs.errors import hudi_rs_errors_named

_META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


def latest_schema(
    table: Any, uri: str, *, populated: bool, has_base_files: bool = True
) -> tuple[pa.Schema, str | None]:
    """The latest schema, and the column that hudi-rs cannot read, if any.

    Args:
        table: hudi-rs' table.
        populated: Whether it has Hudi's meta columns.
        has_base_files: Whether hudi-rs can read its base files.

    Raises:
        StorageFailed: the schema cannot be read.
        TableFeatureUnsupported: a type is unknown, or the schema is only in a base file that
            hudi-rs cannot read.
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
        if not has_base_files:
            raise TableFeatureUnsupported(
                f"{uri}: the latest commit does not hold the table's schema, and hudi-rs cannot "
                "read it from a base file in HDFS."
            ) from error
        # hudi-rs then reads it from a base file of that commit.
        with hudi_rs_errors_named(f"The schema of {uri}"):
            schema = getattr(table, f"get_schema{suffix}")()
        _refuse_fixed_bytes(schema, uri)
        return pa.schema([each.with_nullable(True) for each in schema]), None
    return _known_schema(avro, uri), unreadable_column(avro)


def _refuse_fixed_bytes(schema: pa.Schema, uri: str) -> None:
    for column in schema:
        if pa.types.is_fixed_size_binary(column.type):
            raise TableFeatureUnsupported(
                f"Only base files hold the schema of {uri}, and they do not tell whether column "
                f"{column.name} holds vectors."
            )


def schema_of_instant(
    requested: str, avro: str | None, latest: pa.Schema, *, uri: str, by_hudi_rs: bool
) -> pa.Schema:
    """The schema of an earlier instant, as Hudi uses it for time travel.

    Args:
        requested: The instant's requested time.
        avro: The schema in its commit metadata, without Hudi's meta columns.
        latest: The table's latest schema, which shows whether there are meta columns.
        by_hudi_rs: Whether hudi-rs reads rows of that instant.

    Raises:
        TableFeatureUnsupported: the instant holds no schema, or it cannot be read here.
    """
    if not avro:
        raise TableFeatureUnsupported(f"Instant {requested} does not hold the table's schema.")
    reason = unreadable_column(avro) if by_hudi_rs else None
    if reason is not None:
        raise TableFeatureUnsupported(f"hudi-rs cannot read instant {requested}: {reason}.")
    fields = [each for each in latest if each.name in _META_COLUMNS]
    meta_names = {each.name for each in fields}
    return pa.schema(
        [*fields, *(each for each in _known_schema(avro, uri) if each.name not in meta_names)]
    )


def _known_schema(avro: str, uri: str) -> pa.Schema:
    try:
        return arrow_schema(avro)
    except UnknownAvroType as error:
        raise TableFeatureUnsupported(
            f"The schema of {uri} has an unknown type: {error}."
        ) from error
