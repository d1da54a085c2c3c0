"""hudi-rs' file slices, and the rows that it merges, in the service's terms."""

from contextlib import suppress
from typing import Any

import pyarrow as pa

from hudi_index_service.table.completeness import Listing
from hudi_index_service.table.file_names import LogFileName
from hudi_index_service.table.protocol import BaseFile, FileSlice


def slice_of(found: Any, listing: Listing, log_files_until: str | None) -> FileSlice | None:
    """hudi-rs' slice in our terms; None when a file of it is not in the listing.

    hudi-rs gives all log files of the slice: change data for CDC, which is no row of the table,
    and delta commits later than the instant asked for.
    """
    prefix = f"{found.partition_path}/" if found.partition_path else ""
    base_file: BaseFile | None = None
    if found.base_file_name:
        base = listing.files.get(prefix + found.base_file_name)
        if base is None:
            return None
        base_file = BaseFile(
            base.path, base.partition, base.name.file_id, base.name.instant, base.size
        )
    log_files = []
    for name in found.log_file_names:
        log = listing.files.get(prefix + name)
        if log is None:
            return None
        later = log_files_until is not None and log.name.instant > log_files_until
        if isinstance(log.name, LogFileName) and not log.name.change_data and not later:
            log_files.append(log.path)
    return FileSlice(found.partition_path, found.file_id, base_file, tuple(log_files))


def narrowed(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """The batch with integers as they were: hudi-rs merges in the latest schema, in which a column
    may have been widened since the time travelled to. What does not fit is left for `align` to
    refuse."""
    for at, found in enumerate(batch.schema):
        target = wanted.field(found.name).type if found.name in wanted.names else found.type
        integers = pa.types.is_signed_integer(found.type) and pa.types.is_signed_integer(target)
        if integers and target.bit_width < found.type.bit_width:
            with suppress(pa.ArrowInvalid):
                batch = batch.set_column(at, found.name, batch.column(at).cast(target))
    return batch
