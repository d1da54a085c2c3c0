"""Statistics from the footers of a table's base files: bytes, pages and codec of each column."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hudi_index_parquet import Footer, ParquetReadError, stripped_footer

from hudi_index_service.hudi.files.parquet_file import open_parquet, row_source
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.storage.store import Storage

_SAMPLED_FILES = 4  # largest base files read; files of one writer are similar


@dataclass(slots=True)
class FooterColumn:
    """A column in some base files. Byte counts exclude page headers.

    Attributes:
        bytes, plain_bytes: Compressed and uncompressed bytes.
        pages: Number of data pages; 0 if the files do not record it.
        codecs: Codecs in upper case, as Parquet names them.
    """

    bytes: int = 0
    plain_bytes: int = 0
    pages: int = 0
    codecs: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Footers:
    """Statistics of some base files, as a sample of all.

    Attributes:
        files: The sampled files.
        rows: Number of rows in them.
        columns: Statistics by root column.
        share: Fraction of all base files' bytes that is in the sample.
    """

    files: tuple[BaseFile, ...]
    rows: int
    columns: dict[str, FooterColumn]
    share: float

    def bytes(self, columns: Iterable[str]) -> float:
        """Compressed bytes of some columns in all base files, estimated from the sample."""
        sampled_bytes = sum(self.columns[each].bytes for each in columns if each in self.columns)
        return sampled_bytes / self.share if self.share else 0.0

    @property
    def all_rows(self) -> float:
        """Estimated number of rows in all base files."""
        return self.rows / self.share if self.share else 0.0


def footers(storage: Storage, base_files: Sequence[BaseFile]) -> Footers:
    """Reads the footers of the largest base files.

    Raises:
        FileNotFoundError, PermissionDenied, StorageFailed, NeedsSpark: one cannot be read.
    """
    largest = sorted(base_files, key=lambda each: (-each.size, each.path))[:_SAMPLED_FILES]
    columns: defaultdict[str, FooterColumn] = defaultdict(FooterColumn)
    rows = 0
    for base_file in largest:
        rows += _add(storage, base_file, columns)
    total_bytes = sum(each.size for each in base_files)
    share = sum(each.size for each in largest) / total_bytes if total_bytes else 0.0
    return Footers(tuple(largest), rows, dict(columns), share)


def _add(storage: Storage, base_file: BaseFile, columns: defaultdict[str, FooterColumn]) -> int:
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
    except ParquetReadError:  # a file without page locations: its pages are not counted
        pass
    return rows
