"""Summaries: the manifests of all entries of one instant in one document, so that a first query
needs one request to a remote store per instant, not one per file.

    .hoodie/.index/_service/instants/<index type>/<instant>-000N.json

A summary holds the exact texts of the manifests, including their checksums, and nothing else. The
listing of the entries decides which manifests exist. A summary may be missing, may lack manifests,
and may hold deleted ones; manifests that it lacks are read one by one.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from typing import ClassVar, NamedTuple

from hudi_index_service.errors import EntryInvalid, EntryUnusable
from hudi_index_service.index.metadata.documents import (
    SERVICE_FOLDER,
    UNREADABLE,
    Document,
    NewerFormat,
    document_name,
    numbers_of,
)
from hudi_index_service.index.metadata.manifest import Manifest, instant_of
from hudi_index_service.storage.store import Storage, StoredFile

log = logging.getLogger(__name__)

SUMMARIES_FOLDER = f"{SERVICE_FOLDER}/instants"

MOST_BYTES = 64 * 2**20
"""Bytes of manifests in one summary; manifests that do not fit are left out."""

BYTES_A_REQUEST = 256 * 2**10  # roughly what a store sends in the time of one concurrent request

_READ_AT_ONCE = 32
_AT_MOST_TRIED = 5  # numbers, when other builders write summaries of the same instant


class Summary(Document):
    """See docs/format.md."""

    kind: ClassVar[str] = "summary"

    index_type: str
    instant: str
    manifests: dict[str, str]


class SummaryStore:
    """The summaries of one index type's entries."""

    def __init__(self, storage: Storage, index_type: str) -> None:
        self._storage = storage
        self._index_type = index_type
        self._folder = f"{SUMMARIES_FOLDER}/{index_type}"

    def listed(self) -> dict[str, dict[int, StoredFile]]:
        """Instant → its summaries by number, from one listing. The highest number counts."""
        summaries: defaultdict[str, dict[int, StoredFile]] = defaultdict(dict)
        for file in self._storage.files(self._folder):
            name = file.path.rsplit("/", 1)[1]
            instant = name.rsplit("-", 1)[0]
            for number in numbers_of(instant, [name]):
                summaries[instant][number] = file
        return summaries

    def read(self, instant: str, file: StoredFile) -> Summary:
        """Reads a listed summary.

        Raises:
            EntryInvalid: it is damaged, of a newer format, or of another instant.
            FileNotFoundError: it was deleted.
        """
        summary = Summary.from_json(self._storage.read(file.path), source=file.path)
        if (summary.index_type, summary.instant) != (self._index_type, instant):
            raise EntryInvalid(
                f"{file.path} is the {summary.index_type} summary of {summary.instant}, not the "
                f"{self._index_type} summary of {instant}."
            )
        return summary

    def manifests(self, listed: Mapping[str, StoredFile]) -> Iterator[tuple[str, Manifest]]:
        """Those of some listed manifests whose texts are in summaries and have the listed length,
        by path, as far as reading summaries saves requests. Whether the stored manifest is the same
        is for the caller to say. Errors are logged."""
        worthwhile = self._worthwhile(listed) if len(listed) > 1 else {}
        if not worthwhile:
            return
        with ThreadPoolExecutor(min(len(worthwhile), _READ_AT_ONCE), "summary") as threads:
            texts = list(threads.map(self._texts, worthwhile, worthwhile.values()))
        for path, text in chain.from_iterable(each.items() for each in texts):
            content = text.encode()
            if path in listed and len(content) == listed[path].size:
                with suppress(EntryInvalid):
                    yield path, Manifest.from_json(content, source=path)

    def _worthwhile(self, listed: Mapping[str, StoredFile]) -> dict[str, StoredFile]:
        """Instant → its summary, where that saves requests."""
        try:
            summaries = self.listed()
        except EntryUnusable as error:
            log.warning("Manifests are read one by one: %s", error)
            return {}
        sizes: defaultdict[str, list[int]] = defaultdict(list)
        for path, file in listed.items():
            sizes[instant_of(path)].append(file.size)
        newest = {each: summaries[each][max(summaries[each])] for each in summaries}
        return {
            instant: newest[instant]
            for instant, each in sizes.items()
            if len(each) > 1
            and instant in newest
            and newest[instant].size <= sum(each) + (len(each) - 1) * BYTES_A_REQUEST
        }

    def _texts(self, instant: str, file: StoredFile) -> Mapping[str, str]:
        """The manifests in a listed summary; none if it cannot be read."""
        try:
            return self.read(instant, file).manifests
        except UNREADABLE as error:
            log.warning("Manifests of %s are read one by one: %s", instant, error)
            return {}

    def add(self, instant: str, manifests: Mapping[str, str], *, newest: int) -> None:
        """Stores the next summary of an instant, which supersedes the earlier ones.

        Args:
            manifests: Path → text of each manifest.
            newest: The highest number known to be taken; 0 if none is.
        """
        texts: dict[str, str] = {}
        bytes_left = MOST_BYTES
        for path, text in sorted(manifests.items()):
            bytes_left -= len(text)
            if bytes_left < 0:
                break
            texts[path] = text
        summary = Summary(index_type=self._index_type, instant=instant, manifests=texts)
        content = summary.to_json()
        for number in range(newest + 1, newest + 1 + _AT_MOST_TRIED):
            try:
                self._storage.create(f"{self._folder}/{document_name(instant, number)}", content)
                return
            except FileExistsError:  # another builder took the number
                continue


class StoredSummary(NamedTuple):
    """A summary as cleaning sees it.

    Attributes:
        unused: Why no reader uses it; "" if readers do.
        holds: Paths of the manifests in it, if readers use it.
    """

    file: StoredFile
    unused: str
    holds: Collection[str] = ()


def stored_summaries(storage: Storage) -> Iterator[StoredSummary]:
    """All of the table's summaries."""
    for folder in storage.folders(SUMMARIES_FOLDER):
        store = SummaryStore(storage, folder.rsplit("/", 1)[1])
        for instant, files in store.listed().items():
            newest = files.pop(max(files))
            for each in files.values():
                yield StoredSummary(each, "a newer summary serves")
            try:
                yield StoredSummary(newest, "", store.read(instant, newest).manifests.keys())
            except NewerFormat:
                yield StoredSummary(newest, "it is of a newer release")
            except EntryInvalid:
                yield StoredSummary(newest, "it is damaged")
            except FileNotFoundError:
                continue
