"""Joins the indexes of a base file's parts into one index that consists of all their segments."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import FileRange, PackedIndex
from hudi_index_service.index.lucene import jvm
from hudi_index_service.index.lucene.directory import packed_directory

_LIST_OF_SEGMENTS = "segments_"


def combine(parts: Sequence[PackedIndex], folder: Path) -> Mapping[str, Path | FileRange]:
    """See `hudi_index_service.index.contract.IndexType.combine`. Reads only the parts' lists of
    segments; the segments' own files stay in place."""
    lucene = jvm.attach()
    from hudiindex import SegmentList
    from java.nio.file import Paths
    from org.apache.lucene.store import Directory, FSDirectory

    rows = sum(part.rows for part in parts)
    with ExitStack() as stack:
        target = FSDirectory.open(Paths.get(str(folder)))
        stack.callback(target.close)
        try:
            directories = []
            for part in parts:
                directories.append(packed_directory(part))
                stack.callback(directories[-1].close)
            row_count = SegmentList.join(lucene.JArray("object")(directories, Directory), target)
        except lucene.JavaError as error:
            raise EntryInvalid(f"Parts of an index cannot be joined: {error}.") from error
    if row_count != rows:
        raise EntryInvalid(f"Parts of an index have {row_count} rows together, not {rows}.")
    files: dict[str, Path | FileRange] = {path.name: path for path in folder.iterdir()}
    for part in parts:
        for name, (offset, length) in part.members.items():
            if not name.startswith(_LIST_OF_SEGMENTS):
                files[name] = FileRange(part.path, offset, length)
    return files
