"""Checks one entry against itself, its base file's footer, and a sample of the rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hudi_index_service.build.entry.scratch import scratch_folder
from hudi_index_service.build.reconcile import is_outdated, refuse_newer
from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.hudi.files.parquet_file import footer_sha256
from hudi_index_service.hudi.protocol import BaseFile, HudiTable
from hudi_index_service.index.contract import IndexType, PackedIndex
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.files.local_copy import packed_index
from hudi_index_service.index.metadata.column_fields import indexed
from hudi_index_service.index.metadata.entry import Entry
from hudi_index_service.index.packed_file import checksums
from hudi_index_service.maintain.verify.row_sample import RowSample
from hudi_index_service.storage.store import Storage


@dataclass(slots=True)
class Outcome:
    """The result of checking one entry.

    Attributes:
        wrong: Path and reason of each problem.
        rows: Number of rows whose values were looked up.
    """

    wrong: list[tuple[str, str]] = field(default_factory=list)
    rows: int = 0


class EntryCheck:
    """Checks entries of one table.

    Args:
        sample: Number of rows of each base file to look up.
    """

    def __init__(self, table: HudiTable, settings: Settings, sample: int) -> None:
        self._storage = table.storage
        self._schema = table.schema()
        self._settings = settings
        self._sample = sample

    def check(self, entry: Entry, base_file: BaseFile) -> Outcome:
        """Checks one entry; skips a step if one that it depends on failed.

        Raises:
            NewerFormat: a newer release of the index type wrote the entry.
            FileNotFoundError: the base file is gone.
            NativeModuleMissing: the native module of the index type is not installed.
        """
        kind = index_type(entry.manifest.index_type).configured(self._settings)
        refuse_newer(entry.manifest, kind)
        kind.check_runtime()
        outcome = Outcome()
        if is_outdated(entry.manifest, kind):
            version = entry.manifest.index_type_version
            outcome.wrong.append((entry.data_path, f"it has the older version {version}."))
            return outcome
        try:
            with _as_stored(self._storage, entry, self._settings) as index:
                outcome.wrong += [(entry.data_path, each) for each in _bytes(entry, index)]
                if not outcome.wrong:
                    self._check_content(entry, base_file, kind, index, outcome)
        except EntryInvalid as error:
            outcome.wrong.append((entry.data_path, error.message))
        return outcome

    def _check_content(
        self,
        entry: Entry,
        base_file: BaseFile,
        kind: IndexType,
        index: PackedIndex,
        outcome: Outcome,
    ) -> None:
        columns = entry.manifest.columns
        outcome.wrong += [(entry.data_path, each) for each in kind.verify(index, indexed(columns))]
        footer = footer_sha256(self._storage, base_file.path, base_file.size)
        if footer != entry.manifest.base_file.footer_sha256:
            reason = f"the footer of {base_file.path} is not the one it was built from."
            outcome.wrong.append((entry.data_path, reason))
        if outcome.wrong or not self._sample:
            return
        sample = RowSample(self._storage, base_file, index, self._schema, columns, self._sample)
        outcome.rows = len(sample.positions)
        outcome.wrong += [(entry.data_path, each) for each in sample.compare(kind)]


def _bytes(entry: Entry, index: PackedIndex) -> Iterator[str]:
    """The problems that the checksums show."""
    crc32s, sha256 = checksums(index.path)
    damaged = [
        str(number)
        for number, (actual, expected) in enumerate(zip(crc32s, index.block_crc32, strict=True))
        if actual != expected
    ]
    if damaged:
        numbers = ", ".join(damaged[:10]) + (", …" if len(damaged) > 10 else "")
        yield f"blocks are damaged: {numbers} of {len(crc32s)}, {index.block_size} bytes each."
    elif sha256 != entry.manifest.data.sha256:
        yield "its SHA-256 is not the manifest's."


@contextmanager
def _as_stored(storage: Storage, entry: Entry, settings: Settings) -> Iterator[PackedIndex]:
    """Yields the data file as the store has it now, never an older copy from the user's cache."""
    if storage.is_local:
        with packed_index(storage, entry, settings) as index:
            yield index
        return
    with scratch_folder() as scratch:
        scratch_settings = settings.model_copy(update={"cache_folder": scratch})
        with packed_index(storage, entry, scratch_settings) as index:
            yield index
