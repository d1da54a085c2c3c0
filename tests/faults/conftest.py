"""A real table in several states, written once; every test case works on its own copy."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from hudi_index_service import open_table
from tests.faults.invariants import INDEX, Expected
from tests.golden.recipes.numbered import QUERIES
from tests.golden.table import Golden

REWRITTEN = tuple(f"rewritten {version}" for version in (1, 2, 3))
CLEANED = REWRITTEN[-1]


@dataclass(frozen=True)
class State:
    """A table at one time.

    Attributes:
        path: Its location; never changed.
        expected: Spark's answers.
    """

    path: Path
    expected: Expected


@pytest.fixture(scope="session")
def states(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> dict[str, State]:
    """States of one table of two partitions.

    defined: Clustered; the index ``early`` on msg and amount is due for both base files.
    indexed: ``early`` is built, and then ``keys`` on id: every entry has two generations.
    rewritten 1, 2, 3: The partition with the odd ids was rewritten that many times; meanwhile, Hudi
        has cleaned its indexed base file.
    """
    folder = tmp_path_factory.mktemp("states")
    table, path = golden("rewritten_three_times"), folder / "table"
    states: dict[str, State] = {}

    def keep(name: str, step: str) -> None:
        expected = {where: sorted(table.answer(where, step)["id"].to_pylist()) for where in QUERIES}
        states[name] = State(Path(shutil.copytree(path, folder / name)), expected)

    indexed = open_table(table.put(path, "written"))
    indexed.create_index("early", ["msg", "amount"])
    table.put(path, "clustered")
    keep("defined", "clustered")
    indexed.build().raise_for_failures()
    indexed.create_index("keys", ["id"])
    assert len(indexed.build(strategy="all").raise_for_failures().built) == 2
    keep("indexed", "clustered")
    for name in REWRITTEN:
        table.put(path, name)
        keep(name, name)
    assert any(each.path.endswith(".pack") for each in indexed.clean(dry_run=True).removals)
    return states


CopyState = Callable[[str | Path], Path]


@pytest.fixture
def copy_state(states: dict[str, State], tmp_path: Path) -> Iterator[CopyState]:
    """Copies a state, or a copy of one as it is now. Hudi's files are hard links, which must never
    be modified."""
    number = count(1)

    def copy(of: str | Path) -> Path:
        source = of if isinstance(of, Path) else states[of].path
        name = source.name.rpartition("-")[0] if isinstance(of, Path) else of
        target = tmp_path / f"{name}-{next(number)}"
        shutil.copytree(source, target, copy_function=_link_or_copy)
        return target

    yield copy
    shutil.rmtree(tmp_path)


def _link_or_copy(source: str, target: str) -> None:
    if INDEX in source:
        shutil.copy2(source, target)
    else:
        os.link(source, target)
