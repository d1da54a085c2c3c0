"""Summaries: the manifests of all entries of one instant in one document, so that a query that
knows nothing yet asks a remote store once an instant, and not once a file.

    .hoodie/.index/_service/instants/<index type>/<instant>-000N.json

A summary says nothing that the manifests do not say: it holds their very texts, checksums included.
Which of them exist is for the listing of the entries to say. Any summary may be missing, or lack
manifests, or have some that are no more: what it lacks is read from the manifests themselves.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

from hudi_index_service.documents import (
    SERVICE_FOLDER,
    Document,
    NewerFormat,
    document_name,
    numbers_of,
)
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.storage import Storage, StoredFile

SUMMARIES_FOLDER = f"{SERVICE_FOLDER}/instants"

MOST_BYTES = 64 * 2**20
"""Bytes of manifests in one summary; those that do not fit in are left out."""

_AT_MOST_TRIED = 5  # numbers, where others write summaries of the same instant


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
        """Instant → its summaries, the newest first, by one listing."""
        files = {each.path.rsplit("/", 1)[1]: each for each in self._storage.files(self._folder)}
        names: defaultdict[str, list[str]] = defaultdict(list)
        for name in files:
            names[name.rsplit("-", 1)[0]].append(name)
        return {
            instant: [files[document_name(instant, n)] for n in numbers_of(instant, found)]
            for instant, found in names.items()
            if numbers_of(instant, found)
        }

    def read(self, instant: str, file: StoredFile) -> Summary:
        """A summary that was listed.

        Raises:
            EntryInvalid: it is damaged, of a newer format, or another instant's.
            FileNotFoundError: it is gone.
        """
        summary = Summary.from_json(self._storage.read(file.path), source=file.path)
        if (summary.index_type, summary.instant) != (self._index_type, instant):
            raise EntryInvalid(f"{file.path} is a summary of {summary.instant}.")
        return summary

    def add(self, instant: str, manifests: Mapping[str, str], *, newest: int) -> None:
        """Stores the next summary of an instant, which supersedes the others.

        Args:
            manifests: Path of each → its text.
            newest: The highest number that is known to be taken; 0 for none.
        """
        held: dict[str, str] = {}
        left = MOST_BYTES
        for path, text in sorted(manifests.items()):
            left -= len(text)
            if left < 0:
                break
            held[path] = text
        summary = Summary(index_type=self._index_type, instant=instant, manifests=held)
        content = summary.to_json()
        for number in range(newest + 1, newest + 1 + _AT_MOST_TRIED):
            try:
                self._storage.create(f"{self._folder}/{document_name(instant, number)}", content)
                return
            except FileExistsError:  # another builder's, of about the same moment
                continue


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """A summary as cleaning sees it.

    Attributes:
        holds: Paths of the manifests that it holds; None for one that no reader takes.
        reason: Why none does.
    """

    file: StoredFile
    holds: Collection[str] | None
    reason: str = ""


def stored_summaries(storage: Storage) -> list[StoredSummary]:
    """All of the table's summaries."""
    found = []
    for folder in storage.folders(SUMMARIES_FOLDER):
        store = SummaryStore(storage, folder.rsplit("/", 1)[1])
        for instant, (newest, *older) in store.listed().items():
            found += [StoredSummary(each, None, "a newer summary serves") for each in older]
            try:
                found.append(StoredSummary(newest, store.read(instant, newest).manifests.keys()))
            except NewerFormat:
                found.append(StoredSummary(newest, None, "it is of a newer release"))
            except EntryInvalid:
                found.append(StoredSummary(newest, None, "it is damaged"))
            except FileNotFoundError:
                continue
    return found
