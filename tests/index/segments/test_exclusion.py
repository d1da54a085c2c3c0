"""A segment excludes base files in which no row can match, and never another."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hudi_index_service.index.metadata.segments.exclusion import Exclusion, located_values
from hudi_index_service.index.metadata.segments.segment import Facts, merged
from hudi_index_service.index.metadata.segments.segment_file import SegmentFile
from hudi_index_service.index.metadata.segments.store import SegmentStore
from hudi_index_service.predicate import evaluate, negation_normal_form, parse_predicate
from hudi_index_service.predicate.bounds import may_match
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.storage.store import Storage
from tests.index.segments.facts import facts, manifest, path_of

FILES = 40
ROWS = 30

SCHEMA = pa.schema(
    {
        "text": pa.string(),
        "number": pa.int64(),
        "small": pa.int16(),
        "price": pa.float64(),
        "day": pa.date32(),
        "moment": pa.timestamp("us", tz="UTC"),
        "amount": pa.decimal128(10, 2),
        "wide": pa.decimal128(38, 4),
        "flag": pa.bool_(),
        "raw": pa.binary(),
        "city": pa.string(),
        "seq": pa.int64(),
        "tags": pa.list_(pa.string()),
    }
)

WHERES = [
    "text = 'u7'",
    "text = 'nobody'",
    "text IN ('u7', 'u80', 'nobody')",
    "text IN ('nobody', NULL)",
    "text <=> 'u7'",
    "NOT text <=> 'u7'",
    "text <=> NULL",
    "NOT text = 'u7'",
    "text NOT IN ('u7', 'u8')",
    "text LIKE 'u7%'",
    "text LIKE '%7'",
    "text NOT LIKE 'u7%'",
    "text RLIKE '^u7'",
    "text > 'u9'",
    "text < 'u10' AND text >= 'u1'",
    "text IS NULL",
    "text IS NOT NULL",
    "number = 33",
    "number = 1000000",
    "number = 33.5",
    "number IN (33, 34, 1000000)",
    "number BETWEEN 33 AND 35",
    "number > 10 AND number < 12",
    "number > 10 AND number < 5",
    "number > 30",
    "number <> 33",
    "small = 3",
    "small = 100000",
    "price = 0.0",
    "price = 'NaN'",
    "price > 1000",
    "price IN (0.0, 3.25)",
    "price BETWEEN 1.0 AND 1.3",
    "day = DATE '2020-01-31'",
    "day BETWEEN DATE '2020-01-31' AND DATE '2020-02-01'",
    "moment = TIMESTAMP '2020-01-01 00:00:33'",
    "amount = 3.25",
    "amount IN (3.25, 3.255)",
    "amount BETWEEN 3 AND 4",
    "wide = 3.25",
    "flag",
    "NOT flag",
    "raw = X'07'",
    "raw IN (X'07', X'FF')",
    "city = 'c1'",
    "seq = 77",
    "seq BETWEEN 70 AND 80",
    "array_contains(tags, 'a7')",
    "text = 'u7' AND number = 33",
    "text = 'u7' OR number = 33",
    "(text = 'u7' OR text = 'u8') AND NOT (number = 33 OR day IS NULL)",
    "text = 'u7' AND FALSE",
    "TRUE",
]


def values_of(number: int) -> dict[str, pa.Array]:
    """The columns of one base file; some of its values are in few others."""
    dice = np.random.default_rng(number)
    numbers = dice.integers(0, FILES * ROWS // 5, ROWS).tolist()

    def array(name: str, values: list[object]) -> pa.Array:
        if number % 7 == 0:
            values[0] = None
        if number == 13:
            values = [None] * ROWS
        return pa.array(values, SCHEMA.field(name).type)

    columns = {
        "text": array("text", [f"u{each}" for each in numbers]),
        "number": array("number", list(numbers)),
        "small": array("small", [each % 50 for each in numbers]),
        "price": array(
            "price",
            [float("nan") if number == 5 and each % 9 == 0 else each / 4 for each in numbers],
        ),
        "day": pa.array([18_262 + each for each in numbers], pa.int32()).cast(pa.date32()),
        "moment": pa.array(
            [1_577_836_800_000_000 + each * 1_000_000 for each in numbers], pa.int64()
        ).cast(pa.timestamp("us", tz="UTC")),
        "amount": pa.array([each / 4 for each in numbers]).cast(pa.decimal128(10, 2)),
        "wide": pa.array([each / 4 for each in numbers]).cast(pa.decimal128(38, 4)),
        "flag": array("flag", [number % 3 == 0 for _ in numbers]),
        "raw": array("raw", [bytes([each % 256]) for each in numbers]),
        "city": array("city", [f"c{each % 3}" for each in numbers]),
        "seq": array("seq", list(range(number * ROWS, number * ROWS + ROWS))),
        "tags": pa.array([[f"a{each}"] for each in numbers], SCHEMA.field("tags").type),
    }
    return columns


VALUES = [values_of(number) for number in range(FILES)]

INDEXED = [
    {name: each for name, each in values.items() if name != "text" or number % 10 < 9}
    for number, values in enumerate(VALUES)
]
"""The columns in each entry: some lack one."""


def opened(tmp_path: Path, stated: Facts) -> SegmentFile:
    store = SegmentStore(Storage(tmp_path), "lucene")
    store.add(stated)
    (file,) = store.listed()
    return store.open(file)


@pytest.fixture(scope="module")
def segments(tmp_path_factory: pytest.TempPathFactory) -> list[SegmentFile]:
    """One with runs and one without."""
    return [
        opened(
            tmp_path_factory.mktemp("segment"),
            merged([facts(n, values, routed=routed) for n, values in enumerate(INDEXED)]),
        )
        for routed in (True, False)
    ]


def bound(where: str) -> tuple[Predicate, Predicate]:
    predicate = parse_predicate(where, SCHEMA)
    return predicate, negation_normal_form(predicate)


def matches(predicate: Predicate, columns: Mapping[str, pa.Array]) -> bool:
    """Whether a row of the base file matches."""
    rows = pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)
    return any(evaluate(predicate, rows).to_pylist())


@pytest.mark.parametrize("where", WHERES)
def test_no_file_with_a_matching_row_is_excluded(where: str, segments: list[SegmentFile]) -> None:
    predicate, normal_form = bound(where)
    truth = [matches(predicate, columns) for columns in VALUES]
    by_manifest = [
        may_match(normal_form, lambda column, n=n, c=columns: manifest(n, c).bounds(column.name))  # type: ignore[misc]
        for n, columns in enumerate(INDEXED)
    ]
    routed, unrouted = (
        Exclusion([each], each.columns.keys()).may_match(normal_form)[0].tolist()
        for each in segments
    )
    for true, with_runs, without in zip(truth, routed, unrouted, strict=True):
        assert true <= with_runs <= without, where
    if "wide" not in where:  # wide numbers are left to the statistics of each entry
        assert unrouted.count(False) >= by_manifest.count(False)


@pytest.mark.parametrize(
    "where",
    [
        "text = 'u7'",
        "text IN ('u7', 'u8')",
        "number = 33",
        "number = 33.0",
        "number BETWEEN 33 AND 35",
        "price = 8.25",
    ],
)
def test_a_value_without_order_leaves_the_files_that_hold_it(
    where: str, segments: list[SegmentFile]
) -> None:
    predicate, normal_form = bound(where)
    truth = [
        matches(predicate, values) or not predicate.columns() <= held.keys()
        for values, held in zip(VALUES, INDEXED, strict=True)
    ]
    routed, unrouted = segments
    (left,) = Exclusion([routed], routed.columns.keys()).may_match(normal_form)
    (by_bounds,) = Exclusion([unrouted], unrouted.columns.keys()).may_match(normal_form)
    assert left.tolist() == truth
    assert by_bounds.sum() > left.sum()


def test_segments_are_compared_as_if_each_were_alone(segments: list[SegmentFile]) -> None:
    columns = set().union(*(each.columns for each in segments))
    for where in WHERES:
        _, normal_form = bound(where)
        together = Exclusion(segments, columns).may_match(normal_form)
        alone = [Exclusion([each], columns).may_match(normal_form)[0] for each in segments]
        assert [each.tolist() for each in together] == [each.tolist() for each in alone], where


def test_columns_with_few_values_or_in_order_have_no_run(segments: list[SegmentFile]) -> None:
    document = segments[0].document
    assert {each.name for each in document.columns if each.unrouted} == {
        *("city", "seq", "flag", "small")
    }
    assert {each.name for each in document.columns if each.run} >= {"text", "number", "price"}


def test_columns_that_may_not_be_used_exclude_nothing(segments: list[SegmentFile]) -> None:
    _, normal_form = bound("text = 'nobody' AND number = 33")
    without_text = [key for key in segments[0].columns if key[0] != "text"]
    (left,) = Exclusion(segments[:1], without_text).may_match(normal_form)
    _, number_alone = bound("number = 33")
    assert (left == Exclusion(segments[:1], without_text).may_match(number_alone)[0]).all()


def test_more_values_than_files_are_not_routed(tmp_path: Path) -> None:
    """Each file has one of them, so hashing and searching them all would exclude no file."""
    segment = opened(tmp_path, merged([facts(n, values) for n, values in enumerate(INDEXED[:4])]))
    for values, routed in ((2, True), (9, False)):
        _, normal_form = bound(f"number IN ({', '.join(map(str, range(values)))})")
        Exclusion([segment], segment.columns.keys()).may_match(normal_form)[0]
        assert (("number", "int64") in segment._runs) is routed
        segment._runs.clear()


def test_a_column_of_another_type_is_another_column(segments: list[SegmentFile]) -> None:
    predicate = negation_normal_form(parse_predicate("small = 3", pa.schema({"small": pa.int64()})))
    assert Exclusion(segments[:1], segments[0].columns.keys()).may_match(predicate)[0].all()


def located(segment: SegmentFile, column: str, values: pa.Array) -> list[list[int] | None]:
    """For each base file, the positions of the values that it may hold; None for any."""
    key = next(key for key in segment.columns if key[0] == column)
    found = located_values(segment, key, values)
    assert found is not None
    return [
        sorted(found.routed.of_file(file).tolist()) if is_known else None
        for file, is_known in enumerate(found.is_known.tolist())
    ]


def test_values_are_located_by_runs_and_by_bounds(tmp_path: Path) -> None:
    dice = np.random.default_rng(3)
    texts = [pa.array([f"u{each}" for each in dice.integers(0, 900, 60)]) for _ in range(24)]
    some = [{"u": each} for each in texts]
    stated = merged(
        [facts(number, each, routed=number % 3 != 0) for number, each in enumerate(some)]
    )
    segment = opened(tmp_path, stated)
    paths = segment.files["path"].to_pylist()
    order = [[path_of(number) for number in range(24)].index(path) for path in paths]
    wanted = pa.array([f"u{each}" for each in dice.integers(0, 1_200, 300)])
    for file, positions in zip(order, located(segment, "u", wanted), strict=True):
        held = set(texts[file].to_pylist())
        present = [at for at, each in enumerate(wanted.to_pylist()) if each in held]
        assert positions is not None
        if file % 3:
            assert positions == present
        else:
            least, greatest = min(held), max(held)
            between = [least <= each <= greatest for each in wanted.to_pylist()]
            assert positions == np.flatnonzero(between).tolist()
            assert set(present) <= set(positions)
