"""Builders, cleaners, changes of definitions, Hudi itself and the passing of time, interleaved call
by call: no reader ever gets a wrong answer, and afterwards everything converges."""

import os
from collections.abc import Callable
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
from tests.faults.invariants import A_WHILE, INDEX, age, check_answers, check_converged
from tests.faults.replay import replay
from tests.faults.schedule import Schedule

# FAULT_SEEDS=500 pytest tests/faults -m "" runs more.
SEEDS = int(os.environ.get("FAULT_SEEDS", "10"))

# Errors with which an actor may end when another one interferes.
ALLOWED = (BuildInProgress, BuildFailed, IndexExists, IndexNotFound, SnapshotChanged)


class Stage:
    """A table, and the actors that work on it."""

    def __init__(self, path: Path, states: dict[str, State], folder: Path, seed: int) -> None:
        self.path = path
        self.states = states
        self.schedule = Schedule(seed)
        self.actors: dict[str, Callable[[], object]] = {}
        self.random = Random(seed)
        # Half of the schedules access the table like one in a remote store.
        self._remote = self.random.random() < 0.5
        self._settings = Settings(
            cache_folder=folder / "cache",
            build=BuildSettings(parallelism=1, memory_mb=16),
            clean=CleanSettings(grace_seconds=self.random.choice((0, 3600))),
        )
        self.may_answer = [states[path.name.rsplit("-", 1)[0]].expected]
        self.answers = 0

    def table(self, actor: str) -> IndexedTable:
        """The table as opened by the actor."""
        storage = GatedStorage(self.path, self.schedule.gate(actor), remote=self._remote)
        return IndexedTable(HudiTable(storage), settings=self._settings)

    def add(self, actor: str, work: Callable[[IndexedTable], object]) -> None:
        """Adds an actor that does `work` once."""

        def act() -> None:
            with self.table(actor) as table:
                work(table)

        self.actors[actor] = act

    def add_builder(self, actor: str) -> None:
        self.add(actor, lambda table: table.build(strategy="all").raise_for_failures())

    def add_cleaner(self, actor: str = "cleaner") -> None:
        self.add(actor, IndexedTable.clean)

    def add_time(self) -> None:
        """Time passes, twice: running builds look dead, files look old."""

        def act() -> None:
            for number in (1, 2):
                call = Call(number, "time passes", "")
                self.schedule.gate("time")(call, lambda: age(self.path, A_WHILE))

        self.actors["time"] = act

    def add_hudi(self) -> None:
        """Hudi rewrites a partition and cleans, three times."""
        names = ("indexed", *REWRITTEN)
        self.may_answer += [self.states[name].expected for name in REWRITTEN]

        def act() -> None:
            gate = self.schedule.gate("hudi")
            for before, after in pairwise(names):
                paths = self.states[before].path, self.states[after].path
                for number, (path, work) in enumerate(replay(*paths, self.path), 1):
                    gate(Call(number, after, path), work)

        self.actors["hudi"] = act

    def add_reader(self) -> None:
        """An actor that queries repeatedly, the last time after the others have ended."""

        def act() -> None:
            with self.table("reader") as table:
                others = True
                while others:
                    others = bool(self.schedule.present() - {"reader"})
                    where = self.random.choice(list(self.may_answer[0]))
                    try:
                        found = table.scan(where, columns=["id"]).to_arrow()
                    except SnapshotChanged:
                        assert "hudi" in self.actors
                        continue
                    ids = sorted(found["id"].to_pylist())
                    assert ids in [each[where] for each in self.may_answer], where
                    self.answers += 1

        self.actors["reader"] = act

    def play(self, check: Callable[[IndexedTable], None] = lambda table: None) -> None:
        """Runs all actors and checks the result.

        Args:
            check: What has to hold as soon as all have ended, before the next build and sweep.
        """
        try:
            self.schedule.run(self.actors)
            for actor, error in self.schedule.raised.items():
                if not isinstance(error, ALLOWED):
                    raise AssertionError(f"{actor} ended with {error!r}") from error
            assert self.answers > 0
            with open_table(self.path, settings=self._settings) as table:
                check_answers(table, self.may_answer[-1])
                check(table)
                check_converged(table, self.may_answer[-1])
        except BaseException as error:
            error.add_note(f"remote: {self._remote}, {self._settings.clean}")
            error.add_note(f"raised: {self.schedule.raised}")
            error.add_note(self.schedule.story())
            raise


@pytest.fixture
def make_stage(
    states: dict[str, State], copy_state: CopyState, tmp_path: Path, seed: int
) -> Callable[[str], Stage]:
    def make(state: str) -> Stage:
        new_stage = Stage(copy_state(state), states, tmp_path, seed)
        new_stage.add_reader()
        return new_stage

    return make


pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("seed", range(SEEDS)),
    pytest.mark.timeout(1200),
]

MakeStage = Callable[[str], Stage]


def test_concurrent_builders_with_different_definitions(make_stage: MakeStage) -> None:
    """The second builder finds the first one running, or takes it for dead."""
    stage = make_stage("defined")

    def define_and_build(table: IndexedTable) -> None:
        table.create_index("more", ["id"], if_not_exists=True)
        table.build(strategy="all").raise_for_failures()

    stage.add_builder("builder")
    stage.add("other builder", define_and_build)
    stage.add_time()

    def no_column_is_lost(table: IndexedTable) -> None:
        if not stage.schedule.raised:
            assert table.build(strategy="all", dry_run=True).due == ()

    stage.play(no_column_is_lost)


def test_builder_and_cleaner(make_stage: MakeStage) -> None:
    stage = make_stage(CLEANED)
    stage.add_builder("builder")
    stage.add_cleaner()

    def everything_is_built(table: IndexedTable) -> None:
        assert not stage.schedule.raised
        assert table.build(strategy="all", dry_run=True).due == ()

    stage.play(everything_is_built)


def test_builder_taken_for_dead_and_cleaner(make_stage: MakeStage) -> None:
    stage = make_stage("defined")
    stage.add_builder("builder")
    stage.add_cleaner()
    stage.add_time()
    stage.play()


@pytest.mark.parametrize("purge", [False, True], ids=["drop", "purge"])
def test_index_dropped_during_its_build(make_stage: MakeStage, purge: bool) -> None:
    stage = make_stage("defined")
    stage.add_builder("builder")
    stage.add("dropper", lambda table: table.drop_index("early", purge=purge))

    def no_entry_is_left(table: IndexedTable) -> None:
        if purge:
            assert list((stage.path / INDEX / "lucene").rglob("manifest-*")) == []

    stage.play(no_entry_is_left)


def test_one_of_two_indexes_purged_during_a_build(make_stage: MakeStage) -> None:
    stage = make_stage("indexed")

    def define_and_build(table: IndexedTable) -> None:
        table.create_index("more", ["msg"])
        table.build(strategy="all").raise_for_failures()

    stage.add("builder", define_and_build)
    stage.add("dropper", lambda table: table.drop_index("early", purge=True))
    stage.add_time()
    stage.play()


def test_builder_and_hudi(make_stage: MakeStage) -> None:
    stage = make_stage("indexed")
    stage.add_builder("builder")
    stage.add_hudi()
    stage.play()


def test_builder_cleaner_and_hudi(make_stage: MakeStage) -> None:
    stage = make_stage("indexed")
    stage.add_builder("builder")
    stage.add_cleaner()
    stage.add_hudi()
    stage.add_time()
    stage.play()


def test_two_cleaners(make_stage: MakeStage) -> None:
    stage = make_stage(CLEANED)
    age(stage.path, A_WHILE)
    stage.add_cleaner("cleaner")
    stage.add_cleaner("other cleaner")
    stage.play()
