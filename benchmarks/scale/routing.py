"""The runs of a table's segments: their size, and queries without them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.build import log
from benchmarks.scale import tables
from hudi_index_service.index.metadata.segments.segment import merged
from hudi_index_service.index.metadata.segments.store import SEGMENTS_FOLDER, SegmentStore
from hudi_index_service.storage.store import Storage


def routing_bytes_a_pair(scratch: Path, files: int) -> float:
    """Bytes of the table's runs per pair of a value and a base file."""
    segments = _store(tables.folder_of(scratch, files)).readable()
    columns = [column for segment in segments for column in segment.document.columns]
    runs = [column.run for column in columns if column.run is not None]
    size = sum(each.packed_bytes + each.directory_bytes for each in runs)
    bytes_a_pair = round(size / sum(each.pairs for each in runs), 2)
    log(f"{files} base files: {len(runs)} runs, {bytes_a_pair} bytes a pair")
    return bytes_a_pair


@contextmanager
def without_runs(table: Path) -> Iterator[None]:
    """The table's segments have statistics alone for the length of the block."""
    folder, aside = table / SEGMENTS_FOLDER, table.with_name(f"{table.name}.segments")
    if not aside.exists():  # else a killed run has left it
        shutil.copytree(folder, aside)
    store = _store(table)
    try:
        for each in store.readable():
            store.add(merged([replace(each.facts(), pairs={})]), [each.name])
            (table / SEGMENTS_FOLDER / "lucene" / each.name).unlink()
        yield
    finally:
        shutil.rmtree(folder)
        aside.rename(folder)


def _store(table: Path) -> SegmentStore:
    return SegmentStore(Storage(table), "lucene")
