"""What was asked of the fleet and how it ended, in memory and in a file below the state folder.

The timeline is the queue: builds that a commit made due need no file. What only an operator knows
does: requests and their idempotency keys, mutes, the last builds; and, to spare needless builds
after a restart, the version of each table for which all was built.

The file has one JSON document a line. It is written anew, without what is past, when the service
starts and when most lines are past.
"""

import fcntl
import json
import logging
import os
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from hudi_index_service.errors import StorageFailed
from hudi_index_service.fleet.builds.messages import Ended
from hudi_index_service.fleet.observation import EndedBuild, Refusal
from hudi_index_service.wording import reason

log = logging.getLogger(__name__)

Action = Literal["build", "clean", "verify", "define"]

MAX_ENDED = 2_000
"""How many ended requests are remembered."""

_BUILDS_OF_A_TABLE = 10
_MOST_FILES = 100
SECONDS_UNTIL_MENDED = 10.0
_OLDEST = timedelta(days=7)
_DATES = ("at", "started", "ended")


@dataclass(frozen=True, slots=True)
class Request:
    """Something that is to be done with a table.

    Attributes:
        table: The table's base path.
        trigger: As in `RunningBuild`.
        at: When it was asked for.
        strategy: What a build covers; "" for what holds for the table.
        dry_run: Whether a clean only counts.
        key: The idempotency key; "" for none.
        requested_by: The name of the token.
        repair: Whether a verification builds damaged entries anew.
        plan_id, plan_bytes: The plan that an operator has approved.
        traceparent: The span that asked for it; see `hudi_index_service.fleet.tracing`.
    """

    id: str
    table: str
    action: Action
    trigger: str
    at: datetime
    strategy: str = ""
    dry_run: bool = False
    key: str = ""
    requested_by: str = ""
    repair: bool = False
    plan_id: str = ""
    plan_bytes: int = 0
    traceparent: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether it is asked for again after a restart. Others follow from the timeline."""
        return self.trigger == "request"

    def ended(self, started: datetime, ended: datetime, how: Ended) -> EndedBuild:
        """The end of the request."""
        return EndedBuild(
            self.id,
            self.trigger,
            started,
            ended,
            how.outcome,
            how.error,
            how.built,
            self.requested_by,
            self.action,
            how.summary,
            how.failed,
            how.deferred,
        )

    @property
    def asks_for(self) -> tuple[object, ...]:
        """What it asks for: requests for the same run together."""
        # A plan that nobody has approved is another thing than its execution.
        by_operator = self.action in ("verify", "define") and self.is_kept
        what = self.action, self.strategy, self.dry_run, self.repair, self.plan_id
        return *what, by_operator


@dataclass(slots=True)
class KnownTable:
    """What is remembered of a table, by its base path.

    Attributes:
        settled: The version for which all was built, with the strategy; "" if there is none.
        verified: When a verification ended last; at first, a moment within the last week.
        damaged: The damaged base files that it found.
        builds: The last builds, newest first.
        mutes: Code of a reason for attention → until when it is hidden.
    """

    settled: str = ""
    verified: datetime | None = None
    damaged: int = 0
    builds: deque[EndedBuild] = field(default_factory=lambda: deque(maxlen=_BUILDS_OF_A_TABLE))
    mutes: dict[str, datetime] = field(default_factory=dict)


class Ledger:
    """The requests, and what is known of tables. Not for several threads at once.

    Args:
        folder: The folder of the file. If another service holds its file, this one gets its own.
            None for no file: what is known lasts as long as the process.

    Attributes:
        problem: Why the file cannot be written, as when the disk is full; None if it can. What it
            lacks is in memory, and is written as soon as it can be.
    """

    def __init__(self, folder: Path | None) -> None:
        self._requests: OrderedDict[str, Request] = OrderedDict()
        self._ended: OrderedDict[str, EndedBuild] = OrderedDict()
        self._keys: dict[tuple[str, str, str], str] = {}
        self._tables: dict[str, KnownTable] = {}
        self._lines = 0
        self._failing = False
        self._tried, self._is_closed = 0.0, False
        self._folder = folder
        self.problem: Refusal | None = None
        self._path: Path | None = None
        self._lock = self._descriptor = -1
        if folder is None:
            return
        try:
            self._open()
        except OSError as error:
            self._warn(error)

    def _open(self) -> None:
        assert self._folder is not None
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._claim(self._folder)
        try:
            self._load(path)
        except OSError:
            os.close(self._lock)
            self._lock = -1
            raise
        self._path = path
        self._rewrite()

    def mend(self) -> None:
        """Writes the file anew, if it could not be written before; not more than once in some
        seconds."""
        if not self._failing or self._is_closed or monotonic() < self._tried + SECONDS_UNTIL_MENDED:
            return
        try:
            if self._path is None:
                self._open()
            else:
                self._rewrite()
        except OSError as error:
            self._warn(error)
        else:
            self._recovered()

    def close(self) -> None:
        """Lets another service have the file."""
        self._is_closed = True
        for descriptor in (self._descriptor, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor = self._lock = -1
        self._path = None

    def find(self, request: str) -> Request | None:
        """The request of this id; None if there is none, or it is forgotten."""
        return self._requests.get(request)

    def with_key(self, table: str, action: Action, key: str) -> Request | None:
        """The request with this idempotency key; None if there is none."""
        return self._requests.get(self._keys.get((table, action, key), "")) if key else None

    def end_of(self, request: str) -> EndedBuild | None:
        """How the request ended; None if it has not."""
        return self._ended.get(request)

    def waiting(self) -> list[Request]:
        """The requests that were kept and have not ended, in order."""
        return [each for each in self._requests.values() if self._waits(each) and each.is_kept]

    def table(self, uri: str) -> KnownTable:
        """What is known of a table. To be changed by the methods of this class only."""
        return self._tables.setdefault(uri, KnownTable())

    def add(self, request: Request) -> None:
        """Adds a request, or changes it."""
        self._take(request)
        if request.is_kept:
            self._write("request", **asdict(request))

    def forget(self, request: str) -> None:
        """Nobody waits for a request that was not kept."""
        self._requests.pop(request, None)

    def end(self, uri: str, *ended: EndedBuild) -> None:
        """Requests of a table have ended together."""
        for number, each in enumerate(ended):
            listed = number == 0 and each.action == "build"
            self._take_end(uri, each, listed=listed)
            request = self._requests.get(each.id)
            if listed or (request is not None and request.is_kept):
                self._write("ended", uri=uri, listed=listed, **asdict(each))

    def settle(self, uri: str, version: str) -> None:
        """All is built for this version."""
        if self.table(uri).settled != version:
            self.table(uri).settled = version
            self._write("settled", uri=uri, version=version)

    def verify(self, uri: str, at: datetime, damaged: int) -> None:
        """A verification has ended."""
        known = self.table(uri)
        known.verified, known.damaged = at, damaged
        self._write("verified", uri=uri, at=at, damaged=damaged)

    def mute(self, uri: str, code: str, until: datetime) -> None:
        """Hides a reason until then."""
        self.table(uri).mutes[code] = until
        self._write("mute", uri=uri, code=code, at=until)

    def _waits(self, request: Request) -> bool:
        return request.id not in self._ended

    def _take(self, request: Request) -> None:
        self._requests[request.id] = request
        if request.key:
            self._keys[request.table, request.action, request.key] = request.id

    def _take_end(self, uri: str, ended: EndedBuild, *, listed: bool) -> None:
        self._ended[ended.id] = ended
        if listed:
            self.table(uri).builds.appendleft(ended)
        while len(self._ended) > MAX_ENDED:
            oldest, _ = self._ended.popitem(last=False)
            request = self._requests.pop(oldest, None)
            if request is not None and request.key:
                self._keys.pop((request.table, request.action, request.key), None)

    def _claim(self, folder: Path) -> Path:
        """The file of this service: the first that no other one has locked."""
        for number in range(1, _MOST_FILES):
            path = folder / f"fleet-{number}.jsonl"
            lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            self._lock = lock
            return path
        raise BlockingIOError(f"{_MOST_FILES} services use {folder}")

    def _load(self, path: Path) -> None:
        try:
            lines = path.read_bytes().splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                self._replay(json.loads(line))
            except (AttributeError, KeyError, TypeError, ValueError):  # torn, or of another release
                log.warning("A line of %s cannot be read; it is left out.", path)
        old = [
            each.id
            for each in self._requests.values()
            if self._waits(each) and each.at < datetime.now(UTC) - _OLDEST
        ]
        for request in old:
            del self._requests[request]

    def _replay(self, content: dict[str, Any]) -> None:
        kind = content.pop("kind")
        for name in _DATES:
            if content.get(name) is not None:
                content[name] = datetime.fromisoformat(content[name])
        if kind == "request":
            self._take(Request(**content))
            return
        uri = content.pop("uri")
        if kind == "ended":
            listed = content.pop("listed")
            if content["error"] is not None:
                content["error"] = Refusal(**content["error"])
            self._take_end(uri, EndedBuild(**content), listed=listed)
        elif kind == "settled":
            self.table(uri).settled = content["version"]
        elif kind == "verified":
            known = self.table(uri)
            known.verified, known.damaged = content["at"], content["damaged"]
        elif kind == "mute":
            self.table(uri).mutes[content["code"]] = content["at"]

    def _documents(self) -> Iterator[bytes]:
        """What is to be kept, oldest first."""
        for request in self._requests.values():
            if request.is_kept:
                yield _line("request", **asdict(request))
        listed = {each.id for known in self._tables.values() for each in known.builds}
        for request in self._requests.values():
            ended = self._ended.get(request.id)
            if request.is_kept and ended is not None and ended.id not in listed:
                yield _line("ended", uri=request.table, listed=False, **asdict(ended))
        now = datetime.now(UTC)
        for uri, known in self._tables.items():
            for ended in reversed(known.builds):
                yield _line("ended", uri=uri, listed=True, **asdict(ended))
            if known.settled:
                yield _line("settled", uri=uri, version=known.settled)
            if known.verified is not None:
                yield _line("verified", uri=uri, at=known.verified, damaged=known.damaged)
            for code, until in known.mutes.items():
                if until > now:
                    yield _line("mute", uri=uri, code=code, at=until)

    def _rewrite(self) -> None:
        assert self._path is not None
        documents = list(self._documents())
        new = self._path.with_suffix(".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write_all(descriptor, b"".join(documents))
            new.replace(self._path)
        except OSError:
            os.close(descriptor)
            with suppress(OSError):
                new.unlink()  # on a full disk, half a file is in the way
            raise
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._lines = descriptor, len(documents)

    def _write(self, kind: str, **content: Any) -> None:
        if self._path is None:
            return
        try:
            if self._failing or self._lines > 1_000 + 4 * len(self._ended) + len(self._tables):
                self._rewrite()  # with what could not be written before
            else:
                _write_all(self._descriptor, _line(kind, **content))
                self._lines += 1
            self._recovered()
        except OSError as error:
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self._failing:
            log.warning(
                "The fleet's requests are kept in memory alone, and lost if the service is killed: "
                "%s",
                error,
            )
        self._failing, self._tried = True, monotonic()
        self.problem = Refusal(
            StorageFailed.code,
            f"What is asked of the fleet cannot be written to {self._folder}, and would be lost if "
            f"the service were killed: {reason(error)}.",
            "Free space there, or let the service's user write there. Then nothing is lost.",
        )

    def _recovered(self) -> None:
        if self._failing:
            log.warning("The fleet's requests are kept in %s again.", self._folder)
        self._failing, self.problem = False, None


def _line(kind: str, **content: Any) -> bytes:
    return json.dumps({"kind": kind, **content}, default=datetime.isoformat).encode() + b"\n"


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
