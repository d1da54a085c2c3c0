"""`hudi-index` as it is, but that builds can be told to fail, that a child may take less memory,
and that it ends sooner when there is nothing to do: what is to be seen in five minutes is seen in
seconds. `python -m benchmarks.fleet.command serve --config …`."""

from functools import partial

from benchmarks.fleet.faults import RUNNER
from hudi_index_service.cli import main
from hudi_index_service.config import settings
from hudi_index_service.fleet import service
from hudi_index_service.fleet.builds.pool import fitting
from hudi_index_service.fleet.builds.process import Limits
from hudi_index_service.fleet.supervisor import Supervisor

MEMORY_MB = 600
IDLE_SECONDS = 5.0

if __name__ == "__main__":
    limits = fitting(
        Limits(memory_mb=MEMORY_MB, idle_seconds=IDLE_SECONDS), most=settings().hook.parallelism
    )
    service.Supervisor = partial(Supervisor, limits=limits, runner=RUNNER)  # type: ignore[misc]
    main()
