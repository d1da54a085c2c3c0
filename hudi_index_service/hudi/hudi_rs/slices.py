"""Converts hudi-rs' file slices and merged rows to the service's types."""

from contextlib import suppress
from typing import Any

import pyarrow as pa

from hudi_index_service.hudi.completeness import Listing
from hudi_index_service.hudi.file_names import LogFileName
from hudi_index_service.hudi.protocol import BaseFile, FileSlice


def slice_of(hudi_rs_slice: Any, listing: Listing, log_files_until: str | None) -> FileSlice | None:
    """hudi-rs' slice as a `FileSlice`; None if one of its files is not in the listing.

    hudi-rs returns all log files of the slice. Change data for CDC and delta commits later than the
    requested instant are left out.
    """
    prefix = f"{hudi_rs_slice.partition_path}/" if hudi_rs_slice.partition_path else ""
    base_file: BaseFile | None = None
    if hudi_rs_slice.base_file_name:
        base = listing.files.get(prefix + hudi_rs_slice.base_file_name)
        if base is None:
            return None
        base_file = BaseFile(
            base.path, base.partition, base.name.file_id, base.name.instant, base.size
        )
    log_files = []
    for name in hudi_rs_slice.log_file_names:
        log = listing.files.get(prefix + name)
        if log is None:
            return None
        later = log_files_until is not None and log.name.instant > log_files_until
        if isinstance(log.name, LogFileName) and not log.name.change_data and not later:
            log_files.append(log.path)
    return FileSlice(
        hudi_rs_slice.partition_path, hudi_rs_slice.file_id, base_file, tuple(log_files)
    )


def narrowed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with integers in their former types. hudi-rs merges in the latest schema, in which
    a column may have been widened since the instant of the time travel. `align` refuses values that
    do not fit."""
    for at, field in enumerate(batch.schema):
        target = schema.field(field.name).type if field.name in schema.names else field.type
        integers = pa.types.is_signed_integer(field.type) and pa.types.is_signed_integer(target)
        if integers and target.bit_width < field.type.bit_width:
            with suppress(pa.ArrowInvalid):
                batch = batch.set_column(at, field.name, batch.column(at).cast(target))
    return batch
