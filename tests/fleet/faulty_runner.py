"""What carries out orders in children of tests: by the name of the table, it fails in some way."""

import ctypes
import os
import resource
import signal
import sys
from pathlib import Path
from time import sleep

from hudi_index_service import open_table
from hudi_index_service.fleet.builds.child import Progress
from hudi_index_service.fleet.builds.messages import Ended, Order
from hudi_index_service.fleet.builds.runner import run as run_for_real
from hudi_index_service.fleet.observation import DefinitionsSeen, Refusal
from hudi_index_service.fleet.tracing import traceparent
from hudi_index_service.index.metadata.build_records import BuildProgress

RUNNER = "tests.fleet.faulty_runner:run"


def run(order: Order, progress: Progress) -> Ended:
    """Carries out the order as the last part of the table's path says."""
    fault = Path(order.table).name.partition("-")[0]
    if fault == "sleeps":
        _say(order, progress)
        sleep(3600)
    elif fault == "waits":
        _say(order, progress)
        while not Path(order.table, "..", "is_free").exists():
            sleep(0.05)
        return run_for_real(order, progress)
    elif fault == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _say(order, progress)
        sleep(3600)
    elif fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "segfaults":
        ctypes.string_at(0)
    elif fault == "leaves":
        os._exit(7)
    elif fault == "grows":
        held = []
        while True:
            held.append(os.urandom(2**20) * 16)
            sleep(0.005)
    elif fault == "starves":
        raise MemoryError
    elif fault == "breaks":
        raise ZeroDivisionError("a bug")
    elif fault == "full" and Path(order.table, "..", "is_full").exists():
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))  # of a file
        try:
            return run_for_real(order, progress)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    elif fault == "prints":
        print("noise", flush=True)
        sys.stdin.read()
    elif fault == "defines" and order.action == "define":
        names = tuple(each.name for each in order.policy.definitions or ())
        plan = tuple(f"create {name}" for name in names)
        refusal = Refusal("COLUMN_NOT_FOUND", "There is no msg.", "Name another one.")
        found = DefinitionsSeen(
            drift=names,
            plan=() if order.is_asked else plan,
            invalid_definition=refusal if order.is_asked else None,
        )
        return Ended(order.request, "finished", definitions=found)
    elif fault == "queries":
        with open_table(order.table) as table:
            table.scan(where="sender = 'anna'").count()
    elif fault == "traced":
        return Ended(order.request, "finished", summary=traceparent())
    elif fault == "works":
        _say(order, progress)
        return Ended(order.request, "finished", built=1, summary=str(os.getpid()))
    else:
        return run_for_real(order, progress)
    return Ended(order.request, "finished")


def _say(order: Order, progress: Progress) -> None:
    progress(BuildProgress(2, 1, 0, 20, 10, None, 5, False, 0.1, None, None))
