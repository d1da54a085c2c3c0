"""The operations made to fail, each with its initial state and its recovery."""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hudi_index_service import IndexedTable
from hudi_index_service.build.entry.task import BuildTask, TaskOutcome, run_task
from hudi_index_service.build.executor import Executor, Schedule
from hudi_index_service.build.run import run_build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import IndexExists, IndexServiceError
from hudi_index_service.index.metadata.definitions import DefinitionStore
from hudi_index_service.maintain.drop import Dropped
from tests.faults.conftest import CLEANED
from tests.faults.invariants import A_WHILE, INDEX, age

Work = Callable[[IndexedTable], object]

DEFINITIONS = f"{INDEX}/_service/definitions"


class ReportedInResult(IndexServiceError):
    """Something was not done, which the operation does not raise but reports in its result."""


@dataclass(frozen=True)
class Operation:
    """An operation on a table.

    Attributes:
        name: Shown in test ids.
        state: The state of the table that it starts from.
        run: Executed with faults; raises what a user would see.
        again: Executed after the fault, without faults: brings the table to where `run` alone would
            have brought it, whether `run` had its effect or not.
        prepare: Applied to the copy before.
        remote: Access the table like one in a remote store: base files too are read through the
            storage. Only reads of a file fail; for the other calls there is the same operation on
            a local disk.
    """

    name: str
    state: str
    run: Work
    again: Work
    prepare: Callable[[Path], object] = lambda path: None
    remote: bool = False


def _build(strategy: str) -> Work:
    return lambda table: table.build(strategy=strategy).raise_for_failures()  # type: ignore[arg-type]


class InParts(Executor):
    """Builds every base file in parts, one task after another."""

    parallelism = 4
    processes = 1

    def run(self, tasks: Sequence[BuildTask]) -> Generator[TaskOutcome | None, None, None]:
        """See `hudi_index_service.build.executor.Executor`."""
        schedule = Schedule([replace(task, part_bytes=1) for task in tasks], slots=4)
        try:
            assert len(schedule.tasks) >= 2 * len(tasks)
            for position, task in enumerate(schedule.tasks):
                yield schedule.ended(position, run_task(task))
        finally:
            schedule.give_up()


def build_in_parts(table: IndexedTable) -> None:
    """Builds every base file."""
    run_build(
        table.hudi_table,
        DefinitionStore(table.hudi_table.storage).read(),
        strategy=Strategy.ALL,
        executor=InParts(),
        settings=table._settings,
    ).raise_for_failures()


def _create(table: IndexedTable) -> None:
    table.create_index("more", ["id"], if_not_exists=True)


def _drop(*names: str, purge: bool) -> Work:
    def drop(table: IndexedTable) -> None:
        live = {each.name for each in table.indexes()}
        for name in names if purge else live & set(names):
            dropped = table.drop_index(name, purge=purge)
            _raise_reported(dropped)

    return drop


def _raise_reported(dropped: Dropped) -> None:
    """Raises what a purge reports as left over."""
    if dropped.purge is not None:
        if dropped.purge.build is not None:
            dropped.purge.build.raise_for_failures()
        if dropped.purge.remaining:
            raise ReportedInResult(str(dropped.purge.remaining))


def _drop_columns(table: IndexedTable) -> None:
    _raise_reported(table.drop_index(columns=["msg"], purge=True))


def _with_recovery(columns: Mapping[str, Sequence[str]], work: Work) -> Work:
    """Before repeating the work, recreates indexes with damaged definitions, as the error
    recommends."""

    def again(table: IndexedTable) -> None:
        live = {each.name for each in table.indexes()}
        for name in columns:
            newest = max((Path(table.uri) / DEFINITIONS).glob(f"{name}-*.json"), default=None)
            if name not in live and newest is not None and not _is_whole(newest):
                table.create_index(name, columns[name])
        work(table)

    return again


def _is_whole(definition: Path) -> bool:
    try:
        json.loads(definition.read_bytes())
    except ValueError:
        return False
    return True


def _alter_and_refresh(table: IndexedTable) -> None:
    (early,) = (each for each in table.indexes() if each.name == "early")
    if "ts" not in {column.name for column in early.columns}:
        table.alter_index("early", add=["ts"], drop=["amount"])
    table.refresh("early").raise_for_failures()


def _disable_and_enable(table: IndexedTable) -> None:
    table.disable()
    table.enable()


def _rename(table: IndexedTable) -> None:
    if "early" in {each.name for each in table.indexes()}:
        table.alter_index("early", rename_to="late")


def _finish_rename(table: IndexedTable) -> None:
    """Repeats the call; drops the old name if it was lost and created again."""
    try:
        _rename(table)
    except IndexExists:
        table.drop_index("early")


def _repair(table: IndexedTable) -> None:
    verification = table.verify(repair=True, sample=2)
    if verification.unrepaired:
        raise ReportedInResult(str(verification.unrepaired))


def _damage(path: Path) -> None:
    """Flips one bit in each entry's newest data file."""
    for manifest in (path / INDEX / "lucene").rglob("manifest-0002.json"):
        (data,) = manifest.parent.glob("data-000002-*.pack")
        content = bytearray(data.read_bytes())
        content[len(content) // 2] ^= 1
        data.write_bytes(content)


def _old(path: Path) -> None:
    age(path, A_WHILE)


_INCREMENTAL = _build("incremental")
_ALL = _build("all")
_CLEAN = IndexedTable.clean
_DROP = _drop("keys", purge=False)
_PURGE_ALL = _drop("early", "keys", purge=True)

_EARLY = {"early": ["msg", "amount"]}
_KEYS = {"keys": ["id"]}
_ALTERED = {"early": ["msg", "ts"]}

OPERATIONS = (
    Operation("incremental build", "defined", _INCREMENTAL, _INCREMENTAL),
    Operation("remote build", "defined", _INCREMENTAL, _INCREMENTAL, remote=True),
    Operation("build in parts", "defined", build_in_parts, build_in_parts),
    Operation("remote build in parts", "defined", build_in_parts, build_in_parts, remote=True),
    Operation("build of all", CLEANED, _ALL, _ALL),
    Operation("create", "defined", _create, _create),
    Operation("disable and enable", "indexed", _disable_and_enable, _disable_and_enable),
    Operation(
        "alter and refresh",
        "indexed",
        _alter_and_refresh,
        _with_recovery(_ALTERED, _alter_and_refresh),
    ),
    Operation("rename", "indexed", _rename, _with_recovery(_EARLY, _finish_rename)),
    Operation("drop", "indexed", _DROP, _with_recovery(_KEYS, _DROP)),
    Operation("drop of columns", "indexed", _drop_columns, _with_recovery(_EARLY, _drop_columns)),
    Operation(
        "purge of all", "indexed", _PURGE_ALL, _with_recovery(_EARLY | _KEYS, _PURGE_ALL), _old
    ),
    Operation("clean", CLEANED, _CLEAN, _CLEAN, _old),
    Operation("remote clean", CLEANED, _CLEAN, _CLEAN, _old, remote=True),
    Operation("repair", "indexed", _repair, _repair, _damage),
)
