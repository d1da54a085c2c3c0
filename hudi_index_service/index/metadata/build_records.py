"""Build records: the builds of a table, whether they still run, and how they ended.

    .hoodie/.index/_service/builds/<number>/started.json    created by put-if-absent
                                            heartbeat       replaced while the build lives: progress
                                            cancel.json     a request to cancel the build
                                            finished.json   the report

Records inform operators and keep a second builder from doing the same work. They protect nothing:
entries themselves are safe against racing builders (design, rule 5). A dead build therefore blocks
others only until its heartbeat is stale. It does not block them at all if its process is known to
be gone, or is this process, which knows the builds it runs. Once a build has begun, a record that
cannot be written is only a warning: the entries are worth more than the report.
"""

import json
import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any, Self
from uuid import uuid4

from hudi_index_service.config import BuildSettings
from hudi_index_service.errors import BuildInProgress, ConfigInvalid, IndexServiceError
from hudi_index_service.index.metadata.builder_process import BuilderProcess
from hudi_index_service.index.metadata.documents import SERVICE_FOLDER, utc_now
from hudi_index_service.storage.store import Storage, StoredFile

log = logging.getLogger(__name__)

BUILDS_FOLDER = f"{SERVICE_FOLDER}/builds"
_STARTED, _HEARTBEAT, _FINISHED = "started.json", "heartbeat", "finished.json"
_CANCEL = "cancel.json"

_own_tokens: set[str] = set()
"""The tokens of the builds that this process runs."""


class BuildState(StrEnum):
    """The state of a build."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"  #: some base files could not be indexed, or the build broke off
    CANCELLED = "cancelled"
    STOPPED = "stopped"  #: its budget was spent
    DEAD = "dead"  #: it did not end, but is silent or its process is gone


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """The progress at one moment. "Files" are entries: one per base file and index type.

    Attributes:
        files, bytes, rows: The totals of the build. Bytes are the lengths of the base files. Rows
            come from commit metadata, or are estimated from the bytes (then `rows_estimated`);
            None while no row count is known.
        files_done: The entries that ended, successfully or not; `files_failed` of them failed.
        bytes_done: The bytes of the entries that ended.
        rows_done: The rows of the entries that were built; while the build runs, also the rows
            indexed so far by tasks in this process.
        seconds: The time since the build began.
        rows_per_second: The rate since then; None until rows were indexed.
        eta_seconds: The remaining time at the rate of bytes so far; until the first entry ends, at
            the rate of rows, or None if the rows are not known.
    """

    files: int
    files_done: int
    files_failed: int
    bytes: int
    bytes_done: int
    rows: int | None
    rows_done: int
    rows_estimated: bool
    seconds: float
    rows_per_second: float | None
    eta_seconds: float | None

    @property
    def done(self) -> tuple[int, int, int]:
        """Files, bytes and rows that are done: another value means that the build has advanced."""
        return self.files_done, self.bytes_done, self.rows_done

    def to_dict(self) -> dict[str, Any]:
        """The form stored as JSON, with the attributes' names."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self | None:
        """Reads the stored form; None if something is missing, as in other releases' records."""
        names = [each.name for each in fields(cls)]
        if any(name not in content for name in names):
            return None
        return cls(**{name: content[name] for name in names})


EntryKey = tuple[str, str, tuple[str, ...]]
"""Base file, index type and columns: with other columns the build may succeed."""


@dataclass(frozen=True, slots=True)
class FailedEntry:
    """An entry whose last build attempt failed.

    Attributes:
        path: The path of the base file.
        times: The number of failures in a row.
        last: The time of the last failure, ISO 8601 in UTC.
        error: The reason of the last failure.
    """

    path: str
    index_type: str
    columns: tuple[str, ...]
    times: int
    last: str
    error: str

    @property
    def key(self) -> EntryKey:
        """The key that identifies the entry."""
        return self.path, self.index_type, self.columns

    def retry_at(self, settings: BuildSettings) -> datetime:
        """When a wake-up retries the entry."""
        # 2^30 seconds is more than any maximum, and does not overflow.
        wait = settings.retry_seconds * 2 ** min(self.times - 1, 30)
        return datetime.fromisoformat(self.last) + timedelta(
            seconds=min(wait, settings.retry_max_seconds)
        )

    def to_dict(self) -> dict[str, Any]:
        """The form stored in build records."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class BuildRecord:
    """One build in the table's records.

    Attributes:
        state: See `BuildState`.
        started: When and where the build started, and its plan.
        finished: The report; None for a running or dead build.
        progress: The progress at the end, or at the last heartbeat; None if there was none.
        cancel_requested: Whether a request to cancel the build exists.
    """

    number: int
    state: BuildState
    started: dict[str, Any]
    finished: dict[str, Any] | None
    progress: BuildProgress | None = None
    cancel_requested: bool = False

    def __repr__(self) -> str:
        return f"<BuildRecord {self.id} {self.state}>"

    @property
    def id(self) -> str:
        """The number as written in paths, log lines and manifests."""
        return build_id(self.number)

    @property
    def outcomes(self) -> list[dict[str, Any]]:
        """The report's outcome of each entry."""
        outcomes = (self.finished or {}).get("outcomes")
        return [each for each in _list(outcomes) if isinstance(each, dict)]

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The entries that could not be built, with `path`, `index_type` and `error`."""
        return [each for each in self.outcomes if each.get("status") == "failed"]

    def to_dict(self) -> dict[str, Any]:
        """The record as `hudi-index status` prints it in JSON."""
        finished = self.finished or {}
        return {
            "build": self.id,
            "state": str(self.state),
            "strategy": self.started.get("strategy"),
            "started": self.started.get("started"),
            "finished": finished.get("finished"),
            "host": self.started.get("host"),
            "pid": self.started.get("pid"),
            "due": self.started.get("due"),
            **{
                key: finished.get(key)
                for key in ("built", "failed", "left", "seconds", "stopped_by", "error")
            },
            "cancel_requested": self.cancel_requested,
            "progress": None if self.progress is None else self.progress.to_dict(),
            "failures": [
                {key: each.get(key) for key in ("path", "index_type", "error")}
                for each in self.failures
            ],
        }


class RunningBuild:
    """The record of a build that this process runs. The build counts as running until the context
    ends, even if its end could not be recorded."""

    def __init__(self, storage: Storage, number: int, token: str) -> None:
        self._storage = storage
        self._folder = _folder(number)
        self._token = token
        self.id = build_id(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _own_tokens.discard(self._token)

    def beat(self, progress: BuildProgress | None = None) -> None:
        """Writes a heartbeat with the build's progress."""
        content = {"at": utc_now(), **({} if progress is None else progress.to_dict())}
        with self._warn_on_failure("write its heartbeat"):
            self._storage.replace(f"{self._folder}/{_HEARTBEAT}", json.dumps(content).encode())

    def cancel_requested(self) -> bool:
        """Whether a request to cancel the build exists."""
        try:
            self._storage.size(f"{self._folder}/{_CANCEL}")
        except FileNotFoundError:
            return False
        except (IndexServiceError, OSError) as error:
            log.warning("Build %s could not check for a cancel request: %s", self.id, error)
            return False
        return True

    def finish(self, report: dict[str, Any]) -> None:
        """Records how the build ended."""
        content = json.dumps({"finished": utc_now(), **report}, indent=1).encode()
        with self._warn_on_failure("record how it ended"):
            self._storage.create(f"{self._folder}/{_FINISHED}", content)

    @contextmanager
    def _warn_on_failure(self, what: str) -> Iterator[None]:
        try:
            yield
        except (IndexServiceError, OSError) as error:
            log.warning("Build %s could not %s: %s", self.id, what, error)


class BuildRecords:
    """The builds of one table.

    Args:
        stale_seconds: The age of the last sign of life after which a running build counts as dead,
            on any machine.
    """

    def __init__(self, storage: Storage, *, stale_seconds: float) -> None:
        self._storage = storage
        self._stale_seconds = stale_seconds

    def start(self, plan: dict[str, Any]) -> RunningBuild:
        """Opens a record for a new build.

        Raises:
            BuildInProgress: another build is alive.
            PermissionDenied: no write access below ``.hoodie/.index``.
        """
        numbers = self._files_by_number()
        alive = next(self._alive(numbers), None)
        if alive is not None:
            other = self._content(alive, _STARTED)
            raise BuildInProgress(
                f"Build {build_id(alive)}, started {other.get('started')} on "
                f"{other.get('host')} (process {other.get('pid')}), works on {self._storage.uri}."
            )
        number = max(numbers, default=0) + 1
        # The token tells apart two threads of one process that start at the same time: `create`
        # takes an existing file with the same bytes for its own.
        token = uuid4().hex
        process = BuilderProcess.current().to_dict()
        content = {"started": utc_now(), **process, "token": token, **plan}
        data = json.dumps(content, indent=1).encode()
        _own_tokens.add(token)
        try:
            self._storage.create(f"{_folder(number)}/{_STARTED}", data)
        except BaseException as error:
            _own_tokens.discard(token)
            if not isinstance(error, FileExistsError):
                raise
            message = f"Build {build_id(number)} was started at the same moment."
            raise BuildInProgress(message) from error
        return RunningBuild(self._storage, number, token)

    def request_cancel(self) -> str | None:
        """Requests that the running build be cancelled; it stops at its next heartbeat. Published
        entries stay, and a later build continues with the rest. Returns the build's id; None if no
        build is running.

        Raises:
            PermissionDenied: no write access below ``.hoodie/.index``.
        """
        number = max(self._alive(self._files_by_number()), default=None)
        if number is None:
            return None
        content = {"requested": utc_now(), "host": socket.gethostname(), "pid": os.getpid()}
        try:
            self._storage.create(f"{_folder(number)}/{_CANCEL}", json.dumps(content).encode())
        except FileExistsError:  # another process requested it before
            log.info("Build %s already has a cancel request.", build_id(number))
        return build_id(number)

    def all(self, limit: int | None = None) -> list[BuildRecord]:
        """The recorded builds, newest first, up to `limit`. Raises ConfigInvalid."""
        if limit is not None and (not isinstance(limit, int) or limit < 0):
            raise ConfigInvalid(
                f"limit={limit!r} is not a number of builds.", remedy="Use an integer from 0 on."
            )
        return list(islice(self.newest_first(), limit))

    def newest_first(self) -> Iterator[BuildRecord]:
        """The recorded builds, newest first, each read on demand."""
        for number, files in sorted(self._files_by_number().items(), reverse=True):
            yield self._record(number, files)

    def _record(self, number: int, files: dict[str, StoredFile]) -> BuildRecord:
        finished = self._content(number, _FINISHED) if _FINISHED in files else None
        if finished is None:
            state = BuildState.RUNNING if self._is_alive(number, files) else BuildState.DEAD
        else:
            state = _state_of(finished)
        heartbeat = self._content(number, _HEARTBEAT) if _HEARTBEAT in files else {}
        return BuildRecord(
            number,
            state,
            self._content(number, _STARTED),
            finished,
            BuildProgress.from_dict((finished or {}).get("progress") or heartbeat),
            _CANCEL in files,
        )

    def failed_entries(self) -> list[FailedEntry]:
        """The entries that could not be built so far, as of the last build that ended."""
        for number, files in sorted(self._files_by_number().items(), reverse=True):
            if _FINISHED in files:
                return _failed_entries(self._content(number, _FINISHED).get("failing"))
        return []

    def ids(self) -> frozenset[str]:
        """The ids of all recorded builds."""
        return frozenset(map(build_id, self._files_by_number()))

    def living(self) -> frozenset[str]:
        """The ids of the running builds."""
        return frozenset(map(build_id, self._alive(self._files_by_number())))

    def ended_before(self, moment: float) -> list[StoredFile]:
        """The records of builds that are over and silent since `moment` (epoch seconds), except
        those of the newest build."""
        numbers = self._files_by_number()
        newest = max(numbers, default=0)
        old_files: list[StoredFile] = []
        for number, files in numbers.items():
            last = max(file.modified for file in files.values())
            if number != newest and last < moment and not self._is_alive(number, files):
                old_files += files.values()
        return old_files

    def _alive(self, numbers: Mapping[int, dict[str, StoredFile]]) -> Iterator[int]:
        return (number for number, files in numbers.items() if self._is_alive(number, files))

    def _is_alive(self, number: int, files: dict[str, StoredFile]) -> bool:
        """Whether the build has not ended, its last sign of life is fresh (a cancel request is
        none), and its process is not known to be gone."""
        signs = [file.modified for name, file in files.items() if name != _CANCEL]
        silence = datetime.now(UTC).timestamp() - max(signs, default=0.0)
        if _FINISHED in files or silence >= self._stale_seconds:
            return False
        return not _has_ended(self._content(number, _STARTED))

    def _files_by_number(self) -> dict[int, dict[str, StoredFile]]:
        numbers: dict[int, dict[str, StoredFile]] = {}
        for file in self._storage.files(BUILDS_FOLDER):
            folder, name = file.path.split("/")[-2:]
            if folder.isdigit():
                numbers.setdefault(int(folder), {})[name] = file
        return numbers

    def _content(self, number: int, name: str) -> dict[str, Any]:
        try:
            content = json.loads(self._storage.read(f"{_folder(number)}/{name}"))
        except (FileNotFoundError, ValueError, RecursionError):
            return {}  # cleaned or damaged; records only inform, nothing depends on them
        return content if isinstance(content, dict) else {}


def build_id(number: int) -> str:
    """The name of a build in paths, log lines, manifests and Spark's job description."""
    return f"{number:06d}"


def _folder(number: int) -> str:
    return f"{BUILDS_FOLDER}/{build_id(number)}"


def _list(content: object) -> list[Any]:
    """A list of a record; empty if it is none, as in damaged records."""
    return content if isinstance(content, list) else []


def _failed_entries(content: object) -> list[FailedEntry]:
    """The failed entries that a build record lists; unreadable ones are left out."""
    entries = []
    for each in _list(content):
        try:
            failed = FailedEntry(**{**each, "columns": tuple(each["columns"])})
            datetime.fromisoformat(failed.last)
        except (TypeError, KeyError, ValueError):  # from another release
            continue
        entries.append(failed)
    return entries


def _has_ended(started: dict[str, Any]) -> bool:
    """Whether a build without a report is certainly over."""
    process = BuilderProcess.from_dict(started)
    if process is None:
        return False
    if process == BuilderProcess.current():
        return started.get("token") not in _own_tokens
    return process.is_gone()


def _state_of(finished: dict[str, Any]) -> BuildState:
    try:
        return BuildState(finished["state"])
    except (KeyError, ValueError):  # damaged, or from a release without states
        failed = finished.get("failed") or finished.get("error")
        return BuildState.FAILED if failed else BuildState.FINISHED
