"""Storage that fails at a chosen call, and the ways in which it can fail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isfunction
from pathlib import Path
from threading import Lock
from typing import Any

from hudi_index_service.errors import PermissionDenied, StorageFailed
from hudi_index_service.storage.store import Storage

CREATES = frozenset({"create", "upload", "replace"})
CHANGES = CREATES | {"delete", "delete_empty_folders"}
READS_CONTENT = frozenset({"read", "read_ranges", "download"})
READS_ONE_FILE = READS_CONTENT | {"status", "size"}
LISTS = frozenset(
    {
        "root_exists",
        "files",
        "files_in",
        "files_outside",
        "names_in",
        "folders",
        "unfinished",
        "linked_folders",
        "delete_unfinished",
    }
)
ALL = CHANGES | READS_ONE_FILE | LISTS
WITHOUT_REQUESTS = frozenset({"local_name", "local_path", "throttled"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the storage.

    Attributes:
        number: From 1.
        operation: The method's name.
        path: Its argument, relative to the table.
        data: The content, for a call that creates a file.
        turn: The number of calls of this operation on this path so far, from 1.
    """

    number: int
    operation: str
    path: str
    data: bytes | Path | None = None
    turn: int = 1

    def __str__(self) -> str:
        return f"call {self.number}, {self.operation} {self.path}"

    def same(self, other: "Call") -> bool:
        """Whether it is the same call in another run, where threads may run in another order."""
        return (self.operation, self.path, self.turn) == (other.operation, other.path, other.turn)

    def half(self) -> bytes:
        """The first half of the content."""
        whole = self.data.read_bytes() if isinstance(self.data, Path) else self.data
        assert whole is not None
        return whole[: len(whole) // 2]


Work = Callable[[], Any]

Gate = Callable[[Call, Work], Any]
"""Every call passes through it: it does the call's work and returns the result, or raises."""


class GatedStorage(Storage):
    """The real storage of a local folder, each of whose calls passes through a gate.

    Args:
        gate: None lets every call pass.
        remote: Behave like a store without local paths, so that base files and index data are read
            through the storage too.

    Attributes:
        calls: All calls so far.
        direct: The paths of files that may be read past the storage, each with the number of calls
            before.
    """

    def __init__(self, uri: str | Path, gate: Gate | None = None, *, remote: bool = False) -> None:
        super().__init__(uri)
        self.calls: list[Call] = []
        self.direct: list[tuple[int, str]] = []
        self.gate = gate
        self._real = _Remote(uri) if remote else Storage(uri)
        self._counting = Lock()

    @property
    def is_local(self) -> bool:
        return self._real.is_local

    def local_path(self, path: str) -> Path:
        self.direct.append((len(self.calls), path))
        return super().local_path(path)

    def local_name(self, path: str) -> str:
        self.direct.append((len(self.calls), path))
        return super().local_name(path)

    def delete(self, paths: Sequence[str]) -> None:
        """One call per path: a killed cleaner leaves its work half done."""
        for path in paths:
            self._pass("delete", path, lambda path=path: self._real.delete([path]))

    def _pass(self, operation: str, path: str, work: Work, data: bytes | Path | None = None) -> Any:
        with self._counting:
            turn = 1 + sum(each.operation == operation and each.path == path for each in self.calls)
            call = Call(len(self.calls) + 1, operation, path, data, turn)
            self.calls.append(call)
        return work() if self.gate is None else self.gate(call, work)


def _gated(operation: str) -> Callable[..., Any]:
    def method(self: GatedStorage, path: str = "", *arguments: Any, **named: Any) -> Any:
        work = partial(
            getattr(self._real, operation), *([path] if path else []), *arguments, **named
        )
        data = arguments[0] if operation in CREATES else None
        return self._pass(operation, path, work, data)

    return method


# A new method of Storage must be added to one of the sets above.
for _operation, _method in vars(Storage).items():
    if (
        isfunction(_method)
        and not _operation.startswith("_")
        and _operation not in WITHOUT_REQUESTS
    ):
        assert _operation in ALL, f"Storage.{_operation} is new: no fault hits it yet"
        if _operation not in vars(GatedStorage):
            setattr(GatedStorage, _operation, _gated(_operation))


class _Remote(Storage):
    """A local folder that behaves like an object store."""

    @property
    def is_local(self) -> bool:
        return False


Strike = Callable[[Storage, Call, Work], Any]
"""The effect of a fault on a call: raises, perhaps after all or part of the call's work."""


@dataclass(frozen=True)
class Fault:
    """A way to fail.

    Attributes:
        name: Shown in test ids.
        hits: The operations at which it can begin.
        strike: Its effect on the first call that it hits.
        lasts: The operations that fail from then on.
        later: Its effect on those.
    """

    name: str
    hits: frozenset[str]
    strike: Strike
    lasts: frozenset[str] = frozenset()
    later: Strike | None = None

    def gate(self, storage: Storage, first: Callable[[Call], bool]) -> Gate:
        """A gate in which the fault begins at the first call that it can hit for which `first` is
        true.
        """
        began: list[Call] = []

        def gate(call: Call, work: Work) -> Any:
            if not began and call.operation in self.hits and first(call):
                began.append(call)
                return self.strike(storage, call, work)
            if began and self.later is not None and call.operation in self.lasts:
                return self.later(storage, call, work)
            return work()

        return gate


def numbered(number: int) -> Callable[[Call], bool]:
    """Matches the calls from a number on, for paths whose names differ from run to run. The call of
    this number may be another one in a run where threads run in another order."""
    return lambda call: call.number >= number


def _refuse(storage: Storage, call: Call, work: Work) -> Any:
    raise StorageFailed(f"{call}: the store does not answer.")


def _lose_response(storage: Storage, call: Call, work: Work) -> Any:
    work()
    raise StorageFailed(f"{call}: done, but the response was lost.")


def _fill(storage: Storage, call: Call, work: Work) -> Any:
    raise StorageFailed(f"{call}: No space left on device (os error 28).")


def _deny(storage: Storage, call: Call, work: Work) -> Any:
    raise PermissionDenied(f"{call}: Permission denied (os error 13).")


def _vanish(storage: Storage, call: Call, work: Work) -> Any:
    raise FileNotFoundError(f"{call}: no such file.")


REFUSED = Fault("refused", ALL, _refuse)
DOWN = Fault("down", ALL, _refuse, ALL, _refuse)
RESPONSE_LOST = Fault("response lost", CHANGES, _lose_response)
DISK_FULL = Fault("disk full", CREATES, _fill, CREATES, _fill)
PERMISSION_DENIED = Fault("permission denied", CHANGES, _deny, CHANGES, _deny)
FILE_MISSING = Fault("file missing", READS_ONE_FILE, _vanish)

FAULTS = (REFUSED, DOWN, RESPONSE_LOST, DISK_FULL, PERMISSION_DENIED, FILE_MISSING)

HALF_WRITTEN = {"killed": None, "killed writing": "#1", "power lost": ""}
"""How a process can end at a call that changes something → what its file's name ends with, if half
of it was written. obstore writes <name>#<number> on a local disk and then renames it; a power
failure may leave half of a file that was just written on some file systems."""


def leave_half(table: Path, call: Call, suffix: str) -> None:
    """Puts half of the file that the call creates into the table."""
    half = table / (call.path + suffix)
    half.parent.mkdir(parents=True, exist_ok=True)
    half.write_bytes(call.half())
