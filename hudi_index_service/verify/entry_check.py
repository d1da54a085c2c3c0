"""Everything that can be said of one entry by reading it, and its base file's footer and some of
its rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hudi_index_service.build.reconcile import refuse_newer
from hudi_index_service.build.scratch import scratch_folder
from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import IndexType, PackedIndex
from hudi_index_service.index.entry import Entry
from hudi_index_service.index.factory import check_runtime, index_type, with_settings
from hudi_index_service.index.local_copy import packed_index
from hudi_index_service.index.packed_file import checksums
from hudi_index_service.storage import Storage
from hudi_index_service.table.parquet_file import footer_sha256
from hudi_index_service.table.protocol import BaseFile, HudiTable
from hudi_index_service.verify.row_sample import RowSample


@dataclass(slots=True)
class Outcome:
    """What the check of one entry found.

    Attributes:
        wrong: Path and reason of everything that is wrong.
        rows: Rows whose values were looked up.
    """

    wrong: list[tuple[str, str]] = field(default_factory=list)
    rows: int = 0


class EntryCheck:
    """Checks entries of one table.

    Args:
        sample: How many rows of each base file to look up.
    """

    def __init__(self, table: HudiTable, settings: Settings, sample: int) -> None:
        self._storage = table.storage
        self._schema = table.schema()
        self._settings = settings
        self._sample = sample

    def check(self, entry: Entry, base_file: BaseFile) -> Outcome:
        """Checks one entry; each step only if what it rests on is right.

        Raises:
            NewerFormat: a newer release of the index type wrote the entry.
            FileNotFoundError: the base file is gone.
            NativeModuleMissing: what the index type runs on is not installed.
        """
        kind = with_settings(index_type(entry.manifest.index_type), self._settings)
        refuse_newer(entry.manifest, kind)
        check_runtime(kind)
        outcome = Outcome()
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
        columns = [column.stored() for column in entry.manifest.columns]
        outcome.wrong += [(entry.data_path, each) for each in kind.verify(index, columns)]
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
    """What the checksums say."""
    crc32s, sha256 = checksums(index.path)
    damaged = [
        str(number)
        for number, (actual, expected) in enumerate(zip(crc32s, index.block_crc32, strict=True))
        if actual != expected
    ]
    if damaged:
        listed = ", ".join(damaged[:10]) + (", …" if len(damaged) > 10 else "")
        yield f"blocks are damaged: {listed} of {len(crc32s)}, {index.block_size} bytes each."
    elif sha256 != entry.manifest.data.sha256:
        yield "its SHA-256 is not the manifest's."


@contextmanager
def _as_stored(storage: Storage, entry: Entry, settings: Settings) -> Iterator[PackedIndex]:
    """The data file as the store has it now, never an older copy from the user's cache."""
    if storage.is_local:
        with packed_index(storage, entry, settings) as index:
            yield index
        return
    with scratch_folder() as scratch:
        apart = settings.model_copy(update={"cache_folder": scratch})
        with packed_index(storage, entry, apart) as index:
            yield index
