"""The active timeline, from one listing of its folder.

On table versions 8 and newer it is ``.hoodie/timeline/``: a completed instant is the file
``<requested>_<completed>.<action>``. On version 6 it is ``.hoodie/`` itself, with
``<requested>.<action>``. An instant that is not completed has only ``….requested`` or
``….inflight`` files. Archived instants are no longer listed.

Times as users write them (`instant_of`) have the forms of Spark's option ``as.of.instant``, and are
interpreted as Hudi does (``HoodieSqlCommonUtils.formatQueryInstant``): in the table's time zone,
not the session's.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache

import pyarrow as pa

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hudi.properties import HOODIE_FOLDER
from hudi_index_service.hudi.snapshot import Instant
from hudi_index_service.storage.store import Storage

TIMELINE_FOLDER = f"{HOODIE_FOLDER}/timeline"
WRITE_ACTIONS = ("commit", "deltacommit", "replacecommit")
_UNDOINGS = ("rollback", "restore")
_REMOVALS = ("clean", *_UNDOINGS)

# <requested>[_<completed>].<action>[.requested|.inflight]; a plain commit in flight is
# <requested>.inflight.
_INSTANT_FILE = re.compile(
    r"(?P<requested>[0-9]+)(?:_(?P<completed>[0-9]+))?\.(?P<action>[a-z]+)"
    r"(?:\.(?P<state>requested|inflight))?"
)

_INSTANT = "%Y%m%d%H%M%S"
_FORMS = {
    len("yyyyMMddHHmmssSSS"): f"{_INSTANT}%f",
    len("yyyyMMddHHmmss"): _INSTANT,
    len("yyyy-MM-dd HH:mm:ss.SSS"): "%Y-%m-%d %H:%M:%S.%f",
    len("yyyy-MM-dd HH:mm:ss"): "%Y-%m-%d %H:%M:%S",
    len("yyyy-MM-dd"): "%Y-%m-%d",
}
_DIGITS_FORMS = ("yyyyMMddHHmmssSSS", "yyyyMMddHHmmss")


@dataclass(frozen=True)
class Timeline:
    """One listing of the active timeline; immutable.

    Attributes:
        instants: Completed commits, delta commits and replace commits, by requested time.
        pending: Requested time → action of instants with no completed file (``compaction``,
            ``clustering``, ``commit``, …).
        savepoints: Requested times of the savepointed instants.
        removals: Requested times of cleans, rollbacks and restores, completed or not: these delete
            files of completed instants.
        undoings: Those of rollbacks and restores alone: these take completed instants away.
        version: Digest of the listing's names: equal while nothing is committed, nor begun.
        others: Completed instants of all other actions (``clean``, ``rollback``, ``savepoint``, …),
            by requested time.
    """

    instants: tuple[Instant, ...]
    pending: dict[str, str]
    savepoints: frozenset[str]
    removals: frozenset[str]
    undoings: frozenset[str]
    version: str
    others: tuple[Instant, ...] = ()

    @cached_property
    def by_requested(self) -> dict[str, Instant]:
        """The completed instants by requested time."""
        return {instant.requested: instant for instant in self.instants}

    @cached_property
    def start(self) -> str | None:
        """Requested time of the first completed instant without a savepoint. Older instants have
        been archived, which happens only to completed ones. None on an empty timeline.

        Savepointed instants can stay while younger ones are archived
        (``hoodie.archive.beyond.savepoint``), so they do not show where the timeline starts (Hudi's
        `BaseHoodieTimeline.getFirstNonSavepointCommit`).
        """
        for instant in self.instants:
            if instant.requested not in self.savepoints:
                return instant.requested
        return self.instants[0].requested if self.instants else None

    @property
    def latest(self) -> str | None:
        """Requested time of the latest completed instant."""
        return self.instants[-1].requested if self.instants else None

    def is_committed(self, requested: str) -> bool:
        """Whether an instant's files are part of the table: it is completed here, or older than the
        start of the active timeline and not pending."""
        if requested in self.by_requested:
            return True
        return self.start is not None and requested < self.start and requested not in self.pending


def timeline_folder(table_version: int) -> str:
    """The folder of the active timeline, relative to the table."""
    return TIMELINE_FOLDER if table_version >= 8 else HOODIE_FOLDER


def list_timeline(storage: Storage, table_version: int) -> Timeline:
    """Lists the active timeline with one request, without reading a file."""
    return _parsed(tuple(storage.names_in(timeline_folder(table_version))))


def may_lack_instants(
    storage: Storage, table_version: int, now: Timeline, known: Timeline | None, *, is_new: bool
) -> bool:
    """Whether a listing may lack completed instants, because Hudi moves the timeline to the folder
    of another table version, or because the table is being removed.

    Instants that were known may be missing from a complete listing only if they were archived, or
    undone by a rollback or a restore that is listed, or if the table was created anew.

    Args:
        now: The listing.
        known: An earlier, complete listing of the table; None for the first one.
        is_new: Whether the properties were written again since `known`.
    """
    gone = known.by_requested.keys() - now.by_requested.keys() if known is not None else set()
    is_first_of_old = known is None and table_version < 8  # it may be upgraded at this moment
    if now.instants and not gone and not is_first_of_old:
        return False
    # Listed after `now`: a moved instant has appeared in the one folder before it left the other.
    moved = list_timeline(storage, 6 if table_version >= 8 else 8).by_requested.keys()
    if gone & moved or (moved and (is_first_of_old or not now.instants)):
        return True
    if known is None or known.latest not in gone:
        return False
    is_archived = now.start is not None and known.latest < now.start
    is_another = is_new and known.by_requested.keys().isdisjoint(now.by_requested)
    return not (is_archived or is_another or now.undoings - known.undoings)


@lru_cache(maxsize=32)
def _parsed(names: tuple[str, ...]) -> Timeline:
    """The timeline of a listing: a query lists it several times, and it rarely changes."""
    return parse_timeline(names)


def archived_completion_times(storage: Storage) -> dict[str, str]:
    """Requested → completion time of the archived instants of a table of version 8 or newer.

    Reads every file of ``.hoodie/timeline/history`` (Hudi's LSM timeline: Parquet files, merged
    into larger ones occasionally, so that two of them can hold the same instant).
    """
    import pyarrow.parquet as pq

    times: dict[str, str] = {}
    for file in storage.files_in(f"{TIMELINE_FOLDER}/history"):
        if file.path.endswith(".parquet"):
            data = pa.BufferReader(storage.read(file.path))
            archive = pq.ParquetFile(data).read(columns=["instantTime", "completionTime"])
            requested = archive.column("instantTime").to_pylist()
            completed = archive.column("completionTime").to_pylist()
            times.update(
                (start, end) for start, end in zip(requested, completed, strict=True) if end
            )
    return times


def is_archived(
    storage: Storage, table_version: int, properties: Mapping[str, str], requested: str
) -> bool:
    """Whether the archived timeline holds a commit, delta commit or replace commit. Reads the whole
    archive, so call it rarely."""
    if table_version >= 8:
        return requested in archived_completion_times(storage)
    # Blocks of uncompressed Avro in Hudi's log format. In an instant's record its action follows
    # its time (Hudi's HoodieArchivedMetaEntry.avsc). The same digits in a file name or in another
    # commit's extra metadata are not followed by an action.
    folder = f"{HOODIE_FOLDER}/{properties.get('hoodie.archivelog.folder', 'archived')}"
    records = [_optional_string(requested) + _optional_string(each) for each in WRITE_ACTIONS]
    return any(
        record in data
        for data in (storage.read(file.path) for file in storage.files_in(folder))
        for record in records
    )


def _optional_string(text: str) -> bytes:
    """A short text in Avro's encoding of a union of null and string: the second branch, the length
    (both zigzag-encoded), the bytes."""
    return bytes([2, 2 * len(text)]) + text.encode()


def parse_timeline(names: Iterable[str]) -> Timeline:
    """Parses the timeline from its folder's file names; names of other files are ignored."""
    matches = [match for name in sorted(names) if (match := _INSTANT_FILE.fullmatch(name))]
    completed = sorted(
        (
            Instant(match["requested"], match["action"], match["completed"])
            for match in matches
            if match["state"] is None and match["action"] != "inflight"
        ),
        key=lambda each: each.requested,
    )
    finished = {each.requested for each in completed}
    return Timeline(
        instants=tuple(each for each in completed if each.action in WRITE_ACTIONS),
        pending={
            match["requested"]: "commit" if match["action"] == "inflight" else match["action"]
            for match in matches
            if match["requested"] not in finished
        },
        savepoints=frozenset(each.requested for each in completed if each.action == "savepoint"),
        removals=frozenset(each["requested"] for each in matches if each["action"] in _REMOVALS),
        undoings=frozenset(each["requested"] for each in matches if each["action"] in _UNDOINGS),
        version=hashlib.sha256("\n".join(match[0] for match in matches).encode()).hexdigest(),
        others=tuple(each for each in completed if each.action not in WRITE_ACTIONS),
    )


def instant_of(text: str, what: str = "as_of") -> str:
    """The latest requested time that the text includes: the last millisecond of a second, the start
    of a day. A time of 14 digits is returned as it is, before the instants of that second. It is by
    the table's clock, as in Spark's option ``as.of.instant``.

    Args:
        what: The argument's name, for the message.

    Raises:
        ConfigInvalid: the text is none of ``yyyyMMddHHmmss[SSS]``, ``yyyy-MM-dd HH:mm:ss[.SSS]``
            and ``yyyy-MM-dd``, or no such time exists.
    """
    try:
        moment = datetime.strptime(text, _FORMS[len(text)])
    except (KeyError, TypeError, ValueError):
        raise ConfigInvalid(
            f"{what}={text!r} is not a time.",
            remedy="Write yyyyMMddHHmmssSSS, yyyy-MM-dd HH:mm:ss.SSS or yyyy-MM-dd.",
        ) from None
    if len(text) in map(len, _DIGITS_FORMS):
        return text
    millis = 999 if len(text) == len("yyyy-MM-dd HH:mm:ss") else moment.microsecond // 1000
    return f"{moment:%Y%m%d%H%M%S}{millis:03}"
