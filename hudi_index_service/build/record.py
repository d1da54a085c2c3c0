"""Build records: who builds what on a table, whether it still lives, and how it ended.

    .hoodie/.index/_service/builds/<number>/started.json    created by put-if-absent
                                            heartbeat       replaced while the build lives
                                            finished.json   the report

They tell operators what happens and keep a second builder from doing the same work. They protect
nothing: entries are safe against racing builders by themselves (design, rule 5), so a dead build
stands in nobody's way for longer than it takes its heartbeat to go stale.
"""

import json
import os
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hudi_index_service.documents import SERVICE_FOLDER
from hudi_index_service.errors import BuildInProgress
from hudi_index_service.storage import Storage, StoredFile

BUILDS_FOLDER = f"{SERVICE_FOLDER}/builds"
_STARTED, _HEARTBEAT, _FINISHED = "started.json", "heartbeat", "finished.json"


@dataclass(frozen=True, slots=True)
class BuildRecord:
    """One build as the table's records tell it.

    `state` is ``running``, ``finished``, ``failed`` or ``dead`` (silent without having ended).
    """

    number: int
    state: str
    started: dict[str, Any]
    finished: dict[str, Any] | None


class RunningBuild:
    """The record of the build that this process runs."""

    def __init__(self, storage: Storage, number: int) -> None:
        self._storage = storage
        self._folder = f"{BUILDS_FOLDER}/{number:06d}"
        self.id = f"{number:06d}"

    def beat(self) -> None:
        """Says that the build lives."""
        self._storage.replace(f"{self._folder}/{_HEARTBEAT}", _now().encode())

    def finish(self, report: dict[str, Any]) -> None:
        """Records how the build ended."""
        content = json.dumps({"finished": _now(), **report}, indent=1).encode()
        self._storage.create(f"{self._folder}/{_FINISHED}", content)


class BuildRecords:
    """The builds of one table.

    Args:
        stale_seconds: A running build whose last sign of life is older counts as dead.
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
        content = {"started": _now(), "host": socket.gethostname(), "pid": os.getpid(), **plan}
        try:
            self._storage.create(
                f"{BUILDS_FOLDER}/{number:06d}/{_STARTED}", json.dumps(content, indent=1).encode()
            )
        except FileExistsError as error:
            raise BuildInProgress(f"Build {number} was started at the same moment.") from error
        return RunningBuild(self._storage, number)

    def _refuse_if_alive(self, number: int, files: dict[str, StoredFile]) -> None:
        if self._state(files) == "running":
            started = self._content(number, _STARTED)
            raise BuildInProgress(
                f"Build {number}, started {started.get('started')} on {started.get('host')} "
                f"(process {started.get('pid')}), works on {self._storage.uri}."
            )

    def all(self) -> list[BuildRecord]:
        """All recorded builds, newest first."""
        records = []
        for number, files in sorted(self._files_by_number().items(), reverse=True):
            state = self._state(files)
            finished = self._content(number, _FINISHED) if _FINISHED in files else None
            if finished is not None and (finished.get("failed") or finished.get("error")):
                state = "failed"
            records.append(BuildRecord(number, state, self._content(number, _STARTED), finished))
        return records

    def ended_before(self, moment: float) -> list[str]:
        """Paths of the records of builds that are over and silent since `moment` (epoch seconds),
        except the newest build's."""
        numbers = self._files_by_number()
        paths: list[str] = []
        for number, files in numbers.items():
            last = max(file.modified for file in files.values())
            if number != max(numbers) and self._state(files) != "running" and last < moment:
                paths += [file.path for file in files.values()]
        return paths

    def _state(self, files: dict[str, StoredFile]) -> str:
        if _FINISHED in files:
            return "finished"
        last = max(file.modified for file in files.values())
        alive = datetime.now(UTC).timestamp() - last < self._stale_seconds
        return "running" if alive else "dead"

    def _files_by_number(self) -> dict[int, dict[str, StoredFile]]:
        numbers: dict[int, dict[str, StoredFile]] = {}
        for file in self._storage.files(BUILDS_FOLDER):
            folder, name = file.path.split("/")[-2:]
            if folder.isdigit():
                numbers.setdefault(int(folder), {})[name] = file
        return numbers

    def _content(self, number: int, name: str) -> dict[str, Any]:
        try:
            content = json.loads(self._storage.read(f"{BUILDS_FOLDER}/{number:06d}/{name}"))
        except (FileNotFoundError, ValueError):
            return {}  # cleaned or damaged: records inform, nothing depends on them
        return content if isinstance(content, dict) else {}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
