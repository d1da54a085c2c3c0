"""Segments are merged, raced for, forgotten and done without."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hudi_index_service.errors import EntryInvalid
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.metadata.documents import NewerFormat
from hudi_index_service.index.metadata.segments import run as runs
from hudi_index_service.index.metadata.segments import segment as segment_module
from hudi_index_service.index.metadata.segments import store as store_module
from hudi_index_service.index.metadata.segments.exclusion import Exclusion
from hudi_index_service.index.metadata.segments.run import Pairs, Run
from hudi_index_service.index.metadata.segments.segment import ColumnKey, Facts, facts_of
from hudi_index_service.index.metadata.segments.segment_file import (
    SegmentFile,
    stated_generations,
)
from hudi_index_service.index.metadata.segments.store import OpenSegments, SegmentStore
from hudi_index_service.predicate import parse_predicate
from hudi_index_service.storage.store import Storage
from tests.at_once import at_once
from tests.index.golden import make
from tests.index.segments.facts import PARTITION, facts, manifest, path_of
from tests.programs import lines_of

SCHEMA = pa.schema({"u": pa.string(), "v": pa.int64()})


def columns(number: int) -> dict[str, pa.Array]:
    """A value of `u` is in three base files."""
    return {
        "u": pa.array([f"u{(number + step) * 7}" for step in range(3)] + [f"o{number}", "z"]),
        "v": pa.array([(number * 37) % 100 + 100 * step for step in range(5)]),
    }


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path)


@pytest.fixture
def store(storage: Storage) -> SegmentStore:
    """The store of a table without segments."""
    return SegmentStore(storage, "lucene")


def filled(store: SegmentStore, files: range) -> SegmentStore:
    """With one segment for each of these base files, as build tasks write them."""
    for number in files:
        store.add(facts(number, columns(number)))
    return store


def opened(store: SegmentStore) -> list[SegmentFile]:
    return [store.open(each) for each in store.listed()]


def stated(store: SegmentStore) -> list[str]:
    """The base files that segments state facts of, once for each time."""
    return sorted(path for each in opened(store) for path in each.files["path"].to_pylist())


def base_files(*numbers: int) -> list[BaseFile]:
    return [
        BaseFile(path_of(number), PARTITION, f"f{number:04d}", make.INSTANT, 1000 + number)
        for number in numbers
    ]


def generation_facts(number: int, generation: int, names: Sequence[str] = ("u", "v")) -> Facts:
    """The facts of a generation with some of the columns."""
    some = {name: values for name, values in columns(number).items() if name in names}
    return facts_of(manifest(number, some).model_copy(update={"generation": generation}), {})


def numbers(store: SegmentStore, *files: int) -> dict[str, int]:
    """The stated generations of base files, by path."""
    stated = stated_generations(opened(store), base_files(*files))
    return {path: each.number for path, each in stated.items()}


def test_the_highest_generation_is_stated(store: SegmentStore) -> None:
    filled(store, range(3))
    store.add(generation_facts(2, 3, ["u"]))
    store.add(generation_facts(2, 2))
    assert numbers(store, 0, 2, 7) == {path_of(0): 1, path_of(2): 3}
    (by_segment,) = stated_generations(opened(store), base_files(2)).values()
    (stating,) = (each for each in opened(store) if each.files["generation"].to_pylist() == [3])
    assert by_segment.segment == stating.name


def test_a_merge_states_the_highest_generation(store: SegmentStore) -> None:
    filled(store, range(4))
    store.add(generation_facts(2, 3, ["u"]))  # its facts are fewer, and left out
    store.merge()
    assert len(store.listed()) == 1
    assert stated(store) == [path_of(number) for number in range(4)]
    assert numbers(store, 1, 2) == {path_of(1): 1, path_of(2): 3}


def test_older_segments_state_no_generation(store: SegmentStore) -> None:
    new = facts(0, columns(0))
    store.add(replace(new, files=new.files.drop_columns(["generation"])))
    assert numbers(store, 0) == {}
    assert may_match(store, "u = 'u7'") == {path_of(0)}
    filled(store, range(1, 5)).merge()
    assert len(store.listed()) == 1
    assert numbers(store, 0, 1) == {path_of(1): 1}


def may_match(store: SegmentStore, where: str = "u = 'u70'") -> set[str]:
    """The base files that may have a row."""
    predicate = parse_predicate(where, SCHEMA)
    return {
        path
        for each in opened(store)
        for path, may in zip(
            each.files["path"].to_pylist(),
            Exclusion([each], each.columns.keys()).may_match(predicate)[0],
            strict=True,
        )
        if may
    }


def paths(*numbers: int) -> list[str]:
    return sorted(map(path_of, numbers))


def test_segments_of_single_files_become_one(store: SegmentStore) -> None:
    filled(store, range(40)).merge()
    (segment,) = opened(store)
    assert stated(store) == paths(*range(40))
    assert segment.document.files == 40
    assert len(segment.document.replaces) == 40
    assert may_match(store) == set(paths(8, 9, 10))
    assert may_match(store, "v BETWEEN 11 AND 12") == set(paths(3))


def test_pairs_of_a_stored_segment_are_unpacked_when_they_are_needed(
    store: SegmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (segment,) = opened(filled(store, range(1)))
    unpacked = []
    pairs = Run.pairs

    def recorded(run: Run) -> Pairs:
        unpacked.append(run.layout.pairs)
        return pairs(run)

    monkeypatch.setattr(Run, "pairs", recorded)
    facts = segment.facts()
    assert sorted(name for name, _ in facts.pairs) == ["u", "v"]
    assert not unpacked
    assert len(facts.pairs["v", "int64"].keys) == 5
    assert unpacked == [5]


def test_segments_grow_in_steps_so_that_few_are_rewritten(store: SegmentStore) -> None:
    written = 0
    for number in range(64):
        filled(store, range(number, number + 1))
        before = {each.path for each in store.listed()}
        store.merge()
        written += sum(
            segment.document.files
            for segment in opened(store)
            if segment.name not in {path.rsplit("/", 1)[1] for path in before}
        )
    assert stated(store) == paths(*range(64))
    assert len(store.listed()) <= 6
    assert written < 64 * 8, "each fact was written anew a few times"


def test_a_base_file_built_again_is_stated_once(store: SegmentStore) -> None:
    filled(store, range(6)).merge()
    store.add(facts(3, {"u": columns(3)["u"]}))
    store.add(facts(3, {**columns(3), "w": pa.array([1, 2, 3, 4, 5])}))
    filled(store, range(6, 8)).merge()
    assert stated(store) == paths(*range(8))
    (segment,) = opened(store)
    assert {name for name, _ in segment.columns} == {"u", "v", "w"}


def test_full_segments_stay(store: SegmentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(store, range(30)).merge()
    (first,) = store.listed()
    monkeypatch.setattr(runs, "FULL_PAIRS", 100)
    filled(store, range(30, 50)).merge()
    assert first in store.listed()
    assert stated(store) == paths(*range(50))
    assert may_match(store, "u = 'u217'") == set(paths(29, 30, 31))


def test_most_pairs_bound_a_merge(store: SegmentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MOST_PAIRS", 50)
    filled(store, range(40)).merge()
    assert len(store.listed()) == 4
    assert stated(store) == paths(*range(40))


@pytest.mark.parametrize("attempt", range(5))
def test_racing_builders_and_mergers_lose_nothing(store: SegmentStore, attempt: int) -> None:
    def build(first: int) -> Callable[[], None]:
        def work() -> None:
            for number in range(first, first + 8):
                filled(store, range(number, number + 1))
                if number % 3 == attempt % 3:
                    store.merge()
            store.merge()

        return work

    at_once(*(build(8 * number) for number in range(6)))
    assert set(stated(store)) == set(paths(*range(48)))
    store.merge()
    assert may_match(store) == set(paths(8, 9, 10))


def keeps(*numbers: int) -> Callable[[str], bool]:
    return set(paths(*numbers)).__contains__


def every_column(key: ColumnKey) -> bool:
    return True


def test_facts_of_base_files_are_forgotten(store: SegmentStore) -> None:
    filled(store, range(40)).merge()
    filled(store, range(40, 42))
    changed = store.forget(keeps(8, 9, *range(20, 42)), every_column)
    assert len(changed) == 1
    assert stated(store) == paths(8, 9, *range(20, 42))
    assert may_match(store) == set(paths(8, 9))
    assert store.forget(keeps(8, 9, *range(20, 42)), every_column) == []


def test_facts_of_columns_are_forgotten(storage: Storage, store: SegmentStore) -> None:
    filled(store, range(20)).merge()
    store.forget(keeps(*range(20)), lambda key: key[0] != "u")
    (left,) = opened(store)
    assert {name for name, _ in left.columns} == {"v"}
    assert b"u133" not in Path(storage.uri, store.listed()[0].path).read_bytes()


def test_a_segment_without_any_fact_left_goes(store: SegmentStore) -> None:
    filled(store, range(3))
    assert len(store.forget(keeps(), every_column)) == 3
    assert store.listed() == []


def test_a_merger_that_read_before_withdraws(
    store: SegmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would bring back what was erased meanwhile."""
    filled(store, range(20))
    really_merged = segment_module.merged

    def erased_meanwhile(parts, **options):  # type: ignore[no-untyped-def]
        result = really_merged(parts, **options)
        store.forget(keeps(*range(10)), every_column)
        return result

    monkeypatch.setattr(store_module, "merged", erased_meanwhile)
    store.merge()
    assert stated(store) == paths(*range(10))


def test_equal_mergers_leave_one_segment(
    store: SegmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(store, range(20))
    really_merged = segment_module.merged

    def merged_by_another_first(parts, **options):  # type: ignore[no-untyped-def]
        monkeypatch.setattr(store_module, "merged", really_merged)
        store.merge()
        return really_merged(parts, **options)

    monkeypatch.setattr(store_module, "merged", merged_by_another_first)
    store.merge()
    assert len(store.listed()) == 1
    assert stated(store) == paths(*range(20))


# --- damage ----------------------------------------------------------------------------------


def damages(content: bytes) -> Iterator[bytes]:
    """The file cut short, with a changed byte in each part, and something else."""
    for length in (0, 1, 15, 16, len(content) // 2, len(content) - 1):
        yield content[:length]
    for position in range(0, len(content), max(1, len(content) // 60)):
        yield content[:position] + bytes([content[position] ^ 0x55]) + content[position + 1 :]
    yield b"HISEG001" * 100


def test_a_damaged_segment_is_done_without(store: SegmentStore, tmp_path: Path) -> None:
    filled(store, range(30)).merge()
    (file,) = store.listed()
    path = tmp_path / file.path
    content = path.read_bytes()
    right = may_match(store)
    refused = 0
    for damaged in damages(content):
        path.write_bytes(damaged)
        (listed,) = store.listed()
        try:
            segment = store.open(listed)
        except EntryInvalid:
            refused += 1
            continue
        (named,) = Exclusion([segment], segment.columns.keys()).may_match(
            parse_predicate("u = 'u70'", SCHEMA)
        )
        found = {
            each for each, may in zip(segment.files["path"].to_pylist(), named, strict=True) if may
        }
        assert found >= right
    assert refused > 10


def test_a_damaged_segment_leaves_the_others_in_use(store: SegmentStore, tmp_path: Path) -> None:
    filled(store, range(5))
    tmp_path.joinpath(store.listed()[1].path).write_bytes(b"nothing")
    segments = OpenSegments(store)
    assert len(segments.now()) == 4
    store.merge()
    assert len(segments.now()) == 1
    assert segments.last[0].document.files == 4


def test_few_segments_are_not_merged(store: SegmentStore) -> None:
    filled(store, range(3)).merge()
    assert len(store.listed()) == 3


def test_a_damaged_segment_is_removed_when_facts_are_forgotten(
    store: SegmentStore, tmp_path: Path
) -> None:
    filled(store, range(3))
    tmp_path.joinpath(store.listed()[1].path).write_bytes(b"nothing")
    store.forget(keeps(*range(3)), every_column)
    assert len(store.listed()) == 2


def test_a_segment_of_a_newer_format_is_left_alone(
    store: SegmentStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_index_service.index.metadata.documents.FORMAT_MAJOR", 2)
    filled(store, range(2))
    monkeypatch.undo()
    with pytest.raises(NewerFormat):
        store.open(store.listed()[0])
    assert OpenSegments(store).now() == ()
    store.merge()
    store.forget(keeps(), every_column)
    assert len(store.listed()) == 2


def test_segments_are_opened_once(storage: Storage, store: SegmentStore) -> None:
    filled(store, range(5))
    segments = OpenSegments(store)
    first = segments.now()
    bytes_read = storage.io.bytes_read
    assert segments.now() == first
    assert storage.io.bytes_read == bytes_read
    filled(store, range(5, 6))
    again = segments.now()
    assert set(first) < set(again)


def test_a_merged_segment_serves_alone_before_the_others_are_deleted(
    storage: Storage, store: SegmentStore
) -> None:
    filled(store, range(4))
    kept = [(each.path, storage.read(each.path)) for each in store.listed()]
    store.merge()
    for path, content in kept:
        storage.create(path, content)
    (serving,) = OpenSegments(store).now()
    assert serving.document.files == 4


def test_a_large_segment_is_read_block_by_block(
    storage: Storage, store: SegmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_index_service.index.metadata.segments.segment_file.FIRST_READ", 1_000)
    dice = np.random.default_rng(1)
    for number in range(60):
        numbers = dice.integers(0, 2**62, 3_000)
        store.add(facts(number, {"u": pa.array([str(each) for each in numbers])}))
    store.merge()
    (file,) = store.listed()
    before = storage.io.bytes_read
    segment = store.open(file)
    opening = storage.io.bytes_read - before
    where = parse_predicate(f"u = '{numbers[7]}'", SCHEMA)
    (found,) = Exclusion([segment], segment.columns.keys()).may_match(where)
    asking = storage.io.bytes_read - before - opening
    assert segment.files["path"].filter(pa.array(found)).to_pylist() == [path_of(59)]
    assert file.size > 600_000
    assert opening < 150_000, "statistics and document"
    assert asking < 150_000, "the directory, and the block with the bucket"


def test_one_read_opens_a_large_segment_and_one_more_asks_its_run(
    storage: Storage, store: SegmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "hudi_index_service.index.metadata.segments.segment_file.FIRST_READ", 150_000
    )
    dice = np.random.default_rng(1)
    for number in range(60):
        numbers = dice.integers(0, 2**62, 3_000)
        store.add(facts(number, {"u": pa.array([str(each) for each in numbers])}))
    store.merge()
    (file,) = store.listed()
    assert file.size > 600_000
    before = storage.io.requests
    segment = store.open(file)
    assert storage.io.requests - before == 1
    where = parse_predicate(f"u IN ({', '.join(repr(str(each)) for each in numbers[:9])})", SCHEMA)
    (found,) = Exclusion([segment], segment.columns.keys()).may_match(where)
    assert segment.files["path"].filter(pa.array(found)).to_pylist() == [path_of(59)]
    assert storage.io.requests - before == 2


def test_files_whose_run_is_lost_are_not_excluded_by_the_merged_one(store: SegmentStore) -> None:
    """As after a run that could not be packed again: its files count as routed no longer."""
    lost = facts(8, columns(8))
    store.add(replace(lost, pairs={}))
    filled(store, range(9, 12)).merge()
    assert len(store.listed()) == 1
    assert may_match(store) == set(paths(8, 9, 10))


def test_statistics_of_other_columns_are_refused(store: SegmentStore) -> None:
    stated_facts = facts(1, columns(1))
    without = {key: each.drop_columns(["minimum"]) for key, each in stated_facts.columns.items()}
    store.add(replace(stated_facts, columns=without))
    with pytest.raises(EntryInvalid, match="other statistics"):
        opened(store)


def test_reading_a_segment_leaves_no_thread_of_arrow(store: SegmentStore, tmp_path: Path) -> None:
    """Arrow's threads that hold an object of Python may outlive the interpreter, which ends the
    process with an error after its work."""
    filled(store, range(3))
    program = (
        "import os, sys\n"
        "from hudi_index_service.index.metadata.segments.store import SegmentStore\n"
        "from hudi_index_service.storage.store import Storage\n"
        "before = os.listdir('/proc/self/task')\n"
        "store = SegmentStore(Storage(sys.argv[1]), 'lucene')\n"
        "facts = [store.open(each).facts() for each in store.listed()]\n"
        "print(len(facts), sorted(set(os.listdir('/proc/self/task')) - set(before)))\n"
    )
    assert lines_of(program, tmp_path) == ["3 []"]
