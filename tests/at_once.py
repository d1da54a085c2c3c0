"""Runs work in several threads that begin at the same moment."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

Result = TypeVar("Result")


def at_once(*work: Callable[[], Result]) -> list[Result]:
    """The results, in order; raises the first error."""
    together = Barrier(len(work))

    def run(each: Callable[[], Result]) -> Result:
        together.wait()
        return each()

    with ThreadPoolExecutor(len(work)) as threads:
        return list(threads.map(run, work))
