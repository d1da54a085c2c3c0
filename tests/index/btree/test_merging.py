"""Merging a builder's runs, or the parts of a base file, gives what a single build gives."""

import random
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import Answer, ColumnSpec, PackedIndex, StoredColumn
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.packed_file import BLOCK_SIZE, pack
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from tests.index.conftest import IndexedData

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


def specs() -> list[ColumnSpec]:
    return [ColumnSpec(f.name, f.type, KIND.fields(f.name, f.type, {})) for f in DATA.schema]


def build_part(rows: pa.Table, folder: Path, *, memory_mb: int, threads: int = 1) -> PackedIndex:
    folder.mkdir()
    builder = KIND.builder(specs(), folder, memory_mb=memory_mb, threads=threads)
    for batch in rows.to_batches(max_chunksize=700):
        builder.add(batch)
    built = builder.finish()
    return packed(dict(built.files), Path(f"{folder}.pack"), built.rows)


def packed(files: dict[str, Path], path: Path, rows: int) -> PackedIndex:
    done = pack(files, path)
    return PackedIndex(path, done.members, done.length, BLOCK_SIZE, done.block_crc32, rows)


def stored(folder: Path) -> tuple[StoredColumn, ...]:
    """The columns with the statistics of a single build."""
    folder.mkdir()
    builder = KIND.builder(specs(), folder, memory_mb=256)
    builder.add(DATA.combine_chunks().to_batches()[0])
    built = builder.finish()
    return tuple(StoredColumn.of(spec, built.statistics[spec.name]) for spec in specs())


def check(index: PackedIndex, columns: tuple[StoredColumn, ...]) -> None:
    assert KIND.verify(index, columns) == []
    indexed = IndexedData(KIND, DATA, index, columns, KIND.open(index, columns))
    for where in WHERE:
        leaf = negation_normal_form(parse_predicate(where, DATA.schema))
        assert indexed.check(leaf) is Answer.EXACT, where
    indexed.reader.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_runs_that_exceed_memory_are_merged(tmp_path: Path, threads: int) -> None:
    single_build = build_part(DATA, tmp_path / "once", memory_mb=256, threads=threads)
    in_runs = build_part(DATA, tmp_path / "runs", memory_mb=1, threads=threads)
    columns = stored(tmp_path / "columns")
    check(single_build, columns)
    check(in_runs, columns)


@pytest.mark.parametrize("cuts", [[0, ROWS], [0, 1, 4000, 4000, 8192, ROWS]])
def test_parts_are_combined_without_the_base_file(tmp_path: Path, cuts: list[int]) -> None:
    parts = [
        build_part(DATA.slice(start, end - start), tmp_path / f"part{start}-{end}", memory_mb=64)
        for start, end in pairwise(cuts)
    ]
    folder = tmp_path / "joined"
    folder.mkdir()
    files = KIND.combine(parts, folder)
    paths = {name: path for name, path in files.items() if isinstance(path, Path)}
    assert sorted(paths) == sorted(files) == ["leaves", "tree"]
    joined = packed(paths, tmp_path / "joined.pack", ROWS)
    check(joined, stored(tmp_path / "columns"))


def test_damaged_parts_are_not_combined(tmp_path: Path) -> None:
    part = build_part(DATA.slice(0, 3000), tmp_path / "part", memory_mb=64)
    content = bytearray(part.path.read_bytes())
    content[part.members["leaves"][0] + part.members["leaves"][1] // 2] ^= 4
    part.path.write_bytes(content)
    (tmp_path / "joined").mkdir()
    with pytest.raises(EntryInvalid, match="damaged"):
        KIND.combine([part, part], tmp_path / "joined")
