"""The process's Java virtual machine, which PyLucene runs in.

Rules learnt the hard way: one JVM a process, started once; every thread attaches before its first
call, else the process dies; a process forked after the start must not touch it.
"""

import os
from functools import cache
from threading import Lock
from typing import Any

from hudi_index_service.config import settings
from hudi_index_service.errors import NativeModuleMissing

_start = Lock()
_started_in: int | None = None


@cache
def _module() -> Any:
    try:
        import lucene
    except ImportError as error:
        raise NativeModuleMissing(f"PyLucene cannot be imported: {error}.") from error
    return lucene


def attach() -> Any:
    """Starts the JVM if need be, attaches this thread to it, and returns the `lucene` module.

    Raises:
        NativeModuleMissing: PyLucene or the JDK's libjvm is not there, or this process was forked
            from one whose JVM runs.
    """
    global _started_in
    lucene = _module()
    with _start:
        if _started_in is not None and _started_in != os.getpid():
            raise NativeModuleMissing(
                "This process was forked from one whose Lucene JVM was already running.",
                remedy="Use the multiprocessing start method 'spawn'.",
            )
        environment = lucene.getVMEnv()
        if environment is None:
            # -Xrs leaves the signals to Python, so that Ctrl-C works as ever.
            lucene.initVM(
                vmargs=[
                    "-Xrs",
                    "-Xss1m",
                    f"-Xmx{settings().lucene.heap_mb}m",
                    "-XX:+UseSerialGC",
                    # Reserved at the start: by default more than the heap, for nothing.
                    "-XX:CompressedClassSpaceSize=64m",
                    "-XX:ReservedCodeCacheSize=64m",
                    # Counters for monitors: a file in /tmp, which a killed process leaves there.
                    "-XX:-UsePerfData",
                    "-Djava.awt.headless=true",
                ]
            )
        else:
            environment.attachCurrentThread()
        _started_in = os.getpid()
    return lucene
