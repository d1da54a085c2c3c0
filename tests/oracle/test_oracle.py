"""The working tree and the oracle, the service as of a fixed commit, give the same rows and errors
on the proof's tables; and the working tree does no more work for them.

`make test-oracle` makes more comparisons: `ORACLE_COMPARISONS` says how many, `ORACLE_SEED` which.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks.bench_process import ContestantProcess
from dev import oracle
from dev.paths import ROOT
from hudi_index_service.storage.store import Storage
from tests.golden.predicates import PREDICATES
from tests.golden.table import Golden
from tests.indexed import indexed
from tests.oracle.runner import METHODS, WORK
from tests.proof.comparison import members
from tests.proof.drawn import drawn
from tests.proof.predicates import predicates
from tests.remote.s3_server import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

COMPARISONS = int(os.environ.get("ORACLE_COMPARISONS", "2000"))
SEED = int(os.environ.get("ORACLE_SEED", "40"))
A_FAMILY = 5_000  # comparisons on the tables of one family
MORE_WORK = 1.1


class Side(ContestantProcess):
    """A side's process.

    Args:
        name: ``oracle`` or ``working tree``.
        folder: For what it remembers between queries.
    """

    def __init__(self, name: str, folder: Path) -> None:
        own = {"XDG_STATE_HOME": str(folder), "HUDI_INDEX_CACHE_FOLDER": str(folder / "cache")}
        frozen = (Path(sys.executable), ROOT, {**os.environ, "PYTHONPATH": str(ROOT)})
        if name == "oracle":
            frozen = (oracle.PYTHON, oracle.made(), oracle.environment())
        python, where, variables = frozen
        super().__init__("tests.oracle.runner", frozen=(python, where, {**variables, **own}))
        found = self.request({"where is": "the package"})["package"]
        if Path(found).parent.parent != where:
            raise RuntimeError(f"the {name} has the package of {found}")

    def ask(
        self, table: str, questions: list[dict[str, Any]], **options: Any
    ) -> list[dict[str, Any]]:
        """The answers: ``value``, ``error`` (its code), ``accesses``, ``work``.

        Args:
            questions: ``where``; ``column``, which tells rows apart; ``method``, one of `METHODS`;
                ``forced``: rows are read by page, however small the table is.
            options: ``time_zone``, ``as_of``, ``query_type``, ``storage_options``.
        """
        request = {"table": table, "questions": questions, "options": options}
        answers: list[dict[str, Any]] = self.request(request)["answers"]
        return answers


Sides = tuple[Side, Side]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """The oracle and the working tree."""
    try:
        oracle.made()
    except oracle.NoHistory as absent:
        pytest.skip(str(absent))
    names = ("oracle", "working tree")
    frozen, present = (Side(name, tmp_path_factory.mktemp("side")) for name in names)
    yield frozen, present
    frozen.close()
    present.close()


def questions(wheres: Sequence[str]) -> list[dict[str, Any]]:
    """Each condition once, by methods in turn, half of them as if tables were large."""
    return [
        {
            "where": where,
            "column": "row",
            "forced": bool(number % 2),
            "method": "rows" if number % 3 else list(METHODS)[number // 3 % len(METHODS)],
        }
        for number, where in enumerate(wheres)
    ]


def both(
    sides: Sides, table: str, asked: list[dict[str, Any]], **options: Any
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The answers of both sides."""
    with ThreadPoolExecutor(2) as threads:
        asking = [threads.submit(each.ask, table, asked, **options) for each in sides]
        frozen, present = (each.result() for each in asking)
    return list(zip(frozen, present, strict=True))


def assert_no_more_work(totals: dict[str, tuple[int, int]]) -> None:
    """Compares the sums, oracle and working tree, of each counter."""
    print(totals)
    assert {name: sums for name, sums in totals.items() if sums[1] > MORE_WORK * sums[0]} == {}


def test_the_same_rows_and_errors_for_no_more_work(
    spark: SparkSession, tmp_path: Path, sides: Sides
) -> None:
    compared, wrong = 0, []
    work: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    accesses: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    number = SEED
    while compared < COMPARISONS:
        for member in members(spark, tmp_path, number):
            # Of each family, as many predicates on each of its tables and their other views.
            count = min(A_FAMILY, COMPARISONS) // 6 // member.stride + 1
            wheres = [str(each) for each in drawn(predicates(member.family), count, number)]
            asked, view = questions(wheres), member.view
            answers = both(
                sides,
                str(view.path),
                asked,
                time_zone=view.time_zone,
                as_of=view.as_of,
                query_type=view.query_type,
            )
            for question, (frozen, present) in zip(asked, answers, strict=True):
                compared += 1
                for side, each in enumerate((frozen, present)):
                    work[side].update(each["work"])
                    accesses[side].update(each["accesses"])
                if any(frozen[each] != present[each] for each in ("value", "error")):
                    wrong.append(f"{question} on {view}: {frozen}, now {present}")
        number += 1
    print(f"{compared} comparisons; accesses {accesses}")
    assert wrong[:10] == [], f"{len(wrong)} answers differ"
    assert_no_more_work({name: (work[0][name], work[1][name]) for name in WORK})


def test_no_more_dependent_rounds_on_a_remote_store(
    golden: Golden, tmp_path: Path, sides: Sides
) -> None:
    path = golden("awkward_clustered_partitioned").put(tmp_path)
    indexed(path, ["name", "amount", "price"])
    forced = {"column": "id", "forced": True, "method": "rows"}
    asked = [{"where": each, **forced} for each in PREDICATES[:40]]
    rounds: dict[str, list[int]] = {"oracle": [], "working tree": []}
    with serving() as server:
        storage = Storage(f"s3://{server.make_bucket()}/t", server.options)
        for file in sorted(each for each in path.rglob("*") if each.is_file()):
            storage.upload(str(file.relative_to(path)), file)
        server.latency = 0.01
        answers = []
        for side, counted in zip(sides, rounds.values(), strict=True):
            for question in asked:
                server.forget()
                answers += side.ask(storage.uri, [question], storage_options=server.options)
                counted.append(server.rounds)
    values = [(each["value"], each["error"]) for each in answers]
    assert values[: len(asked)] == values[len(asked) :]
    before, now = (sum(each) for each in rounds.values())
    assert_no_more_work({"rounds": (before, now)})
