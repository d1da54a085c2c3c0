"""The locations of record keys that were found."""

import pyarrow as pa

from hudi_index_service.read.base_file.record_keys import Numbers

LOCATIONS = pa.schema(
    [
        ("record_key", pa.string()),
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("instant", pa.string()),
        ("row_id", pa.int64()),
        ("deleted", pa.bool_()),
    ]
)
"""The columns of each key found. ``deleted``: whether a log file is known to delete the row."""

KeysLocated = tuple[Numbers, pa.Table]
"""Positions in the search keys of the keys found, and the location (`LOCATIONS`) of each."""
