"""The two ends of a process that threads do not survive: a fork, and the exit. And how much memory
it may use, and what it does on signals.

A forked child has none of its parent's threads, so a library that needs its own is of no use there.

Python (before 3.14) ends a daemon thread that comes back from native code while the interpreter is
being taken down. That unwinds frames of C++ and Rust, which abort the process (SIGABRT). So an exit
waits for the calls that are running, and a daemon thread that makes another one waits for ever, as
all daemon threads do from Python 3.14 on.
"""

import atexit
import logging
import os
import signal
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isfunction
from pathlib import Path
from threading import Condition, Thread, current_thread, main_thread
from types import FrameType, GeneratorType
from typing import Any, ParamSpec, TypeVar, cast

from hudi_index_service.errors import NativeModuleMissing

_MOST_SECONDS = 10
"""How long an exit waits; a build in a daemon thread may take longer."""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Class = TypeVar("_Class", bound=type)

log = logging.getLogger(__name__)


class OwnRuntime:
    """A library's threads, which exist in one process alone. A call in a forked one would wait for
    them for ever, deaf to Ctrl-C.

    Args:
        use: What the parent has done with it, for the error.
    """

    def __init__(self, use: str) -> None:
        self._use = use
        self._process: int | None = None

    def require(self) -> None:
        """To be called before each use.

        Raises:
            NativeModuleMissing: this process was forked from one that has used the library.
        """
        process = os.getpid()
        if self._process is None:
            self._process = process
        elif self._process != process:
            raise NativeModuleMissing(
                f"This process was forked from one that had already {self._use}.",
                remedy="Use the multiprocessing start method 'spawn', or open tables only in the "
                "children.",
            )


class _Calls:
    """The calls that run in threads other than the main one."""

    def __init__(self) -> None:
        self._threads: set[Thread] = set()
        self._is_ending = False
        self._changed = Condition()

    @contextmanager
    def one(self) -> Iterator[None]:
        """A call, for the length of the block, or a part of one."""
        thread = current_thread()
        if thread is main_thread() or thread in self._threads:
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: not (self._is_ending and thread.daemon))
            self._threads.add(thread)
        try:
            yield
        finally:
            with self._changed:
                self._threads.remove(thread)
                self._changed.notify_all()

    def end(self) -> None:
        """Waits for the calls, and lets daemon threads make no other."""
        with self._changed:
            self._is_ending = True
            if not self._changed.wait_for(lambda: not self._threads, _MOST_SECONDS):
                running = len(self._threads)
                log.warning("The process ends while calls are running: %d.", running)


_calls = _Calls()


def awaited(call: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """The function, for whose calls an exit waits. If it returns a generator, these are the steps
    of that."""

    @wraps(call)
    def counted(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with _calls.one():
            result = call(*args, **kwargs)
        steps: Any = _awaited_steps(result) if isinstance(result, GeneratorType) else result
        return cast(_Result, steps)

    return counted


def awaited_methods(cls: _Class) -> _Class:
    """The class, with `awaited` public methods."""
    for name, method in vars(cls).copy().items():
        if isfunction(method) and not name.startswith("_"):
            setattr(cls, name, awaited(method))
    return cls


def _awaited_steps(steps: Generator[object, None, None]) -> Iterator[object]:
    end = object()
    try:
        while True:
            with _calls.one():
                step = next(steps, end)
            if step is end:
                return
            yield step
    finally:
        with _calls.one():
            steps.close()


def _forget() -> None:
    """In a forked child, the other threads do not exist."""
    global _calls
    _calls = _Calls()


os.register_at_fork(after_in_child=_forget)
# What is registered later is called earlier: finalizers would close the files of running calls.
weakref.finalize(_Calls, bool)
atexit.register(lambda: _calls.end())


def control_group_limits(
    groups: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> Iterator[int]:
    """The limits of this process's control groups, of both cgroup versions, in bytes."""
    for line in _lines(groups):
        _, controllers, name = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, file = (
            (mount / "memory", "memory.limit_in_bytes") if controllers else (mount, "memory.max")
        )
        inner = root / name.lstrip("/")
        for folder in (inner, *inner.parents):
            if folder.is_relative_to(root):
                # "max", and version 1's largest number, are no limit.
                yield from (int(text) for text in _lines(folder / file) if text.isdigit())


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:  # no such group, or no permission
        return []


@contextmanager
def on_signals(
    react: Callable[[int, FrameType | None], None], *more: signal.Signals
) -> Iterator[None]:
    """Calls `react` for SIGINT, SIGTERM and `more` while the context lasts."""
    if current_thread() is not main_thread():
        yield  # Python sets signal handlers only in the main thread
        return
    numbers = (signal.SIGINT, signal.SIGTERM, *more)
    before = {number: signal.signal(number, react) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is None:  # it was not set from Python, and cannot be put back
                usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
                signal.signal(number, usual)
            else:
                signal.signal(number, handler)
