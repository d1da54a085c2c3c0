"""Routing runs find every pair, and few others."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.metadata.segments import run as runs
from hudi_index_service.index.metadata.segments.bounds import distinct, exact_keys, hashes
from hudi_index_service.index.metadata.segments.run import Pairs, Run, RunLayout, joined, packed
from tests.example_counts import examples

HASHES = [248629889170205, 242220607053498, 119009866348380]
NUMBER_HASHES = [79296918065833, 46625482681859, 10278111015248]

MOST_FILES = 64

Numbers = npt.NDArray[np.int64]


def opened(pairs: Pairs) -> Run:
    run = packed(pairs)
    assert run is not None
    assert len(run.pairs) == run.layout.packed_bytes
    assert len(run.directory) == run.layout.directory_bytes
    content = np.frombuffer(run.pairs, dtype=np.uint8)
    return Run.of(run.layout, run.directory, lambda parts: only(content, parts))


def only(content: npt.NDArray[np.uint8], parts: Sequence[tuple[int, int]]) -> npt.NDArray[np.uint8]:
    """The bytes of these parts; all others are wrong."""
    some = ~content
    for first, end in parts:
        some[first:end] = content[first:end]
    return some


def pairs_of(files: list[pa.Array], *, by_value: bool | None = None) -> Pairs:
    """The pairs of files with these values."""
    parts = []
    for number, values in enumerate(files):
        exact = exact_keys(values)
        if exact is None or by_value is False:
            parts.append(Pairs.of_file(distinct(hashes(values)), by_value=False, file=number))
        else:
            parts.append(Pairs.of_file(distinct(exact), by_value=True, file=number))
    return joined(parts)


def located(run: Run, values: pa.Array) -> list[set[int]]:
    """The files of each value."""
    routed = run.located(run.keys_of(values), MOST_FILES)
    files: list[set[int]] = [set() for _ in range(len(values))]
    for file in range(MOST_FILES):
        positions = routed.of_file(file).tolist()
        assert positions == sorted(set(positions))
        assert bool(positions) is bool(routed.any()[file])
        for position in positions:
            files[position].add(file)
    return files


def random_files(make: Callable[[Numbers], pa.Array], files: int, rows: int) -> list[pa.Array]:
    dice = np.random.default_rng(5)
    return [make(dice.integers(0, files * rows // 5, rows)) for _ in range(files)]


KINDS: dict[str, Callable[[Numbers], pa.Array]] = {
    "texts": lambda numbers: pa.array([f"u{each}" for each in numbers]),
    "binary": lambda numbers: pa.array([bytes([each % 251]) * (each % 7) for each in numbers]),
    "integers": lambda numbers: pa.array(numbers),
    "spread integers": lambda numbers: pa.array(numbers * 2**43 - 2**62),
    "small integers": lambda numbers: pa.array((numbers % 100 - 50).astype(np.int8)),
    "doubles": lambda numbers: pa.array(numbers / 7.0 - 100),
    "booleans": lambda numbers: pa.array(numbers % 2 == 0),
    "days": lambda numbers: pa.array(numbers.astype(np.int32), pa.int32()).cast(pa.date32()),
    "skewed": lambda numbers: pa.array(np.where(numbers % 50 == 0, 2**40, numbers % 3)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("files", [1, 40])
def test_all_files_of_a_value_are_named_and_few_others(kind: str, files: int) -> None:
    values = random_files(KINDS[kind], files, 500)
    run = opened(pairs_of(values))
    wanted = pa.concat_arrays(values).unique()
    exact = [set(each.to_pylist()) for each in values]
    truth = [
        {number for number, each in enumerate(exact) if value in each}
        for value in wanted.to_pylist()
    ]
    named = located(run, wanted)
    assert all(true <= found for true, found in zip(truth, named, strict=True))
    assert sum(map(len, named)) == sum(map(len, truth)), "these few keys are not cut"
    for n in range(0, len(wanted), 25):  # one value alone is located in another way
        assert located(run, wanted.slice(n, 1)) == [named[n]]


@pytest.mark.parametrize("kind", ["texts", "integers", "doubles"])
def test_a_full_run_cuts_keys_and_names_few_files_wrongly(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "FULL_PAIRS", 2**12)
    values = random_files(KINDS[kind], 40, 500)
    run = opened(pairs_of(values))
    assert run.layout.is_full
    assert run.layout.key_bits < 24
    present = pa.concat_arrays(values).unique()
    assert all(located(run, present))
    absent = KINDS[kind](np.arange(10**6, 10**6 + 5_000))
    wrong = sum(map(bool, located(run, absent)))
    assert wrong < len(absent) / 16


def test_values_may_be_repeated_and_in_any_order() -> None:
    values = random_files(KINDS["texts"], 20, 300)
    run = opened(pairs_of(values))
    wanted = pa.concat_arrays(values)
    whole = located(run, wanted)
    assert [located(run, wanted.slice(n, 1))[0] for n in range(50)] == whole[:50]
    assert located(run, wanted[::-1]) == whole[::-1]


def test_only_the_parts_of_a_run_with_the_values_are_read() -> None:
    run = packed(pairs_of(random_files(KINDS["texts"], 60, 2_000)))
    assert run is not None
    content, read = np.frombuffer(run.pairs, dtype=np.uint8), list[tuple[int, int]]()

    def parts_read(parts: Sequence[tuple[int, int]]) -> npt.NDArray[np.uint8]:
        read.extend(parts)
        return only(content, parts)

    located(Run.of(run.layout, run.directory, parts_read), pa.array(["u7", "u11"]))
    assert 1 <= len(read) <= 2
    assert sum(end - first for first, end in read) < len(content) / 50


def test_a_narrow_range_of_numbers_is_answered_by_value() -> None:
    values = random_files(KINDS["integers"], 30, 400)
    run = opened(pairs_of(values))
    assert run.layout.by_value
    for low, high in [(-5, 3), (100, 105), (2390, 10**9), (50, 50), (7, 6)]:
        keys = exact_keys(pa.array([low, high]))
        assert keys is not None
        found = run.within(int(keys[0]), int(keys[1]), 10_000, 30)
        truth = {
            number
            for number, each in enumerate(values)
            if any(low <= value <= high for value in each.to_pylist())
        }
        assert found is not None
        assert set(np.flatnonzero(found).tolist()) == truth
    first, last = (int(each) for each in exact_keys(pa.array([0, 2000])))  # type: ignore[union-attr]
    assert run.within(first, last, 100, 30) is None, "too many pairs"


def test_hashes_answer_no_range() -> None:
    run = opened(pairs_of([KINDS["texts"](np.arange(50))]))
    assert run.within(0, 2**64 - 1, 10**9, 1) is None


@examples(60)
@given(
    st.lists(
        st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30).map(
            lambda x: pa.array(x, pa.int64())
        ),
        min_size=1,
        max_size=6,
    )
)
def test_numbers_of_any_size(files: list[pa.Array]) -> None:
    run = opened(pairs_of(files))
    for number, values in enumerate(files):
        assert all(number in found for found in located(run, values))


def test_equal_numbers_have_one_key() -> None:
    zeros = pa.array([0.0, -0.0])
    nans = pa.array([float("nan"), -float("nan")])
    for values in (zeros, nans):
        assert len(np.unique(hashes(values))) == 1


def test_slices_of_arrays_hash_as_their_values() -> None:
    texts = pa.array(["a", "", "bc", "a", "\0", ""])
    whole = hashes(texts)
    assert (hashes(texts.slice(2, 3)) == whole[2:5]).all()
    assert len(set(whole.tolist())) == 4, "a text of one zero byte is not the empty text"


def test_texts_that_are_not_utf8_have_the_hashes_of_their_bytes() -> None:
    broken = pa.array([b"\xff\xfe", b"", b"a\xc3"])
    assert hashes(broken.view(pa.string())).tolist() == hashes(broken).tolist()


def test_hashes_do_not_change_between_releases() -> None:
    """They are on disk."""
    assert hashes(pa.array(["", "a", "Zürich"])).tolist() == HASHES
    assert hashes(pa.array([0, -1, 2**62])).tolist() == NUMBER_HASHES


def test_files_are_left_out_and_numbered_anew() -> None:
    values = random_files(KINDS["integers"], 10, 100)
    numbers = np.array([0, -1, 1, 2, -1, 3, 4, 5, 6, 7])
    some = pairs_of(values).renumbered(numbers)
    kept = [each for each, number in zip(values, numbers, strict=True) if number >= 0]
    assert located(opened(some), values[0]) == located(opened(pairs_of(kept)), values[0])


def test_a_full_run_can_be_packed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when facts of a base file are removed: keys that were cut stay cut."""
    monkeypatch.setattr(runs, "FULL_PAIRS", 2**10)
    for kind in ("integers", "texts"):
        values = random_files(KINDS[kind], 30, 200)
        first = opened(pairs_of(values))
        fewer = np.where(np.arange(30) < 3, np.arange(30), -1)
        again = opened(first.pairs().renumbered(fewer))
        for number in range(3):
            assert all(number in found for found in located(again, values[number])), kind


@pytest.mark.parametrize(
    "change", [{"pairs": 7}, {"bucket_bits": 3}, {"file_bits": 31}, {"key_bits": 20}]
)
def test_a_layout_that_does_not_fit_is_refused(change: dict[str, int]) -> None:
    run = packed(pairs_of([KINDS["texts"](np.arange(200))]))
    assert run is not None
    layout = RunLayout.model_validate({**run.layout.model_dump(), **change})
    if change in ({"file_bits": 31}, {"key_bits": 20}):
        assert layout.packed_bytes != run.layout.packed_bytes, "its file notices"
        return
    with pytest.raises(EntryInvalid, match="directory"):
        Run.of(layout, run.directory, lambda parts: np.zeros(layout.packed_bytes, np.uint8))
