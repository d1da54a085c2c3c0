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
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

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

    def listed(self) -> dict[str, list[StoredFile]]:
        """Instant → its summaries, newest first, from one listing."""
        files = {each.path.rsplit("/", 1)[1]: each for each in self._storage.files(self._folder)}
        names: defaultdict[str, list[str]] = defaultdict(list)
        for name in files:
            names[name.rsplit("-", 1)[0]].append(name)
        return {
            instant: [files[document_name(instant, n)] for n in numbers_of(instant, file_names)]
            for instant, file_names in names.items()
            if numbers_of(instant, file_names)
        }

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

    def manifests(
        self, listed: Mapping[str, StoredFile], threads: Executor
    ) -> Iterator[tuple[str, Manifest]]:
        """Those of some listed manifests whose texts are in summaries and have the listed length,
        by path, as far as reading summaries saves requests. Whether the stored manifest is the same
        is for the caller to say. Errors are logged."""
        for summary in threads.map(self._read, *self._worthwhile(listed)):
            for path, text in {} if summary is None else summary.manifests.items():
                content = text.encode()
                if path in listed and len(content) == listed[path].size:
                    with suppress(EntryInvalid):
                        yield path, Manifest.from_json(content, source=path)

    def _worthwhile(self, listed: Mapping[str, StoredFile]) -> tuple[list[str], list[StoredFile]]:
        """The instants for which a summary saves requests, and those summaries."""
        if len(listed) < 2:
            return [], []
        try:
            summaries = self.listed()
        except EntryUnusable as error:
            log.warning("Manifests are read one by one: %s", error)
            return [], []
        by_instant: defaultdict[str, list[StoredFile]] = defaultdict(list)
        for path, file in listed.items():
            by_instant[instant_of(path)].append(file)
        worthwhile: dict[str, StoredFile] = {}
        for instant, files in by_instant.items():
            for summary in summaries.get(instant, ())[:1]:
                saved_bytes = sum(file.size for file in files) + (len(files) - 1) * BYTES_A_REQUEST
                if len(files) > 1 and summary.size <= saved_bytes:
                    worthwhile[instant] = summary
        return list(worthwhile), list(worthwhile.values())

    def _read(self, instant: str, file: StoredFile) -> Summary | None:
        try:
            return self.read(instant, file)
        except UNREADABLE as error:
            log.warning("Manifests of %s are read one by one: %s", instant, error)
            return None

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


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """A summary as cleaning sees it.

    Attributes:
        holds: Paths of the manifests in it; None if no reader uses the summary.
        reason: Why no reader uses it.
    """

    file: StoredFile
    holds: Collection[str] | None
    reason: str = ""


def stored_summaries(storage: Storage) -> list[StoredSummary]:
    """All of the table's summaries."""
    summaries = []
    for folder in storage.folders(SUMMARIES_FOLDER):
        store = SummaryStore(storage, folder.rsplit("/", 1)[1])
        for instant, (newest, *older) in store.listed().items():
            summaries += [StoredSummary(each, None, "a newer summary serves") for each in older]
            try:
                summaries.append(
                    StoredSummary(newest, store.read(instant, newest).manifests.keys())
                )
            except NewerFormat:
                summaries.append(StoredSummary(newest, None, "it is of a newer release"))
            except EntryInvalid:
                summaries.append(StoredSummary(newest, None, "it is damaged"))
            except FileNotFoundError:
                continue
    return summaries
