"""Index, scan and Spark SQL give the same rows, on tables and predicates made by Hypothesis.

The slow tests make 20,000 comparisons, a third each. `make test-proof` makes more, on more tables;
`PROOF_COMPARISONS` says how many and `PROOF_SEED` which ones.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_index_service.errors import PredicateUnsupported
from hudi_index_service.hudi.spark import SparkHudiReader
from tests.proof.answers import METHODS, View, opened, time_zone_of
from tests.proof.comparison import STRIDES, Counts, FamilyProof
from tests.proof.drawn import drawn
from tests.proof.families import BROKEN, families
from tests.proof.layouts import MANY_FILES
from tests.proof.predicates import predicates
from tests.same_rows import assert_same_rows

pytestmark = pytest.mark.fast

FEW, MANY = 500, int(os.environ.get("PROOF_COMPARISONS", "20000"))
SEED = int(os.environ.get("PROOF_SEED", "20259"))
# Comparisons per predicate: on the latest rows of each table, on earlier ones, on base files alone.
SHARES = sum(1 / each for each in STRIDES.values()) + 3 / 8
WHOLE_ROWS = 2  # predicates per table whose answers are compared cell by cell; 1 for other views


@pytest.fixture(scope="module")
def workers() -> Iterator[ProcessPoolExecutor]:
    """Processes that query the service, so that Spark and the service use a core each."""
    pool = ProcessPoolExecutor(2, get_context("spawn"))
    yield pool
    pool.shutdown(cancel_futures=True)


def test_the_examples_are_the_same_in_every_run() -> None:
    one, same = (drawn(families("UTC"), 1, SEED)[0] for _ in range(2))
    assert str(one.rows(7, count=5)) == str(same.rows(7, count=5))
    conditions, again = (drawn(predicates(one), 40, SEED) for _ in range(2))
    assert conditions == again
    assert conditions != drawn(predicates(one), 40, SEED + 1)


@pytest.mark.timeout(3600 + MANY // 5)
@pytest.mark.parametrize(
    ("comparisons", "seed"),
    [
        (FEW, SEED),
        *(pytest.param(MANY // 3, SEED + n * 1000, marks=pytest.mark.slow) for n in range(3)),
    ],
    ids=["few", "first third", "second third", "last third"],
)
def test_index_scan_and_spark_give_the_same_rows(
    comparisons: int,
    seed: int,
    spark: SparkSession,
    tmp_path: Path,
    workers: ProcessPoolExecutor,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rounds = max(comparisons // 10_000, 1)
    # Some more than needed: a few predicates are refused.
    each = int(1.05 * comparisons / rounds / SHARES) + 1
    counts, wrong = Counts(), []
    before = None
    for number in range(rounds):
        # While the workers query one family's tables, those of the next are written.
        proof = FamilyProof(spark, tmp_path, seed + number, each, workers)
        if before is not None:
            wrong += before.compare(counts)
        before = proof
        assert_whole_rows_agree(proof)
    assert before is not None
    wrong += before.compare(counts)
    with capsys.disabled():
        print(f"\nseed {seed}: {counts}")

    assert not wrong, f"{counts}\n\n" + "\n\n".join(wrong)
    assert counts.compared >= comparisons
    assert counts.with_rows >= counts.compared / 2
    assert counts.indexed >= counts.slices / 2
    assert counts.merged > 0
    assert counts.refused.total() <= counts.compared / 10, counts.refused.most_common(20)
    if comparisons >= 20_000:
        assert {name for name in METHODS if counts.methods[name] < 500} == set()
        assert len(counts.searches) == 6
        assert counts.searches_with_rows >= counts.searches.total() / 4 >= 75
        assert counts.views["as of an earlier instant"] >= 1_000
        assert counts.views["read_optimized"] >= 500
        assert {cell: times for cell, times in counts.cells.items() if times < 50} == {}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_files(spark: SparkSession, tmp_path: Path, workers: ProcessPoolExecutor) -> None:
    counts = Counts()
    proof = FamilyProof(spark, tmp_path, SEED, 10, workers, MANY_FILES)
    assert_whole_rows_agree(proof)
    wrong = proof.compare(counts)
    assert not wrong, "\n\n".join(wrong)
    assert counts.slices > 800 * counts.compared > 0


def is_answered(view: View, where: str) -> bool:
    """Whether the service answers a predicate without Spark; `Counts.refused` counts the others."""
    try:
        view.scan(where)
    except PredicateUnsupported:
        return False
    return True


def assert_whole_rows_agree(proof: FamilyProof) -> None:
    """Compares cell by cell, with the predicate as Spark's own filter, which it may push down."""
    zone = proof.family.time_zone
    for number, member in enumerate(proof.members):
        view = member.view
        reader = SparkHudiReader(
            proof.spark, view.path, as_of=view.as_of, query_type=view.query_type
        )
        names = [each for each in opened(view.path, zone).schema().names if each != BROKEN]
        some = WHOLE_ROWS if member.name == "latest" else 1
        answered = filter(partial(is_answered, view), proof.wheres[number::101])
        for where in islice(answered, some):
            with time_zone_of(proof.spark, zone):
                expected = reader.read(names, where)
            for use_index in ("auto", "never"):
                found = view.scan(where, columns=names, use_index=use_index).to_arrow()
                assert_same_rows(found, expected)
