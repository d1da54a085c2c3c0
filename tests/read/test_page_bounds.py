"""Pages and row groups are skipped only if none of their rows can match: checked against every row
of real files, for predicates over awkward values."""

import random
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_index_parquet import Footer, stripped_footer

from hudi_index_service.hudi.files.parquet_file import row_batches
from hudi_index_service.predicate import evaluate, keep, negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.read.base_file.page_bounds import PageBounds
from hudi_index_service.read.base_file.row_group_bounds import (
    row_groups_holding,
    row_groups_to_read,
)
from tests.read.file_scans import scan_of

NAN, INFINITY = float("nan"), float("inf")
ROWS, GROUP_ROWS, PAGE_ROWS = 240, 60, 5
TYPES = {
    "i": (pa.int32(), [-7, 0, 3, 4, 2**31 - 1, -(2**31)]),
    "big": (pa.int64(), [-(2**63), -1, 0, 9, 2**63 - 1]),
    "d": (pa.float64(), [NAN, -0.0, 0.0, 1.5, -1.5, INFINITY, -INFINITY]),
    "f": (pa.float32(), [NAN, -0.0, 0.0, 0.5, 2.0]),
    "s": (pa.string(), ["", "a", "ab", "b", "Ünï", "😀", "z" * 300, "zz"]),
    "raw": (pa.binary(), [b"", b"\x00", b"a", b"\xff", b"\xff\xff"]),
    "n": (pa.decimal128(12, 2), [Decimal("-1.23"), Decimal("0.00"), Decimal("7.00")]),
    "wide": (pa.decimal128(30, 2), [Decimal("-1.23"), Decimal("0.00"), Decimal("7.00")]),
    "day": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date.max]),
    "at": (
        pa.timestamp("us", "UTC"),
        [datetime(1900, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 1, 2, 3, 4, tzinfo=UTC)],
    ),
    "flag": (pa.bool_(), [True, False]),
}
LEAVES = {
    "i": ["i = 3", "i <> 0", "i > 3", "i <= -7", "i IN (0, 4)", "i NOT IN (3)", "i <=> NULL"],
    "big": ["big >= 9", "big < -9000000000000000000", "big BETWEEN -1 AND 0", "NOT (big = 9)"],
    "d": ["d = 0.0D", "d > 1.5D", "d = CAST('NaN' AS DOUBLE)", "d < -1.5D", "d <> 1.5D", "d <= 0D"],
    "f": ["f >= 2D", "f = 0D", "f < 0.5D", "f IN (0.5D, 2D)", "NOT (f > 0D)", "f <=> 2D"],
    "s": ["s = 'ab'", "s LIKE 'a%'", "s LIKE 'z%z'", "s > 'b'", "s < ''", "s LIKE '%b'", "s = ''"],
    "raw": ["raw = X'FF'", "raw > X'61'", "raw < X'00'", "raw <> X''"],
    "n": ["n = 7", "n < 0", "n >= 0.01", "n IN (-1.23, 5)", "NOT (n <=> 0)"],
    "wide": ["wide = 7", "wide < 0"],
    "day": ["day = DATE'2024-02-29'", "day < DATE'1970-01-01'", "day > DATE'2024-03-01'"],
    "at": ["at > TIMESTAMP'2000-01-01 00:00:00Z'", "at <= TIMESTAMP'1900-01-01 00:00:00Z'"],
    "flag": ["flag", "NOT flag", "flag = FALSE", "flag <> TRUE"],
    "p.x": ["p.x = 3", "p.x > 2", "p.x IS NULL", "p.x IS NOT NULL"],
    "tags": ["array_contains(tags, 1)", "tags IS NULL"],
}


@dataclass(frozen=True)
class File:
    """A Parquet file, and all its rows."""

    path: Path
    contents: pa.Table

    def bounds(self) -> PageBounds:
        footer = Footer(stripped_footer(self.path))
        return PageBounds(footer, str(self.path), self.path.stat().st_size)


def values(kind: str, random: random.Random) -> list[Any]:
    """Runs of few values, so that some pages can be skipped; whole pages of NULLs too."""
    _, choice = TYPES[kind]
    rows: list[Any] = []
    while len(rows) < ROWS:
        some = random.sample(choice, min(len(choice), random.randint(1, 2)))
        if random.random() < 0.3:
            some = [None, *some] if random.random() < 0.5 else [None]
        rows.extend(random.choice(some) for _ in range(random.randint(1, 25)))
    return rows[:ROWS]


@pytest.fixture(scope="module", params=range(5))
def file(request, tmp_path_factory) -> File:
    dice = random.Random(request.param)
    arrays = {name: pa.array(values(name, dice), TYPES[name][0]) for name in TYPES}
    numbers = values("i", dice)
    arrays["p"] = pa.array(
        [None if number is None else {"x": number if number else None} for number in numbers],
        pa.struct([("x", pa.int32())]),
    )
    arrays["tags"] = pa.array(
        [None if number is None else [number, 1] for number in numbers], pa.list_(pa.int64())
    )
    contents = pa.table(arrays | {"row": range(ROWS)})
    path = tmp_path_factory.mktemp("bounds") / "f.parquet"
    pq.write_table(
        contents,
        path,
        row_group_size=GROUP_ROWS,
        max_rows_per_page=PAGE_ROWS,
        write_batch_size=1,
        write_page_index=request.param != 3,
        use_deprecated_int96_timestamps=request.param == 4,
        store_decimal_as_integer=True,
        data_page_version="2.0" if request.param == 2 else "1.0",
    )
    return File(path, contents)


def predicates(schema: pa.Schema, count: int, seed: int) -> list[tuple[str, Predicate]]:
    """Every leaf, its NULL tests, and random trees of them."""
    dice = random.Random(seed)
    leaves = [leaf for some in LEAVES.values() for leaf in some]
    leaves += [f"{name} IS {word}" for name in TYPES for word in ("NULL", "NOT NULL")]
    texts = list(leaves)
    for _ in range(count):
        some = [dice.choice(leaves) for _ in range(dice.randint(2, 4))]
        texts.append(dice.choice([" AND ", " OR "]).join(f"({each})" for each in some))
        if dice.random() < 0.3:
            texts[-1] = f"NOT ({texts[-1]}) OR {dice.choice(leaves)}"
    return [(text, parse_predicate(text, schema, time_zone="UTC")) for text in texts]


def test_a_scan_returns_all_matching_rows(file):
    schema = file.contents.schema
    found = fewer = 0
    for text, predicate in predicates(schema, 100, seed=2):
        batches = []
        for row_ids, batch, _ in scan_of(file.path.parent, schema).candidates(
            negation_normal_form(predicate)
        ):
            assert batch["row"].to_pylist() == list(row_ids)
            batches.append(batch)
        rows = [row for batch in batches for row in keep(predicate, batch)["row"].to_pylist()]
        matching = np.asarray(evaluate(predicate, file.contents).fill_null(False))
        assert rows == np.flatnonzero(matching).tolist(), text
        found += len(rows) > 0
        fewer += sum(batch.num_rows for batch in batches) < ROWS
    assert found > 60
    assert fewer > 25


def test_only_the_listed_row_groups_are_read(file):
    with pq.ParquetFile(file.path) as opened:
        found = row_batches(
            opened,
            ["i"],
            rows=range(ROWS),
            batch_rows=1_000,
            row_groups=row_groups_holding(opened, np.array([3, 59, 180, 239])),
        )
        table = pa.Table.from_batches(list(found))
    first, last = file.contents.slice(0, GROUP_ROWS), file.contents.slice(180)
    assert table["i"].to_pylist() == first["i"].to_pylist() + last["i"].to_pylist()


@pytest.mark.parametrize(
    ("stored", "requested"),
    [
        (pa.float32(), pa.float64()),
        (pa.decimal128(12, 2), pa.decimal128(14, 4)),
        (pa.int32(), pa.float64()),
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.binary(), pa.string()),
    ],
    ids=str,
)
def test_bounds_of_a_column_of_another_type_are_not_used(tmp_path, stored, requested):
    numbers = pa.array([1, 2], pa.int64() if pa.types.is_timestamp(stored) else pa.int32())
    contents = pa.table({"c": pa.array([b"1"]) if stored == pa.binary() else numbers.cast(stored)})
    path = tmp_path / "f.parquet"
    pq.write_table(contents, path, write_page_index=True)
    predicate = parse_predicate("c IS NULL", pa.schema({"c": requested}), time_zone="UTC")
    assert File(path, contents).bounds().rows(predicate).possible is None
    assert row_groups_to_read(pq.ParquetFile(path), predicate) == [0]


def test_bounds_of_unknown_or_old_writers_are_not_used(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"s": ["b"]}), path, write_page_index=True)
    contents = path.read_bytes()
    predicate = parse_predicate("s = 'a'", pa.schema({"s": pa.string()}), time_zone="UTC")
    assert row_groups_to_read(pq.ParquetFile(path), predicate) == []
    own = pq.read_metadata(path).created_by.encode()
    for other in (b"parquet-mr version 1.9.0", b"impala version 4"):
        path.write_bytes(contents.replace(own, other.ljust(len(own))))
        assert row_groups_to_read(pq.ParquetFile(path), predicate) == [0], other
