"""Runs work in a forked child."""

import os
import signal
from collections.abc import Callable

from hudi_index_service.errors import NativeModuleMissing


def status_of_child(work: Callable[[], object]) -> int:
    """The status of a forked child: 0 if the work returns, 2 if it is refused with the remedy."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # rather than hang
        status = 1
        try:
            work()
            status = 0
        except NativeModuleMissing as error:
            status = 2 if "spawn" in error.remedy else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
