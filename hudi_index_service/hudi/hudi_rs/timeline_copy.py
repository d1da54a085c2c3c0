"""A table's properties and timeline in a folder of the local disk, without its data files.

hudi-rs merges log files only with a base file of the table. To merge a few rows of a base file,
they are written as a small one into this folder, beside the slice's log files.
"""

from collections.abc import Hashable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hudi

from hudi_index_service.hudi.hudi_rs.errors import hudi_rs_errors_named
from hudi_index_service.hudi.properties import PROPERTIES_FILE
from hudi_index_service.hudi.timeline import parse_timeline, timeline_folder
from hudi_index_service.storage.store import Storage

_MOST_READERS = 100


class TimelineCopy:
    """The copy, removed with this object. Make it by `of`.

    Attributes:
        folder: Its path.
        table: hudi-rs' table on it.
    """

    def __init__(self, folder: "TemporaryDirectory[str]", table: Any) -> None:
        self._folder = folder
        self.folder = Path(folder.name)
        self.table = table
        self._readers: dict[Hashable, Any] = {}

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
        folder = TemporaryDirectory(prefix="hudi-index-merge-")
        instants = timeline_folder(table_version)
        names = storage.names_in(instants)
        if parse_timeline(names).version != timeline:
            return None
        paths = [f"{instants}/{name}" for name in names]
        place(storage, list({PROPERTIES_FILE, *paths}), Path(folder.name))
        with hudi_rs_errors_named(f"{storage.uri}: the copy of its timeline"):
            return cls(folder, hudi.HudiTableBuilder(folder.name).build())


def place(storage: Storage, paths: Sequence[str], folder: Path) -> list[Path]:
    """Makes a table's files readable at the same paths below a local folder: local ones by links.

    Raises:
        FileNotFoundError: a file of a remote store is gone.
    """
    placed = [folder / path for path in paths]
    for path, target in zip(paths, placed, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        if storage.is_local:
            target.symlink_to(storage.local_path(path))
        else:
            storage.download(path, target)
    return placed
