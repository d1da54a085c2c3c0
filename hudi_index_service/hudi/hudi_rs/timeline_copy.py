"""hudi-rs' table on one timeline; and a table's properties and timeline in a folder of the local
disk, without its data files.

hudi-rs merges log files only with a base file of the table. To merge a few rows of a base file,
they are written as a small one into this folder, beside the slice's log files. A store that hudi-rs
cannot open is read by such a copy alone: a slice's files are put there while they are merged.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Self

from hudi_index_service.hudi.hudi_rs import hudi_rs_errors_named
from hudi_index_service.hudi.properties import PROPERTIES_FILE
from hudi_index_service.hudi.timeline import list_timeline, parse_timeline, timeline_folder
from hudi_index_service.storage.store import Storage
from hudi_index_service.storage.temporary_folder import MERGING, OwnedFolder

if TYPE_CHECKING:
    import hudi

_UNKNOWN_TO_HUDI_RS = "hdfs://"
_MOST_READERS = 100
_DOWNLOADS = 8  # at a time


class TimelineCopy:
    """The copy, removed with this object. Make it by `of`.

    Attributes:
        folder: Its path.
        table: hudi-rs' table on it.
    """

    def __init__(self, storage: Storage, folder: OwnedFolder, table: Any) -> None:
        self._storage = storage
        self._folder = folder
        self.folder = Path(folder.name)
        self.table = table
        self._readers: dict[Hashable, Any] = {}
        self._holders: Counter[Path] = Counter()
        self._holding = Lock()

    def reader(self, key: Hashable, options: "hudi.HudiReadOptions") -> Any:
        """hudi-rs' reader with these options, which makes several slices' merges cheaper.

        Args:
            key: The same for the same options.
        """
        if key not in self._readers:
            if len(self._readers) >= _MOST_READERS:
                self._readers.clear()
            self._readers[key] = self.table.create_file_group_reader_with_options(options)
        return self._readers[key]

    @classmethod
    def of(cls, storage: Storage, table_version: int, timeline: str) -> "TimelineCopy | None":
        """The copy of a table's timeline; None if the timeline is another one now.

        Args:
            timeline: The version of the timeline, see `Timeline`.
        """
        folder = OwnedFolder(MERGING)
        instants = timeline_folder(table_version)
        names = storage.names_in(instants)
        if parse_timeline(names).version != timeline:
            return None
        paths = {PROPERTIES_FILE, *(f"{instants}/{name}" for name in names)}
        with ThreadPoolExecutor(_DOWNLOADS, "timeline-copy") as threads:
            try:
                # Consumed, so that the first failure is raised.
                list(
                    threads.map(lambda each: _place(storage, each, Path(folder.name, each)), paths)
                )
            except FileNotFoundError:  # an instant was archived meanwhile
                return None
        with hudi_rs_errors_named(f"{storage.uri}: the copy of its timeline"):
            return cls(storage, folder, _opened(folder.name))

    @contextmanager
    def holding(
        self, paths: Sequence[str], contents: Mapping[str, bytes] | None = None
    ) -> Iterator[None]:
        """Makes files of the table readable at the same paths below `folder`, for the block.
        Several threads may hold the same file.

        Args:
            contents: Files by path that need not be read from the store again.

        Raises:
            FileNotFoundError: a file of a remote store is gone.
        """
        with ExitStack() as held:
            for path in paths:
                target = self.folder / path
                with self._holding:
                    self._holders[target] += 1
                held.callback(self._release, target)
                if not target.is_file():
                    _place(self._storage, path, target, (contents or {}).get(path))
            yield

    def _release(self, target: Path) -> None:
        with self._holding:
            self._holders[target] -= 1
            if not self._holders[target]:
                del self._holders[target]
                target.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class TableOnTimeline:
    """hudi-rs' table on one timeline. A reader made by it has that timeline.

    Attributes:
        table: hudi-rs' own.
        copy: The copy of the timeline that it is on, in a store that hudi-rs cannot open.
    """

    table: Any
    copy: TimelineCopy | None

    @classmethod
    def of(cls, storage: Storage, table_version: int, timeline: str) -> Self | None:
        """The table; None if the timeline is another one now. Takes what `TimelineCopy.of` takes.

        Raises:
            NeedsSpark, StorageFailed: hudi-rs cannot open it.
        """
        if storage.uri.startswith(_UNKNOWN_TO_HUDI_RS):
            copy = TimelineCopy.of(storage, table_version, timeline)
            return None if copy is None else cls(copy.table, copy)
        with hudi_rs_errors_named(f"{storage.uri} cannot be opened"):
            table = _opened(storage.uri, storage.options)
        # It has listed the timeline itself. If that is unchanged now, it saw the same one.
        is_same = list_timeline(storage, table_version).version == timeline
        return cls(table, None) if is_same else None


def _opened(uri: str, options: Mapping[str, Any] | None = None) -> Any:
    import hudi

    storage_options = {key: str(value) for key, value in (options or {}).items()}
    return hudi.HudiTableBuilder(uri, storage_options=storage_options).build()


def _place(storage: Storage, path: str, target: Path, content: bytes | None = None) -> None:
    """Makes a table's file readable at a local path in one step: a local file by a link."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f"{target.name}#{get_ident()}")
    if storage.is_local:
        beside.symlink_to(storage.local_path(path))
    elif content is not None:
        beside.write_bytes(content)
    else:
        storage.download(path, beside)
    beside.replace(target)
