"""Lets calls of daemon threads end before their process does.

Python (before 3.14) ends a daemon thread that comes back from native code while the interpreter is
being taken down. That unwinds frames of C++ and Rust, which abort the process (SIGABRT). So an exit
waits for the calls that are running, and a daemon thread that makes another one is ended.
"""

import atexit
import logging
import os
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isfunction
from threading import Condition, current_thread, local, main_thread
from types import GeneratorType
from typing import Any, ParamSpec, TypeVar, cast

_MOST_SECONDS = 10
"""How long an exit waits; a build in a daemon thread may take longer."""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Class = TypeVar("_Class", bound=type)
_Step = TypeVar("_Step")

log = logging.getLogger(__name__)


class _Calls:
    """The calls that run in threads other than the main one."""

    def __init__(self) -> None:
        self._running = 0
        self._is_ending = False
        self._changed = Condition()
        self._thread = local()

    @contextmanager
    def one(self) -> Iterator[None]:
        """A call, for the length of the block, or a part of one.

        Raises:
            SystemExit: the process is ending, and this is a daemon thread.
        """
        thread = current_thread()
        if thread is main_thread() or getattr(self._thread, "is_calling", False):
            yield
            return
        with self._changed:
            if self._is_ending and thread.daemon:
                raise SystemExit
            self._running += 1
        self._thread.is_calling = True
        try:
            yield
        finally:
            self._thread.is_calling = False
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def end(self) -> None:
        """Waits for the calls, and lets daemon threads make no other."""
        with self._changed:
            self._is_ending = True
            if not self._changed.wait_for(lambda: not self._running, _MOST_SECONDS):
                log.warning("The process ends while calls are running: %d.", self._running)


_calls = _Calls()
_left_open: list[object] = []  # generators of threads that were ended


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


def _awaited_steps(steps: Generator[_Step, None, None]) -> Iterator[_Step]:
    try:
        while True:
            try:
                with _calls.one():
                    step = next(steps)
            except StopIteration:
                return
            yield step
    except GeneratorExit:
        try:
            with _calls.one():
                steps.close()
        except SystemExit:
            _left_open.append(steps)
        raise
    except SystemExit:
        _left_open.append(steps)  # else it would be closed now
        raise


def _forget() -> None:
    """In a forked child, the other threads do not exist."""
    global _calls
    _calls = _Calls()


os.register_at_fork(after_in_child=_forget)
# What is registered later is called earlier: finalizers would close the files of running calls.
weakref.finalize(_Calls, bool)
atexit.register(lambda: _calls.end())
