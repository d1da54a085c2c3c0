"""The locations of record keys that were found."""

import numpy as np
import pyarrow as pa

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

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
KeysLocated = tuple[Numbers, pa.Table]
"""Positions in the search keys of the keys found, and the location (`LOCATIONS`) of each."""
