"""What a build writes beside its entries for planning: segments of the facts of many base files,
larger segments in their place, and summaries of instants, for first queries of remote tables.

Nothing depends on them: errors are logged, and do not fail the build.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock

from hudi_index_service.errors import (
    EntryInvalid,
    IndexServiceError,
    PermissionDenied,
    StorageFailed,
)
from hudi_index_service.index.metadata.entry import EntryListing, manifest_path
from hudi_index_service.index.metadata.manifest import entry_folder_at, instant_of
from hudi_index_service.index.metadata.segments.segment import Facts, facts_of, merged
from hudi_index_service.index.metadata.segments.segment_file import SegmentFile
from hudi_index_service.index.metadata.segments.store import SegmentStore
from hudi_index_service.index.metadata.summary import SummaryStore
from hudi_index_service.storage.store import Storage

log = logging.getLogger(__name__)

_READ_AT_ONCE = 32
_MOST_FILES = 32
_MOST_PAIRS = 2**21
"""Pairs that wait to be written, 24 MB."""


class FactWriter:
    """Collects the facts of base files whose entries are built, and writes them to segments. As a
    context manager, it writes the rest at its end. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[tuple[str, str], tuple[Storage, list[Facts]]] = {}

    def __enter__(self) -> "FactWriter":
        return self

    def __exit__(self, *_: object) -> None:
        while self._waiting:
            key, waiting = self._waiting.popitem()
            _write(key[1], *waiting)

    def add(self, storage: Storage, index_type: str, facts: Facts) -> None:
        """Adds the facts of a base file whose entry is published."""
        key = storage.uri, index_type
        with self._lock:
            waiting = self._waiting.setdefault(key, (storage, []))
            waiting[1].append(facts)
            pairs = sum(len(run.keys) for each in waiting[1] for run in each.pairs.values())
            if len(waiting[1]) < _MOST_FILES and pairs < _MOST_PAIRS:
                return
            del self._waiting[key]
        _write(index_type, *waiting)


def _write(index_type: str, storage: Storage, some: Sequence[Facts]) -> None:
    facts = merged(some)
    paths = facts.files["path"].to_pylist()
    try:
        store = SegmentStore(storage, index_type)
        store.add(facts)
        # A cleaner that removed an entry while its facts waited did not see this segment.
        folders = {path: entry_folder_at(index_type, path) for path in paths}
        only = [folder for folder in folders.values() if folder is not None]
        listing = EntryListing(storage, index_type, only=only)
        gone = {path for path in paths if not listing.generations(folders[path] or "")}
        if gone:
            store.forget_files(gone)
    except (PermissionDenied, StorageFailed) as error:
        log.warning("No segment was written for %s and others: %s", paths[0], error)


def summarize(storage: Storage, index_type: str, instants: Collection[str]) -> None:
    """Writes a summary of each given instant, and of other instants that lack one because a build
    died too early. An instant with one entry needs no summary."""
    try:
        store = SummaryStore(storage, index_type)
        summaries = store.listed()
        listing = EntryListing(storage, index_type)
        manifests: defaultdict[str, list[str]] = defaultdict(list)  # the newest ones, by instant
        for folder in listing.folders():
            for number in listing.generations(folder)[:1]:
                manifests[instant_of(folder)].append(manifest_path(folder, number))
        for instant, paths in manifests.items():
            if len(paths) > 1 and (instant in instants or instant not in summaries):
                newest = max(summaries.get(instant, ()), default=0)
                store.add(instant, _texts(storage, paths), newest=newest)
    except (IndexServiceError, OSError) as error:
        log.warning("Not all summaries of %s were written: %s", index_type, error)


def merge_segments(storage: Storage, index_type: str) -> None:
    """Merges small segments, and states the statistics of entries that no segment knows, such as
    those of earlier releases. After an error, the next build continues."""
    try:
        store = SegmentStore(storage, index_type)
        segments = store.merge()
        unknown = _unknown_facts(storage, index_type, segments)
        if unknown:
            store.add(merged(unknown))
    except (IndexServiceError, OSError) as error:
        log.warning("Not all segments of %s were merged: %s", index_type, error)


def _unknown_facts(
    storage: Storage, index_type: str, segments: Sequence[SegmentFile]
) -> list[Facts]:
    """The facts of base files that have an entry and are in no segment, without their values."""
    known = {
        entry_folder_at(index_type, path)
        for segment in segments
        for path in segment.files["path"].to_pylist()
    }
    listing = EntryListing(storage, index_type)
    facts = []
    for folder in listing.folders():
        if folder not in known:
            with suppress(EntryInvalid):
                facts.append(facts_of(listing.newest_valid(folder), {}))
    return facts


def _texts(storage: Storage, paths: Collection[str]) -> dict[str, str]:
    """The manifests' texts, without manifests that were deleted or are not text."""
    with ThreadPoolExecutor(min(len(paths), _READ_AT_ONCE), "summary") as threads:
        read = {path: threads.submit(storage.read, path) for path in paths}
    texts: dict[str, str] = {}
    for path, content in read.items():
        with suppress(FileNotFoundError, UnicodeDecodeError):
            texts[path] = content.result().decode()
    return texts
