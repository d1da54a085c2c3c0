"""What carries out the orders of the service that is measured: as always, but for tables for which
the benchmark has ordered a fault, by a file of the table's name with ``sleeps``, ``grows`` or
``segfaults`` in it."""

import os
from dataclasses import replace
from pathlib import Path

from hudi_index_service.fleet.builds.child import Progress
from hudi_index_service.fleet.builds.messages import Ended, Order
from hudi_index_service.fleet.builds.runner import run as run_for_real
from tests.fleet.faulty_runner import run as run_with_fault

RUNNER = "benchmarks.fleet.faults:run"
FOLDER = "BENCH_FLEET_FAULTS"
"""Environment variable: the folder of these files."""


def run(order: Order, progress: Progress) -> Ended:
    """Carries out an order."""
    ordered = Path(os.environ[FOLDER], Path(order.table).name)
    if not ordered.exists():
        return run_for_real(order, progress)
    # The tests' runner goes by the name of the table.
    return run_with_fault(replace(order, table=ordered.read_text()), progress)
