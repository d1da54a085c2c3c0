"""A fleet of small tables, which children build, well or not."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hudi_index_service import open_table
from hudi_index_service.config import Settings
from hudi_index_service.fleet.builds.process import Limits
from hudi_index_service.fleet.observation import EndedBuild, Observation
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.supervisor import Supervisor
from tests.fleet.faulty_runner import RUNNER
from tests.programs import ROOT, awaited

LIMITS = Limits(slots=2, memory_mb=600, grace_seconds=10, tick_seconds=0.05)
POLL = timedelta(seconds=0.2)


@pytest.fixture(autouse=True)
def test_modules_in_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.fspath(ROOT))


@pytest.fixture
def fleet_settings(tmp_path: Path) -> Settings:
    """State of their own, and short rests."""
    return Settings(
        state_folder=tmp_path / "state",
        cache_folder=tmp_path / "cache",
        hook={"backoff_seconds": 0.2, "backoff_max_seconds": 60},
    )


@pytest.fixture(scope="session")
def two_states(golden: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A table with an index that is not built, before and after its clustering."""
    folder, states = tmp_path_factory.mktemp("fleet"), {}
    for step in ("written", "clustered"):
        states[step] = folder / step
        with open_table(golden("messages_of_users").put(states[step], "written")) as table:
            table.create_index("by_sender", ["sender"], using="btree")
        golden("messages_of_users").put(states[step], step)
    return states


@pytest.fixture
def policy(two_states: dict[str, Path], tmp_path: Path) -> Callable[..., TablePolicy]:
    """Makes a table and its policy. By the first part of its name, children build it, or fail."""

    def make(name: str = "orders", *, step: str = "clustered", **fields: Any) -> TablePolicy:
        path = shutil.copytree(two_states[step], tmp_path / name)
        return replace(TablePolicy(name, str(path), poll=POLL), **fields)

    return make


@pytest.fixture
def supervising(fleet_settings: Settings) -> Iterator[Callable[..., Supervisor]]:
    """Starts a supervisor, which is closed after the test."""
    with ExitStack() as stack:

        def start(*policies: TablePolicy, **options: Any) -> Supervisor:
            options = {"settings": fleet_settings, "limits": LIMITS, "runner": RUNNER, **options}
            supervisor = Supervisor(policies, **options)
            stack.callback(supervisor.close, seconds=0)
            supervisor.start()
            return supervisor

        yield start


def seen(
    supervisor: Supervisor,
    name: str,
    condition: Callable[[Observation], object],
    seconds: float = 60,
) -> Observation:
    """The table's observation, once it is as wanted."""

    def look() -> Observation | None:
        observation = supervisor.table(name)
        return observation if condition(observation) else None

    found = awaited(look, seconds, 0.01)
    assert found is not None
    return found


def ended(supervisor: Supervisor, request: str) -> EndedBuild:
    """The end of a request."""
    return supervisor.end_of(request).result(60)


def is_covered(observation: Observation) -> bool:
    """Whether all base files are seen to be indexed."""
    return bool(observation.status) and all(each.coverage == 1 for each in observation.status)
