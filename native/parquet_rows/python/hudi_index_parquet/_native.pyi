from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import pyarrow as pa
from typing_extensions import Buffer

from hudi_index_parquet import Fetch, Rows, Tree

class ParquetReadError(ValueError): ...

class PageCache:
    def __init__(self, budget: int) -> None: ...
    @property
    def bytes(self) -> int: ...
    def clear(self) -> None: ...

class Condition:
    def __init__(self, tree: Tree) -> None: ...

class Footer:
    def __init__(self, data: Buffer) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def plain_bytes(self) -> int: ...
    @property
    def schema(self) -> pa.Schema: ...
    def plan(
        self, rows: Rows, columns: list[str] | None
    ) -> tuple[int, int, int, int, int, int, int, int]: ...
    def page_starts(self, columns: list[str] | None) -> list[int]: ...
    def read(
        self,
        source: str | PathLike[str] | Fetch,
        rows: Rows,
        columns: list[str] | None,
        size: int | None,
        merge_gap: int | None,
        threads: int | None,
        pages: PageCache | None,
        is_scan: bool,
    ) -> tuple[pa.Table, tuple[int, int, int, int, int]]: ...
    def matching(
        self,
        source: str | PathLike[str],
        rows: Rows,
        condition: Condition,
        columns: list[str] | None,
        size: int | None,
        threads: int | None,
        pages: PageCache | None,
        is_scan: bool,
    ) -> tuple[pa.Int64Array, pa.Table, tuple[int, int, int, int, int]] | None: ...
    def count(
        self,
        source: str | PathLike[str],
        rows: Rows,
        condition: Condition,
        size: int | None,
        threads: int | None,
        pages: PageCache | None,
        is_scan: bool,
    ) -> tuple[int, tuple[int, int, int, int, int]] | None: ...
    def bounds(
        self, source: str | PathLike[str] | Fetch, path: list[str], size: int | None
    ) -> list[tuple[int, int, int | None, tuple[Any, Any] | None]] | None: ...

def check_while_working(check: Callable[[], None]) -> None: ...
def is_wanted() -> bool: ...
def raise_ended() -> None: ...
def read_rows(
    source: str | PathLike[str] | Fetch,
    rows: Rows,
    columns: list[str] | None,
    size: int | None,
    merge_gap: int | None,
    threads: int | None,
) -> tuple[pa.Table, tuple[int, int, int, int, int]]: ...
def read_files(
    files: list[tuple[Footer, str | PathLike[str], int | None, Rows]],
    columns: list[str] | None,
    condition: Condition | None,
    threads: int | None,
    pages: PageCache | None,
    is_scan: bool,
) -> tuple[pa.RecordBatch, list[int], list[int], list[tuple[int, int, int, int, int]]] | None: ...
def read_columns(
    files: list[tuple[str | PathLike[str], int | None]], columns: list[str], threads: int | None
) -> tuple[pa.RecordBatch, list[int]] | None: ...
def stripped_footer(source: str | PathLike[str] | Fetch, size: int | None) -> bytes: ...
def row_count(metadata: Buffer) -> int: ...
def polynomials(values: pa.Array) -> bytes: ...

class FileStates:
    def __init__(
        self,
        files: list[tuple[str | PathLike[str], tuple[int, int, int, int, int, int, int]]],
    ) -> None: ...
    def unchanged(self, positions: Buffer, threads: int | None) -> bytes: ...

class Routing:
    def __init__(self, layout: tuple[int, int, int, int, int, int], directory: bytes) -> None: ...
    def parts_of(self, keys: Buffer) -> list[tuple[int, int]]: ...
    def route(self, keys: Buffer, files: int, packed: Buffer) -> tuple[bytes, bytes]: ...
    def between(self, low: int, high: int) -> tuple[int, int, int]: ...
    def route_between(self, low: int, high: int, files: int, packed: Buffer) -> bytes: ...
    def unpack(self, packed: Buffer) -> tuple[bytes, bytes]: ...

class Trees:
    def __init__(self, trees: list[tuple[int, int, int, bytes, list[bytes]]]) -> None: ...
    def rows_of_keys(
        self,
        keys: bytes,
        offsets: Buffer,
        positions: Buffer,
        starts: Buffer,
        numbers: Buffer,
        most: int,
    ) -> tuple[bytes, bytes]: ...

def rows_between(
    source: int | Sequence[bytes],
    leaves: tuple[bytes, list[int], int],
    spans: list[tuple[int, bytes, bytes | None]],
) -> bytes | None: ...
def rows_of_keys(
    source: int | Sequence[bytes],
    leaves: tuple[bytes, list[int], int],
    keys: bytes,
    offsets: Buffer,
    parts: list[tuple[int, int]],
) -> bytes | None: ...
def read_leaf(body: bytes, rows: int, keys: int) -> tuple[bytes, bytes | None, bytes, bytes]: ...
def write_leaves(
    keys: Buffer,
    key_offsets: Buffer | None,
    counts: Buffer,
    rows: Buffer,
    offset: int,
    before: int,
    keeps_last: bool,
) -> tuple[bytes, bytes, list[int]]: ...
