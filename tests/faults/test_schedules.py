"""Builders, cleaners, changes of definitions, Hudi itself and the passing of time, interleaved call
by call: no reader ever gets a wrong answer, and afterwards everything converges."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import BuildSettings, CleanSettings, Settings
from hudi_index_service.errors import (
    BuildFailed,
    BuildInProgress,
    IndexExists,
    IndexNotFound,
    SnapshotChanged,
)
from hudi_index_service.hudi.table import HudiTable
from tests.faults.conftest import CLEANED, REWRITTEN, CopyState, State
from tests.faults.faulty_storage import Call, GatedStorage
from tests.faults.invariants import (
    A_WHILE,
    Check,
    age,
    check_answers,
    check_converged,
    everything_is_built,
    no_check,
    no_column_is_lost,
    no_entry_is_left,
)
from tests.faults.operations import Work
from tests.faults.replay import replay
from tests.faults.schedule import Schedule

# FAULT_SEEDS=500 pytest tests/faults -m "" runs more.
SEEDS = int(os.environ.get("FAULT_SEEDS", "10"))

# Errors with which an actor may end when another one interferes.
ALLOWED = (BuildInProgress, BuildFailed, IndexExists, IndexNotFound, SnapshotChanged)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@dataclass(frozen=True)
class Plot:
    """Who works on a table, beside a reader.

    Attributes:
        state: The state of the table at the beginning.
        actors: Name → what it does, once.
        check: What has to hold as soon as all have ended; gets an exception that an actor raised.
        hudi: Hudi rewrites a partition and cleans, three times.
        late: Time passes, twice: running builds look dead, files look old.
        old: The table's files look old at the beginning.
    """

    state: str
    actors: Mapping[str, Work]
    check: Check = no_check
    hudi: bool = False
    late: bool = False
    old: bool = False


def build(table: IndexedTable) -> None:
    table.build(strategy="all").raise_for_failures()


def define_and_build(column: str) -> Work:
    def work(table: IndexedTable) -> None:
        table.create_index("more", [column], if_not_exists=True)
        build(table)

    return work


def drop(*, purge: bool) -> Work:
    return lambda table: table.drop_index("early", purge=purge)


BUILDER, CLEANER = {"builder": build}, {"cleaner": IndexedTable.clean}
PURGE = {"dropper": drop(purge=True)}

PLOTS = {
    # The second builder finds the first one running, or takes it for dead.
    "builders of different definitions": Plot(
        "defined", {**BUILDER, "other": define_and_build("id")}, no_column_is_lost, late=True
    ),
    "builder and cleaner": Plot(CLEANED, {**BUILDER, **CLEANER}, everything_is_built),
    "builder taken for dead and cleaner": Plot("defined", {**BUILDER, **CLEANER}, late=True),
    "drop during a build": Plot("defined", {**BUILDER, "dropper": drop(purge=False)}),
    "purge during a build": Plot("defined", {**BUILDER, **PURGE}, no_entry_is_left),
    "purge of another index": Plot(
        "indexed", {"builder": define_and_build("msg"), **PURGE}, late=True
    ),
    "builder and Hudi": Plot("indexed", BUILDER, hudi=True),
    "builder, cleaner and Hudi": Plot("indexed", {**BUILDER, **CLEANER}, hudi=True, late=True),
    "two cleaners": Plot(CLEANED, {**CLEANER, "other": IndexedTable.clean}, old=True),
}


class Stage:
    """A table, and the actors that work on it."""

    def __init__(
        self, plot: Plot, path: Path, states: dict[str, State], folder: Path, seed: int
    ) -> None:
        self._plot, self._path, self._states = plot, path, states
        self._schedule = Schedule(seed)
        self._random = Random(seed)
        # Half of the schedules access the table like one in a remote store.
        self._remote = self._random.random() < 0.5
        self._settings = Settings(
            cache_folder=folder / "cache",
            build=BuildSettings(parallelism=1, memory_mb=16),
            clean=CleanSettings(grace_seconds=self._random.choice((0, 3600))),
        )
        expected = (plot.state, *(REWRITTEN if plot.hudi else ()))
        self._may_answer = [states[each].expected for each in expected]
        self._answers = 0

    def _table(self, actor: str) -> IndexedTable:
        """The table as opened by the actor."""
        storage = GatedStorage(self._path, self._schedule.gate(actor), remote=self._remote)
        return IndexedTable(HudiTable(storage), settings=self._settings)

    def _act(self, actor: str) -> None:
        with self._table(actor) as table:
            self._plot.actors[actor](table)

    def _pass_time(self) -> None:
        for number in (1, 2):
            call = Call(number, "time passes", "")
            self._schedule.gate("time")(call, lambda: age(self._path, A_WHILE))

    def _run_hudi(self) -> None:
        gate = self._schedule.gate("hudi")
        for before, after in pairwise(("indexed", *REWRITTEN)):
            paths = self._states[before].path, self._states[after].path
            for number, (path, work) in enumerate(replay(*paths, self._path), 1):
                gate(Call(number, after, path), work)

    def _read(self) -> None:
        """Queries repeatedly, the last time after the others have ended."""
        with self._table("reader") as table:
            others = True
            while others:
                others = bool(self._schedule.present() - {"reader"})
                where = self._random.choice(list(self._may_answer[0]))
                try:
                    found = table.scan(where, columns=["id"]).to_arrow()
                except SnapshotChanged:
                    assert self._plot.hudi
                    continue
                ids = sorted(found["id"].to_pylist())
                assert ids in [each[where] for each in self._may_answer], where
                self._answers += 1

    def play(self) -> None:
        """Runs all actors and checks the result."""
        actors: dict[str, Callable[[], object]] = {"reader": self._read}
        actors |= {name: lambda name=name: self._act(name) for name in self._plot.actors}
        actors |= {"hudi": self._run_hudi} if self._plot.hudi else {}
        actors |= {"time": self._pass_time} if self._plot.late else {}
        raised = self._schedule.raised
        try:
            self._schedule.run(actors)
            for actor, error in raised.items():
                if not isinstance(error, ALLOWED):
                    raise AssertionError(f"{actor} ended with {error!r}") from error
            assert self._answers > 0
            with open_table(self._path, settings=self._settings) as table:
                check_answers(table, self._may_answer[-1])
                self._plot.check(table, next(iter(raised.values()), None))
                check_converged(table, self._may_answer[-1])
        except BaseException as error:
            error.add_note(f"remote: {self._remote}, {self._settings.clean}")
            error.add_note(f"raised: {raised}")
            error.add_note(self._schedule.story())
            raise


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_actors_interleaved_call_by_call(
    plot: Plot, seed: int, states: dict[str, State], copy_state: CopyState, tmp_path: Path
) -> None:
    path = copy_state(plot.state)
    if plot.old:
        age(path, A_WHILE)
    Stage(plot, path, states, tmp_path, seed).play()
