"""Writes summaries of the instants whose entries a build has built (see `index.summary`)."""

import logging
from collections import defaultdict
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from hudi_index_service.errors import IndexServiceError
from hudi_index_service.index.entries.entry import MANIFEST_STEM, EntryListing, instant_of
from hudi_index_service.index.entries.summary import SummaryStore
from hudi_index_service.metadata.documents import document_name, numbers_of
from hudi_index_service.storage.store import Storage

log = logging.getLogger(__name__)

_READ_AT_ONCE = 32


def summarise(storage: Storage, index_type: str, instants: Collection[str]) -> None:
    """Writes a summary of each given instant, and of other instants that lack one because a build
    died too early. An instant with one entry needs no summary.

    Nothing depends on summaries: errors are logged and do not fail the build.
    """
    try:
        store = SummaryStore(storage, index_type)
        summaries = store.listed()
        for instant, paths in _manifests(EntryListing(storage, index_type)).items():
            if len(paths) > 1 and (instant in instants or instant not in summaries):
                names = (file.path.rsplit("/", 1)[1] for file in summaries.get(instant, ()))
                newest = max(numbers_of(instant, names), default=0)
                store.add(instant, _texts(storage, paths), newest=newest)
    except (IndexServiceError, OSError) as error:
        log.warning("Not all summaries of %s were written: %s", index_type, error)


def _manifests(listing: EntryListing) -> dict[str, list[str]]:
    """Instant → the path of each of its entries' newest manifest."""
    manifests: defaultdict[str, list[str]] = defaultdict(list)
    for folder in listing.folders():
        for number in listing.generations(folder)[:1]:
            manifests[instant_of(folder)].append(f"{folder}/{document_name(MANIFEST_STEM, number)}")
    return manifests


def _texts(storage: Storage, paths: Collection[str]) -> dict[str, str]:
    """The manifests' texts, without manifests that were deleted or are not text."""
    with ThreadPoolExecutor(min(len(paths), _READ_AT_ONCE), "summary") as threads:
        texts = dict(zip(paths, threads.map(lambda path: _text(storage, path), paths), strict=True))
    return {path: text for path, text in texts.items() if text is not None}


def _text(storage: Storage, path: str) -> str | None:
    try:
        return storage.read(path).decode()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
