"""What the footers of a table's base files say: bytes and pages of each column, and the codec."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hudi_index_parquet import Footer, ParquetReadError, stripped_footer

from hudi_index_service.storage import Storage
from hudi_index_service.table.parquet_file import open_parquet, row_source
from hudi_index_service.table.protocol import BaseFile

_LOOKED_AT = 4  # of the largest base files: one writer's files are much alike


@dataclass(slots=True)
class StoredColumn:
    """A column in some base files. Bytes are without headers of pages.

    Attributes:
        bytes, plain_bytes: Compressed, and not.
        pages: Data pages; 0 where the file does not say.
        codecs: In upper case, as Parquet names them.
    """

    bytes: int = 0
    plain_bytes: int = 0
    pages: int = 0
    codecs: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Footers:
    """Some base files, and what they stand for.

    Attributes:
        files: Those that were looked at.
        rows: In these.
        columns: By root column.
        share: Of all base files' bytes that these have.
    """

    files: tuple[BaseFile, ...]
    rows: int
    columns: dict[str, StoredColumn]
    share: float

    def bytes(self, columns: Iterable[str]) -> float:
        """Of some columns in all base files, compressed."""
        taken = sum(self.columns[each].bytes for each in columns if each in self.columns)
        return taken / self.share if self.share else 0.0

    @property
    def all_rows(self) -> float:
        """About how many rows all base files have."""
        return self.rows / self.share if self.share else 0.0


def footers(storage: Storage, base_files: Sequence[BaseFile]) -> Footers:
    """Reads the footers of the largest base files.

    Raises:
        FileNotFoundError, PermissionDenied, StorageFailed, NeedsSpark: one cannot be read.
    """
    largest = sorted(base_files, key=lambda each: (-each.size, each.path))[:_LOOKED_AT]
    columns: defaultdict[str, StoredColumn] = defaultdict(StoredColumn)
    rows = 0
    for base_file in largest:
        rows += _add(storage, base_file, columns)
    every = sum(each.size for each in base_files)
    share = sum(each.size for each in largest) / every if every else 0.0
    return Footers(tuple(largest), rows, dict(columns), share)


def _add(storage: Storage, base_file: BaseFile, columns: defaultdict[str, StoredColumn]) -> int:
    with open_parquet(storage, base_file.path, base_file.size) as file:
        metadata = file.metadata
        for group in range(metadata.num_row_groups):
            row_group = metadata.row_group(group)
            for number in range(metadata.num_columns):
                chunk = row_group.column(number)
                column = columns[chunk.path_in_schema.split(".")[0]]
                column.bytes += chunk.total_compressed_size
                column.plain_bytes += chunk.total_uncompressed_size
                column.codecs.add(chunk.compression)
        names = list(file.schema_arrow.names)
        rows = int(metadata.num_rows)
    try:
        footer = Footer(stripped_footer(row_source(storage, base_file.path), size=base_file.size))
        for name in names:
            columns[name].pages += len(footer.page_starts([name]))
    except ParquetReadError:  # a file without page locations: nothing is said of its pages
        pass
    return rows
