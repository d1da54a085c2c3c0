"""Build records: who builds what on a table, whether it still lives, and how it ended.

    .hoodie/.index/_service/builds/<number>/started.json    created by put-if-absent
                                            heartbeat       replaced while the build lives: progress
                                            cancel.json     somebody wants it to give up
                                            finished.json   the report

They tell operators what happens and keep a second builder from doing the same work. They protect
nothing: entries are safe against racing builders by themselves (design, rule 5), so a dead build
stands in nobody's way for longer than it takes its heartbeat to go stale; and not at all where its
process is known to be gone, or is this one, which knows what it runs. A record that cannot be
written is a warning, once the build has begun: what is built is worth more than the report.
"""

import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from hudi_index_service.build.builder_process import BuilderProcess
from hudi_index_service.build.progress import BuildProgress
from hudi_index_service.build.retry import FailedEntry, failed_entries
from hudi_index_service.documents import SERVICE_FOLDER
from hudi_index_service.errors import BuildInProgress, IndexServiceError
from hudi_index_service.storage import Storage, StoredFile

log = logging.getLogger(__name__)

BUILDS_FOLDER = f"{SERVICE_FOLDER}/builds"
_STARTED, _HEARTBEAT, _FINISHED = "started.json", "heartbeat", "finished.json"
_CANCEL = "cancel.json"

_running_here: set[str] = set()
"""The tokens of the builds that this process runs."""


class BuildState(StrEnum):
    """What became of a build."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"  #: some base files could not be indexed, or it broke off
    CANCELLED = "cancelled"
    STOPPED = "stopped"  #: its budget was spent
    DEAD = "dead"  #: silent, or its process is gone, without having ended


@dataclass(frozen=True, slots=True)
class BuildRecord:
    """One build as the table's records tell it.

    Attributes:
        state: See `BuildState`.
        started: When, where, and what was asked for.
        finished: The report; None of a build that runs or died.
        progress: At its end, or as of the last heartbeat; None if there was none.
        cancel_requested: Whether somebody wants it to give up.
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
        """The number as it stands in paths, log lines and manifests."""
        return build_id(self.number)

    @property
    def outcomes(self) -> list[dict[str, Any]]:
        """What the report says of each entry."""
        found = (self.finished or {}).get("outcomes")
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The entries that could not be built, with `path`, `index_type` and `error`."""
        return [each for each in self.outcomes if each.get("status") == "failed"]

    def to_dict(self) -> dict[str, Any]:
        """As `hudi-index status` prints it in JSON."""
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
    """The record of a build that this process runs: until its context ends, whether or not that
    could be recorded."""

    def __init__(self, storage: Storage, number: int, token: str) -> None:
        self._storage = storage
        self._folder = _folder(number)
        self._token = token
        self.id = build_id(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _running_here.discard(self._token)

    def beat(self, progress: BuildProgress | None = None) -> None:
        """Says that the build lives, and how far it is."""
        content = {"at": _now(), **({} if progress is None else progress.to_dict())}
        with self._only_a_warning("show that it lives"):
            self._storage.replace(f"{self._folder}/{_HEARTBEAT}", json.dumps(content).encode())

    def cancel_requested(self) -> bool:
        """Whether somebody wants the build to give up."""
        try:
            self._storage.size(f"{self._folder}/{_CANCEL}")
        except FileNotFoundError:
            return False
        except (IndexServiceError, OSError) as error:
            log.warning("Build %s could not see whether it is to give up: %s", self.id, error)
            return False
        return True

    def finish(self, report: dict[str, Any]) -> None:
        """Records how the build ended."""
        content = json.dumps({"finished": _now(), **report}, indent=1).encode()
        with self._only_a_warning("record how it ended"):
            self._storage.create(f"{self._folder}/{_FINISHED}", content)

    @contextmanager
    def _only_a_warning(self, what: str) -> Iterator[None]:
        try:
            yield
        except (IndexServiceError, OSError) as error:
            log.warning("Build %s could not %s: %s", self.id, what, error)


class BuildRecords:
    """The builds of one table.

    Args:
        stale_seconds: A running build whose last sign of life is older counts as dead, wherever it
            runs.
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
        for number in numbers:
            self._refuse_if_alive(number, numbers[number])
        number = max(numbers, default=0) + 1
        # Two threads of one process may start at one time, and what stands under the name byte for
        # byte counts as one's own.
        token = uuid4().hex
        process = BuilderProcess.current().to_dict()
        content = {"started": _now(), **process, "token": token, **plan}
        with ExitStack() as undo:
            _running_here.add(token)
            undo.callback(_running_here.discard, token)
            try:
                self._storage.create(
                    f"{_folder(number)}/{_STARTED}", json.dumps(content, indent=1).encode()
                )
            except FileExistsError as error:
                raise BuildInProgress(
                    f"Build {build_id(number)} was started at the same moment."
                ) from error
            undo.pop_all()
        return RunningBuild(self._storage, number, token)

    def _refuse_if_alive(self, number: int, files: dict[str, StoredFile]) -> None:
        if self._is_alive(number, files):
            started = self._content(number, _STARTED)
            raise BuildInProgress(
                f"Build {build_id(number)}, started {started.get('started')} on "
                f"{started.get('host')} (process {started.get('pid')}), works on "
                f"{self._storage.uri}."
            )

    def request_cancel(self) -> str | None:
        """Asks the running build to give up; it sees that with its next heartbeat. Returns its id;
        None if no build is running.

        Raises:
            PermissionDenied: no write access below ``.hoodie/.index``.
        """
        numbers = self._files_by_number()
        alive = [number for number, files in numbers.items() if self._is_alive(number, files)]
        if not alive:
            return None
        number = max(alive)
        content = {"requested": _now(), "host": socket.gethostname(), "pid": os.getpid()}
        try:
            self._storage.create(f"{_folder(number)}/{_CANCEL}", json.dumps(content).encode())
        except FileExistsError:  # somebody else wants it, too
            log.info("Build %s was asked to give up before.", build_id(number))
        return build_id(number)

    def all(self, limit: int | None = None) -> list[BuildRecord]:
        """The recorded builds, newest first, `limit` of them at most."""
        return list(islice(self.newest_first(), limit))

    def newest_first(self) -> Iterator[BuildRecord]:
        """The recorded builds, each read when it is asked for."""
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
        """What could not be built so far, as the last build that ended left it."""
        for number, files in sorted(self._files_by_number().items(), reverse=True):
            if _FINISHED in files:
                return failed_entries(self._content(number, _FINISHED).get("failing"))
        return []

    def ids(self) -> frozenset[str]:
        """The ids of all recorded builds."""
        return frozenset(map(build_id, self._files_by_number()))

    def living(self) -> frozenset[str]:
        """The ids of the builds that have not ended and are not dead."""
        numbers = self._files_by_number()
        return frozenset(
            build_id(number) for number, files in numbers.items() if self._is_alive(number, files)
        )

    def ended_before(self, moment: float) -> list[StoredFile]:
        """The records of builds that are over and silent since `moment` (epoch seconds), except
        the newest build's."""
        numbers = self._files_by_number()
        newest = max(numbers, default=0)
        found: list[StoredFile] = []
        for number, files in numbers.items():
            last = max(file.modified for file in files.values())
            if number != newest and last < moment and not self._is_alive(number, files):
                found += files.values()
        return found

    def _is_alive(self, number: int, files: dict[str, StoredFile]) -> bool:
        """Whether the build has not ended, its last sign of life is fresh, and its process is not
        known to be gone."""
        silent = datetime.now(UTC).timestamp() - _last_sign(files)
        if _FINISHED in files or silent >= self._stale_seconds:
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
            return {}  # cleaned or damaged: records inform, nothing depends on them
        return content if isinstance(content, dict) else {}


def build_id(number: int) -> str:
    """How a build is called: in paths, log lines, manifests, Spark's job description."""
    return f"{number:06d}"


def _folder(number: int) -> str:
    return f"{BUILDS_FOLDER}/{build_id(number)}"


def _last_sign(files: dict[str, StoredFile]) -> float:
    """The build's own last sign of life: a request to cancel it is none."""
    own = [file.modified for name, file in files.items() if name != _CANCEL]
    return max(own, default=0.0)


def _has_ended(started: dict[str, Any]) -> bool:
    """Whether the build of such a record is certainly over, although it did not say so."""
    process = BuilderProcess.from_dict(started)
    if process is None:
        return False
    if process == BuilderProcess.current():
        return started.get("token") not in _running_here
    return process.is_gone()


def _state_of(finished: dict[str, Any]) -> BuildState:
    try:
        return BuildState(finished["state"])
    except (KeyError, ValueError):  # damaged, or written before states were
        failed = finished.get("failed") or finished.get("error")
        return BuildState.FAILED if failed else BuildState.FINISHED


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
