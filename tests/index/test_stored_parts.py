"""Stored values of a base file's parts are joined from files that another process may cut."""

import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.contract import PackedIndex
from hudi_index_service.index.files import stored_values
from hudi_index_service.index.files.stored_values import VALUES, ValuesWriter, joined_values
from tests.index.conftest import packed_index
from tests.programs import lines_of

ROWS = 300_000  # of a part: several row groups


def part(folder: Path, number: int) -> PackedIndex:
    """A part with stored values and another member."""
    numbers = np.arange(ROWS) + number * ROWS
    rows = pa.record_batch({"n": numbers, "s": pa.array(numbers).cast(pa.string())})
    writer = ValuesWriter(rows.schema, folder / f"values-{number}")
    for start in range(0, ROWS, 50_000):
        writer.add(rows.slice(start, 50_000))
    members = {**writer.finish(), "tree": b"of the index" * 1000}
    return packed_index(members, folder / f"part-{number}.pack", ROWS, first=VALUES)


def test_parts_are_joined_in_order(tmp_path: Path) -> None:
    joined = joined_values([part(tmp_path, 0), part(tmp_path, 1)], tmp_path / "joined")
    rows = pq.read_table(joined[VALUES])
    assert rows.column("n").to_pylist() == list(range(2 * ROWS))
    assert rows.column("s")[-1].as_py() == str(2 * ROWS - 1)


def cut_while_joined(folder: Path) -> None:
    """Joins parts, the first of which is cut once some of its rows have been read."""
    parts = [part(folder, 0), part(folder, 1)]

    class Cutting(ValuesWriter):
        def add(self, batch: pa.RecordBatch) -> None:
            os.truncate(parts[0].path, 10_000)
            super().add(batch)

    stored_values.ValuesWriter = Cutting  # type: ignore[misc]
    with pytest.raises(EntryInvalid, match="A part of joined cannot be read"):
        joined_values(parts, folder / "joined")


def test_a_part_that_is_cut_while_it_is_joined_is_refused(tmp_path: Path) -> None:
    """In a process of its own, which a mapped file would end."""
    lines_of("tests.index.test_stored_parts", tmp_path, module=True)


if __name__ == "__main__":
    cut_while_joined(Path(sys.argv[1]))
