"""At every call of an operation, an intruder runs a whole operation of its own before the first one
continues: all interleavings of the two with one change of turns, but those that differ from another
one only in reads that see nothing of the intruder."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.build.executor import LocalExecutor
from hudi_index_service.build.run import run_build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import BuildSettings, Settings
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.metadata.definitions import DefinitionStore
from tests.faults.conftest import REWRITTEN, CopyState, State
from tests.faults.faulty_storage import CHANGES, READS_CONTENT, Call, GatedStorage
from tests.faults.invariants import (
    A_WHILE,
    INDEX,
    Check,
    Shape,
    age,
    check_answers,
    check_converged,
    everything_is_built,
    no_check,
    no_column_is_lost,
    no_entry_is_left,
    shape,
)
from tests.faults.operations import Work, build_in_parts
from tests.faults.replay import replay

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


def build_for(*names: str) -> Work:
    """Builds what these indexes need for every base file, and nothing else."""

    def build(table: IndexedTable) -> None:
        run_build(
            table.hudi_table,
            DefinitionStore(table.hudi_table.storage).read(),
            strategy=Strategy.ALL,
            executor=LocalExecutor(1),
            settings=table._settings,
            indexes=names,
        ).raise_for_failures()

    return build


def clean_at_once(table: IndexedTable) -> None:
    table.clean(grace_seconds=0)


def purge(name: str) -> Work:
    return lambda table: table.drop_index(name, purge=True)


def refresh(table: IndexedTable) -> None:
    table.alter_index("early", add=["ts"], drop=["amount"])
    table.refresh("early").raise_for_failures()


def no_entry_holds_amount(table: IndexedTable, raised: BaseException | None) -> None:
    for manifest in Path(table.uri, INDEX, "lucene").rglob("manifest-*"):
        assert '"amount"' not in manifest.read_text()


@dataclass(frozen=True)
class Pair:
    """An operation and an intruder.

    Attributes:
        state: The state of the table that it starts from.
        prepare: Applied before.
        check: What has to hold as soon as both have ended; gets the operation's exception.
        hudi: The intruder is Hudi, which rewrites a partition and cleans.
        late: It runs so late that a running builder looks dead.
    """

    name: str
    state: str
    operation: Work
    intruder: Work
    check: Check = no_check
    prepare: Work = lambda table: None
    hudi: bool = False
    late: bool = False


def define_more(table: IndexedTable) -> None:
    table.create_index("more", ["id"])


def define_more_and_build(table: IndexedTable) -> None:
    define_more(table)
    build_for("more")(table)


def do_nothing(table: IndexedTable) -> None:
    pass


EARLY, MORE, ALL = build_for("early"), build_for("more"), build_for("early", "keys")

PAIRS = (
    Pair("build, clean", "defined", EARLY, clean_at_once, everything_is_built),
    Pair("build, late clean", "defined", EARLY, clean_at_once, late=True),
    Pair("build, build", "defined", EARLY, MORE, no_column_is_lost, define_more, late=True),
    Pair("build, purge", "defined", EARLY, purge("early"), no_entry_is_left),
    Pair("build, drop", "defined", EARLY, lambda table: table.drop_index("early")),
    Pair("build, Hudi", "indexed", ALL, do_nothing, hudi=True),
    Pair("parts, clean", "defined", build_in_parts, clean_at_once, everything_is_built),
    Pair("parts, purge", "defined", build_in_parts, purge("early"), no_entry_is_left),
    Pair("refresh, clean", "indexed", refresh, clean_at_once),
    Pair("refresh, build", "indexed", refresh, define_more_and_build, late=True),
    Pair("refresh, purge", "indexed", refresh, purge("early")),
    Pair("refresh, Hudi", "indexed", refresh, do_nothing, hudi=True),
    Pair("purge, build", "indexed", purge("early"), define_more_and_build, no_entry_holds_amount),
    Pair("purge, late build", "indexed", purge("early"), define_more_and_build, late=True),
    Pair("purge, purge", "indexed", purge("early"), purge("keys")),
    Pair("clean, build", REWRITTEN[-1], clean_at_once, ALL, everything_is_built),
    Pair("clean, clean", REWRITTEN[-1], clean_at_once, clean_at_once),
    Pair("clean, Hudi", "indexed", clean_at_once, do_nothing, hudi=True),
)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_intruder_at_every_call(
    pair: Pair, states: dict[str, State], copy_state: CopyState, tmp_path: Path
) -> None:
    settings = Settings(
        cache_folder=tmp_path / "cache", build=BuildSettings(parallelism=1, memory_mb=16)
    )
    expected = states[REWRITTEN[-1] if pair.hudi else pair.state].expected
    settled: set[Shape] = set()
    first = 1
    while True:
        path = copy_state(pair.state)
        with open_table(path, settings=settings) as table:
            pair.prepare(table)
        storage, raised, changed = _with_intruder(pair, path, states, settings, first)
        if len(storage.calls) < first:  # the operation ended before that call
            break
        try:
            assert raised is None or isinstance(raised, IndexServiceError), repr(raised)
            with open_table(path, settings=settings) as table:
                left = shape(path)
                if left not in settled:
                    check_answers(table, expected)
                pair.check(table, raised)
                if left not in settled:
                    check_converged(table, expected)
                    settled.add(left)
        except BaseException as error:
            error.add_note(f"{pair.name}: {storage.calls[first - 1]}; it raised {raised!r}")
            raise
        shutil.rmtree(path)
        # Before each call up to the first that sees the intruder, it would do what it did here.
        later = storage.calls[first - 1 :]
        first = 1 + next(
            (e.number for e in later if _sees(storage, e, changed)), len(storage.calls)
        )


def _with_intruder(
    pair: Pair, path: Path, states: dict[str, State], settings: Settings, first: int
) -> tuple[GatedStorage, BaseException | None, set[str]]:
    """Runs the operation with the intruder before this call. Returns the operation's storage, what
    it raised, and the paths that the intruder changed."""
    changed: set[str] = set()

    def intrude() -> None:
        if pair.hudi:
            changed.add("")  # what hudi-rs reads is not known
            names = ("indexed", *REWRITTEN)
            for before, after in pairwise(names):
                for _, work in replay(states[before].path, states[after].path, path):
                    work()
        if pair.late:
            age(path, A_WHILE)
            changed.add(f"{INDEX}/")
        other = GatedStorage(path)
        with IndexedTable(HudiTable(other), settings=settings) as table:
            pair.intruder(table)
        changed.update(call.path for call in other.calls if call.operation in CHANGES)

    def gate(call: Call, work: Callable[[], Any]) -> Any:
        if call.number == first:
            intrude()
        return work()

    storage = GatedStorage(path, gate)
    try:
        with IndexedTable(HudiTable(storage), settings=settings) as table:
            pair.operation(table)
    except Exception as error:  # noqa: BLE001 - judged by the test
        return storage, error, changed
    return storage, None, changed


def _sees(storage: GatedStorage, call: Call, changed: set[str]) -> bool:
    """Whether it matters that the intruder ran before the call rather than after it, and before
    what is read past the storage until the next call."""
    if call.operation in CHANGES or "" in changed:
        return True
    if any(number <= call.number and path in changed for number, path in storage.direct):
        return True
    if call.operation in READS_CONTENT:
        return call.path in changed
    return any(each.startswith(call.path) or call.path.startswith(each) for each in changed)
