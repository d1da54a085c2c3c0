"""Shows before an entry is published that readers can use it: an entry that cannot serve would be
told as built, and every query would scan."""

from collections.abc import Hashable
from pathlib import Path

from hudi_index_parquet import Footer, ParquetReadError, stripped_footer

from hudi_index_service.build.entry.worker import Scratch
from hudi_index_service.errors import BuildFailed
from hudi_index_service.hudi.files.parquet_file import open_parquet, refusals_named, row_source
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import IndexType
from hudi_index_service.index.files.stored_values import values_footer
from hudi_index_service.index.metadata.manifest import PARQUET_METADATA, Manifest
from hudi_index_service.index.metadata.requirements import indexed
from hudi_index_service.index.packed_file import read_member
from hudi_index_service.storage.store import Storage

_MOST_KINDS = 1000

_opened: set[Hashable] = set()  # kinds of entries


def readable_footer(storage: Storage, base_file: BaseFile) -> tuple[bytes, Footer]:
    """The base file's stripped footer, and the same as the row reader parses it.

    Raises:
        FileNotFoundError, PermissionDenied, StorageFailed: the base file cannot be read.
        NeedsSpark: it is encrypted.
        BuildFailed: the row reader does not know a type of the file.
    """
    try:
        with refusals_named(base_file.path):
            footer = stripped_footer(row_source(storage, base_file.path), size=base_file.size)
        parsed = Footer(footer)
    except ParquetReadError as error:
        open_parquet(storage, base_file.path, base_file.size).close()  # names damage better
        raise BuildFailed(
            f"{base_file.path} cannot be indexed, since its rows cannot be read one by one: "
            f"{error}.",
            remedy="Queries scan it. It can be indexed once it is rewritten with types known here.",
        ) from error
    return footer, parsed


def open_first_of_kind(
    table: str,
    kind: IndexType,
    manifest: Manifest,
    data: bytes | Path,
    footer: Footer,
    scratch: Scratch,
) -> None:
    """Opens an entry as a reader does, if this process has not opened another one of the same
    build with the same columns, of a base file with the same types.

    Args:
        table: The table's URI.
        data: Its packed file, or the content of that.
        footer: The base file's.

    Raises:
        EntryInvalid: it cannot be opened.
        NativeModuleMissing, StorageFailed: see `IndexType.open`.
    """
    columns = tuple((each.name, each.type_name, each.fields) for each in manifest.columns)
    schema = footer.schema.serialize().to_pybytes()
    this = (table, manifest.build.id, kind.name, columns, schema)
    if this in _opened:
        return
    path = data if isinstance(data, Path) else scratch.folder / manifest.data.name
    if isinstance(data, bytes):
        path.write_bytes(data)
    index = manifest.data.at(path, rows=manifest.base_file.rows)
    Footer(read_member(index, PARQUET_METADATA))
    values_footer(index)
    kind.open(index, indexed(manifest.columns)).close()
    if len(_opened) >= _MOST_KINDS:
        _opened.clear()
    _opened.add(this)
