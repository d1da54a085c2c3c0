"""Merging a builder's runs, or the parts of a base file, gives what a single build gives."""

import random
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import Answer
from hudi_index_service.index.factory import index_type
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from tests.index.conftest import BuildIndex, IndexedData, joined

KIND = index_type("btree")
ROWS = 9_000
NAN = float("nan")


def sample_rows() -> pa.Table:
    """Few and many values, NULLs, arrays with doubles and NULLs, truncated and similar keys."""
    choose = random.Random(11)

    def maybe(value: object) -> object:
        return None if choose.random() < 0.1 else value

    return pa.table(
        {
            "few": pa.array([maybe(choose.choice("abc")) for _ in range(ROWS)]),
            "many": pa.array([maybe(choose.randrange(-(2**62), 2**62)) for _ in range(ROWS)]),
            "alike": pa.array([maybe(f"{choose.randrange(ROWS):09}" * 5) for _ in range(ROWS)]),
            "wide": pa.array(
                [maybe(Decimal(choose.randrange(-5000, 5000)) * 10**20) for _ in range(ROWS)],
                pa.decimal128(38, 0),
            ),
            "tags": pa.array(
                [maybe([maybe(choose.randrange(40)) for _ in range(3)]) for _ in range(ROWS)],
                pa.list_(pa.int32()),
            ),
            "long": pa.array([maybe("x" * choose.choice((3, 507, 508, 600))) for _ in range(ROWS)]),
            "nothing": pa.nulls(ROWS, pa.int64()),
            "double": pa.array([choose.choice((NAN, -0.0, 0.0, 1.5)) for _ in range(ROWS)]),
        }
    )  # fmt: skip


DATA = sample_rows()
WHERE = [
    "few = 'a'", "few <> 'b'", "few IS NULL", "few > 'a'", "many > 0", "many < -1000000000000",
    "many IS NOT NULL", "alike LIKE '0000%'", "alike BETWEEN '000001' AND '000007'", "wide > 0",
    "wide = 100000000000000000000", "array_contains(tags, 7)", "NOT array_contains(tags, 7)",
    "tags IS NULL", "long = 'xxx'", "nothing IS NULL", "nothing IS NOT NULL", "nothing = 1",
    "double = 0", "double = CAST('NaN' AS DOUBLE)", "double < 1", "double > 1",
]  # fmt: skip


def check(indexed: IndexedData) -> None:
    assert KIND.verify(indexed.index, indexed.columns) == []
    for where in WHERE:
        leaf = negation_normal_form(parse_predicate(where, DATA.schema))
        assert indexed.check(leaf) is Answer.EXACT, where
    indexed.reader.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_runs_that_exceed_memory_are_merged(build_btree: BuildIndex, threads: int) -> None:
    single_build = build_btree(DATA, batch_rows=700, memory_mb=256, threads=threads)
    in_runs = build_btree(DATA, batch_rows=700, memory_mb=1, threads=threads)
    assert in_runs.columns == single_build.columns
    check(single_build)
    check(in_runs)


@pytest.mark.parametrize("cuts", [[0, ROWS], [0, 1, 4000, 4000, 8192, ROWS]])
def test_parts_are_combined_without_the_base_file(
    build_btree: BuildIndex, tmp_path: Path, cuts: list[int]
) -> None:
    parts = [
        build_btree(DATA.slice(start, end - start), batch_rows=700, memory_mb=64)
        for start, end in pairwise(cuts)
    ]
    whole = joined(parts, tmp_path, build_btree(DATA, batch_rows=ROWS, memory_mb=256).columns)
    assert sorted(whole.index.members) == ["leaves", "tree"]
    check(whole)


def test_damaged_parts_are_not_combined(build_btree: BuildIndex, tmp_path: Path) -> None:
    part = build_btree(DATA.slice(0, 3000), batch_rows=700, memory_mb=64)
    content = bytearray(part.index.path.read_bytes())
    content[part.index.members["leaves"][0] + part.index.members["leaves"][1] // 2] ^= 4
    part.index.path.write_bytes(content)
    with pytest.raises(EntryInvalid, match="damaged"):
        joined([part, part], tmp_path, part.columns)
