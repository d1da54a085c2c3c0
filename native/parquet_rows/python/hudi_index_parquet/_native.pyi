from os import PathLike

import pyarrow as pa
from typing_extensions import Buffer

from hudi_index_parquet import Fetch, Rows

class ParquetReadError(ValueError): ...

def read_rows(
    source: str | PathLike[str] | Fetch,
    rows: Rows,
    columns: list[str] | None,
    size: int | None,
    metadata: Buffer | None,
    merge_gap: int | None,
) -> tuple[pa.Table, tuple[int, int, int, int]]: ...
def stripped_footer(
    source: str | PathLike[str] | Fetch, size: int | None, column_index: bool
) -> bytes: ...
def plan_rows(
    metadata: Buffer, rows: Rows, columns: list[str] | None
) -> tuple[int, int, int, int, int]: ...
def row_count(metadata: Buffer) -> int: ...
