"""A service that is killed leaves no process behind, and the next one builds what was due."""

import json
import os
import signal

import pytest

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.fleet.task import Task
from tests.fleet.conftest import ended, is_covered, seen
from tests.fleet.test_children import is_alive
from tests.programs import awaited

pytestmark = pytest.mark.slow

PROGRAM = """
import json
import sys
from time import sleep

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.fleet.builds.process import Limits
from hudi_index_service.fleet.task import Task
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.supervisor import Supervisor
from tests.fleet.faulty_runner import RUNNER

state, *tables = sys.argv[1:]
settings = Settings(state_folder=state)
policies = [TablePolicy(uri.rsplit("/", 1)[1], uri) for uri in tables]
fleet = Supervisor(policies, settings=settings, limits=Limits(slots=1), runner=RUNNER)
asked = fleet.ask("deaf", Task("build", Strategy.ALL), key="k", requested_by="anna")
fleet.start()
while not fleet.table("deaf").running or not fleet.table("deaf").running.progress:
    sleep(0.01)
print(json.dumps([fleet.pids(), asked.id]), flush=True)
sleep(3600)
"""


def test_killed_service_is_succeeded(running, policy, fleet_settings, supervising):
    deaf, orders = policy("deaf"), policy("orders", priority=-1)
    service = running(PROGRAM, fleet_settings.state_folder, deaf.uri, orders.uri)
    (child,), request = json.loads(service.stdout.readline())
    assert is_alive(child)

    os.kill(service.pid, signal.SIGKILL)
    service.wait()

    assert awaited(lambda: not is_alive(child), 30)
    successor = supervising(deaf, orders, runner="hudi_index_service.fleet.builds.runner:run")
    assert ended(successor, request).requested_by == "anna"
    assert successor.ask("deaf", Task("build", Strategy.ALL), key="k").id == request
    for name in ("deaf", "orders"):
        assert seen(successor, name, is_covered)
