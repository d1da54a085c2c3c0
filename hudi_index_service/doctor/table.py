"""Checks of a table: whether it can be read and listed, and whether its index can be written."""

from collections.abc import Iterator
from uuid import uuid4

from hudi_index_service.doctor.check import Check, Status
from hudi_index_service.errors import (
    IndexServiceError,
    PermissionDenied,
    StorageFailed,
    TableNotFound,
)
from hudi_index_service.hudi import HudiTable, Snapshot, open_hudi_table
from hudi_index_service.hudi.files.parquet_file import open_parquet
from hudi_index_service.index.metadata.documents import SERVICE_FOLDER
from hudi_index_service.storage.store import Storage
from hudi_index_service.wording import counted

_INDEX_FOLDER = SERVICE_FOLDER.rpartition("/")[0]


def table_checks(uri: str) -> Iterator[Check]:
    """The checks of the table at this base path."""
    try:
        table = open_hudi_table(uri)
        snapshot = table.snapshot()
    except IndexServiceError as error:
        missing = isinstance(error, TableNotFound)
        yield _wrong("table", error, Status.MISSING if missing else Status.FAILED)
        return
    yield _snapshot(table, snapshot)
    yield from _base_file(table.storage, snapshot)
    yield _writing(table.storage)


def _snapshot(table: HudiTable, snapshot: Snapshot) -> Check:
    with_logs = sum(bool(each.log_files) for each in snapshot.slices)
    return Check(
        "table",
        Status.OK,
        f"{table.name} at instant {snapshot.instant or '(none)'}: "
        f"{counted(len(snapshot.base_files()), 'base file')}, "
        f"{counted(with_logs, 'slice')} with log files.",
    )


def _base_file(storage: Storage, snapshot: Snapshot) -> Iterator[Check]:
    """Whether base files can be read, by the newest one."""
    newest = max(snapshot.base_files(), key=lambda each: (each.instant, each.path), default=None)
    if newest is None:
        return
    try:
        with open_parquet(storage, newest.path, newest.size) as file:
            rows = int(file.metadata.num_rows)
    except IndexServiceError as error:
        yield _wrong("base files", error)
    except FileNotFoundError:
        yield Check(
            "base files",
            Status.FAILED,
            f"{newest.path} is gone.",
            "If Hudi's cleaner has just removed it, run the command again.",
        )
    else:
        yield Check("base files", Status.OK, f"the newest one has {counted(rows, 'row')}.")


def _writing(storage: Storage) -> Check:
    """Whether this user may write the index, and the store creates files exclusively. What the
    check writes is deleted at once."""
    name = "writing"
    path = f"{SERVICE_FOLDER}/doctor-{uuid4().hex}"
    try:
        is_new = not storage.files(_INDEX_FOLDER)
        storage.create(path, b"1")
        try:
            storage.create(path, b"2")
            exclusive = False
        except FileExistsError:
            exclusive = True
        finally:
            storage.delete([path])
            if is_new:
                storage.delete_empty_folders(_INDEX_FOLDER)
    except PermissionDenied as error:
        reading = "Queries work; only building an index needs it."
        return Check(
            name, Status.MISSING, f"{error.message} {reading}", error.remedies.command, False
        )
    except IndexServiceError as error:
        return _wrong(name, error)
    if exclusive:
        return Check(name, Status.OK, f"{_INDEX_FOLDER} takes files, and never replaces one.")
    replaced = StorageFailed(
        f"{storage.uri} replaced a file that was to be created exclusively.",
        remedy="Use a store with put-if-absent: builders on any other would overwrite each other.",
    )
    return _wrong(name, replaced)


def _wrong(name: str, error: IndexServiceError, status: Status = Status.FAILED) -> Check:
    return Check(name, status, f"{error.code}: {error.message}", error.remedies.command)
