"""Large base files are built in parts: planned, staged, combined, and published once."""

from dataclasses import replace
from pathlib import Path
from threading import Event, Lock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_index_service.build.entry.parts import Part, Staging, part_counts
from hudi_index_service.build.entry.task import BuildTask, TaskOutcome, TaskStatus, run_task
from hudi_index_service.build.executor import LocalExecutor, Schedule
from hudi_index_service.config import Settings
from hudi_index_service.errors import StorageFailed
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.files.local_copy import packed_index
from hudi_index_service.index.files.stored_values import VALUES
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.storage.store import Storage
from tests.build.base_files import build_task, numbered_rows, stored_below, write_base_file
from tests.index.conftest import rows_where

MB = 2**20


def makespan(sizes: list[int], slots: int) -> float:
    """When the last task ends, in bytes, if each slot takes the next task when it is idle."""
    counts = part_counts(sizes, slots=slots, least=1)
    parts = [size / count for size, count in zip(sizes, counts, strict=True) for _ in range(count)]
    busy = [0.0] * slots
    for part in sorted(parts, reverse=True):
        busy[busy.index(min(busy))] += part
    return max(busy)


@pytest.mark.parametrize("slots", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("small", [0, 1, 20, 500])
def test_large_and_small_base_files_keep_every_core_busy(slots: int, small: int) -> None:
    sizes = [363 * MB, *[5 * MB] * small]
    assert makespan(sizes, slots) <= 1.05 * sum(sizes) / slots + 5 * MB


def test_the_number_of_parts_depends_on_size_and_slots() -> None:
    assert part_counts([363 * MB], slots=2, least=32 * MB) == [2]
    assert part_counts([363 * MB], slots=100, least=32 * MB) == [11]
    assert part_counts([63 * MB], slots=100, least=32 * MB) == [1]
    assert part_counts([363 * MB] * 8, slots=4, least=32 * MB) == [1] * 8
    assert part_counts([363 * MB, *[5 * MB] * 20], slots=2, least=32 * MB) == [2, *[1] * 20]
    assert part_counts([], slots=2, least=1) == []
    assert part_counts([0, 5], slots=0, least=1) == [1, 1]


@pytest.mark.parametrize("total", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("of", [1, 2, 3, 7])
def test_parts_cover_all_rows_in_order(total: int, of: int) -> None:
    parts = [Part(number, of).rows(total) for number in range(of)]
    assert [row for part in parts for row in part] == list(range(total))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.fixture(params=["local", "remote"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """A local folder, and a remote store whose files have no local path."""
    return Storage(tmp_path if request.param == "local" else f"memory://{tmp_path}")


def run(tasks: list[BuildTask], parallelism: int = 3) -> list[TaskOutcome]:
    outcomes = LocalExecutor(parallelism).run(tasks)
    return [outcome for outcome in outcomes if outcome is not None]


def only_manifest(storage: Storage, using: str = "lucene") -> Manifest:
    listing = EntryListing(storage, using)
    (folder,) = listing.folders()
    return listing.newest_valid(folder)


def assert_index_answers(storage: Storage, task: BuildTask, rows: pa.Table, cache: Path) -> None:
    """Row ids are positions in the base file, at the boundaries of parts and elsewhere."""
    kind = index_type(task.due.index_type)
    entry = EntryListing(storage, kind.name).find(task.due.base_file)
    columns = entry.manifest.columns
    with packed_index(storage, entry, Settings(cache_folder=cache)) as index:
        reader = kind.open(index, columns)
    last = len(rows) - 1
    boundaries = [0, 1, last // 3, last // 3 + 1, last // 2, last // 2 + 1, last - 1, last]
    wheres = [f"id = {boundary}" for boundary in boundaries]
    wheres += ["sender = 'User13'", "amount is null", "amount < 40.0", f"id > {last // 2}"]
    if entry.manifest.column("msg") is not None:
        wheres += ["sender <> 'User13'", "msg LIKE 'buying car 10%'"]
    for where in wheres:
        leaf = negation_normal_form(parse_predicate(where, rows.schema))
        assert reader.row_ids(leaf) == rows_where(leaf, rows), where
    assert kind.verify(index, columns) == []
    reader.close()


@pytest.mark.parametrize("using", ["lucene", "btree"])
def test_building_in_parts_gives_the_same_entry(
    storage: Storage, tmp_path: Path, using: str
) -> None:
    rows = numbered_rows(10_003)
    base_file = write_base_file(storage, rows, row_group_size=2_500)
    task = build_task(storage, base_file, rows.schema, using)

    (outcome,) = run([task], parallelism=3)

    assert outcome.status is TaskStatus.BUILT, outcome.error
    assert outcome.rows == 10_003
    in_parts = only_manifest(storage, using)
    assert stored_below(storage, using) == [in_parts.data.name, "manifest-0001.json"]
    assert outcome.index_bytes == in_parts.data.length
    assert_index_answers(storage, task, rows, tmp_path / "cache")

    storage.delete([file.path for file in storage.files(".hoodie/.index")])
    run([task], parallelism=1)
    whole = only_manifest(storage, using)
    assert in_parts.codec == whole.codec == ("Lucene912" if using == "lucene" else None)
    assert_index_answers(storage, task, rows, tmp_path / "cache")
    for manifest, segments in ((in_parts, 3), (whole, 1)):
        names = [member.name for member in manifest.data.members]
        if using == "lucene":
            assert len([name for name in names if name.endswith(".si")]) == segments
        else:
            assert names == ["leaves", "parquet-metadata", "tree"]
    assert (whole.base_file, whole.definitions) == (in_parts.base_file, in_parts.definitions)
    for in_part, in_whole in zip(in_parts.columns, whole.columns, strict=True):
        # A value in several parts is counted in each of them.
        assert in_part.model_copy(update={"distinct": in_whole.distinct}) == in_whole


def test_a_column_that_only_spark_reads_is_left_out_of_every_part(storage: Storage) -> None:
    rows = numbered_rows(10_003)
    place = rows.schema.get_field_index("amount")
    stored = rows.set_column(place, "amount", rows["amount"].cast(pa.float32()))
    task = build_task(storage, write_base_file(storage, stored, row_group_size=2_500), rows.schema)

    (outcome,) = run([task], parallelism=3)

    assert outcome.status is TaskStatus.BUILT, outcome.error
    assert list(outcome.skipped) == ["amount"]
    in_parts = only_manifest(storage)
    assert [each.name for each in in_parts.skipped] == ["amount"]
    assert "amount" not in [each.name for each in in_parts.columns]
    assert len([m for m in in_parts.data.members if m.name.endswith(".si")]) == 3


def test_stored_values_of_parts_are_joined(storage: Storage) -> None:
    rows = numbered_rows(10_003)
    task = build_task(storage, write_base_file(storage, rows, row_group_size=2_500), rows.schema)
    own = {each.name: each for each in task.due.columns}
    columns = (
        ColumnSpec("amount", own["amount"].type, ("stored",)),
        ColumnSpec("sender", own["sender"].type, (*own["sender"].fields, "stored")),
    )
    (outcome,) = run([replace(task, due=replace(task.due, columns=columns))], parallelism=3)
    assert outcome.status is TaskStatus.BUILT, outcome.error

    manifest = only_manifest(storage)
    (folder,) = EntryListing(storage, "lucene").folders()
    first = manifest.data.members[0]
    assert (first.name, first.offset) == (VALUES, 0)
    values = storage.read(f"{folder}/{manifest.data.name}")[: first.length]
    assert pq.read_table(pa.BufferReader(values)) == rows.select(["amount", "sender"])
    amount, sender = manifest.columns
    assert (amount.null_count, amount.minimum) == (rows["amount"].null_count, None)
    assert (sender.null_count, sender.minimum) == (0, "User0")


def test_extremes_of_parts_are_combined_in_the_order_of_their_types(storage: Storage) -> None:
    rows = pa.table(
        {
            "n": [9, 10, 100, -1],
            "nan": [1.0, 2.0, 3.0, float("nan")],
            "null": pa.array([None] * 4, pa.string()),
            "late": pa.array([None, None, None, "x"]),
        }
    )
    run([build_task(storage, write_base_file(storage, rows), rows.schema)], parallelism=2)
    found = {c.name: (c.minimum, c.maximum) for c in only_manifest(storage).columns}
    expected = {"n": ("-1", "100"), "nan": (None, None), "null": (None, None), "late": ("x", "x")}
    assert found == expected


def test_a_base_file_may_have_fewer_rows_than_parts(storage: Storage) -> None:
    rows = numbered_rows(3)
    run([build_task(storage, write_base_file(storage, rows), rows.schema)], parallelism=7)
    assert only_manifest(storage).base_file.rows == 3


def test_repeated_and_late_parts_change_nothing(storage: Storage, tmp_path: Path) -> None:
    """Spark repeats a task if its worker was lost, or speculatively."""
    rows = numbered_rows(1_000)
    task = build_task(storage, write_base_file(storage, rows), rows.schema)
    schedule = Schedule([task], slots=3)
    first, second, third = schedule.tasks

    for part in (first, first, second):
        assert run_task(part).status is TaskStatus.STAGED
    outcomes = [TaskOutcome("", "", TaskStatus.STAGED)] * 2
    assert schedule.ended(0, outcomes[0]) is None
    assert schedule.ended(1, outcomes[1]) is None
    combined = run_task(third)
    assert combined.status is TaskStatus.BUILT
    assert run_task(second).status is TaskStatus.PRESENT, "a late part finds the entry published"
    assert schedule.ended(2, combined) is not None

    manifest = only_manifest(storage)
    assert stored_below(storage) == [manifest.data.name, "manifest-0001.json"]
    assert_index_answers(storage, task, rows, tmp_path / "cache")


def test_columns_added_by_another_builder_between_parts_are_kept(
    storage: Storage, tmp_path: Path
) -> None:
    rows = numbered_rows(1_000)
    base_file = write_base_file(storage, rows)
    narrow = build_task(storage, base_file, rows.select(["id", "sender"]).schema)
    other = replace(
        build_task(storage, base_file, rows.select(["amount"]).schema), build_id="000008"
    )
    schedule = Schedule([narrow], slots=2)

    first = run_task(schedule.tasks[0])
    assert run_task(other).status is TaskStatus.BUILT
    second = run_task(schedule.tasks[1])

    assert [first.status, second.status] == [TaskStatus.STAGED] * 2
    assert [schedule.ended(0, first), schedule.ended(1, second)] == [None, None]
    (whole,) = schedule.undecided().tasks
    assert run_task(whole).status is TaskStatus.BUILT
    schedule.give_up()
    manifest = only_manifest(storage)
    assert [column.name for column in manifest.columns] == ["amount", "id", "sender"]
    assert not [name for name in stored_below(storage) if "part" in name]
    assert_index_answers(storage, whole, rows, tmp_path / "cache")


def test_a_failing_part_fails_only_its_base_file(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    rows = numbered_rows(5_000)
    good = write_base_file(storage, rows, "good")
    damaged = write_base_file(storage, rows, "damaged", row_group_size=2_500)
    path = storage.local_path(damaged.path)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 20_000] = bytes(20_000)  # in the second row group
    path.write_bytes(content)

    tasks = [build_task(storage, each, rows.schema) for each in (good, damaged)]
    outcomes = {outcome.path: outcome for outcome in run(tasks, parallelism=2)}

    assert outcomes[good.path].status is TaskStatus.BUILT
    failure = outcomes[damaged.path]
    assert failure.status is TaskStatus.FAILED
    assert failure.error is not None
    assert damaged.path in failure.error
    assert len(stored_below(storage)) == 2, "no staged file is left"


def test_a_damaged_part_is_not_combined(storage: Storage) -> None:
    rows = numbered_rows(1_000)
    task = build_task(storage, write_base_file(storage, rows), rows.schema)
    first, second = Schedule([task], slots=2).tasks
    run_task(first)
    (packed,) = [f for f in storage.files(".hoodie/.index") if f.path.endswith(".pack")]
    content = bytearray(storage.read(packed.path))
    content[len(content) // 2] ^= 1
    storage.replace(packed.path, bytes(content))

    combined = run_task(second)

    assert combined.status is TaskStatus.FAILED
    assert combined.error is not None
    assert f"{packed.path} is damaged" in combined.error


class Gated(Storage):
    """Stores nothing until the gate opens, and then only the first upload."""

    def __init__(self, uri: Path) -> None:
        super().__init__(uri)
        self.first, self.gate = Lock(), Event()

    def upload(self, path: str, source: bytes | Path) -> None:
        is_first = self.first.acquire(blocking=False)
        assert self.gate.wait(60)
        if not is_first:
            raise StorageFailed("No space left on device.")
        super().upload(path, source)


def test_an_abandoned_build_removes_files_staged_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Gated(tmp_path)
    staged: list[str] = []
    discard = Staging.discard

    def recording_discard(self: Staging) -> None:
        staged.extend(name for name in stored_below(storage) if name.endswith(".part.json"))
        discard(self)

    monkeypatch.setattr(Staging, "discard", recording_discard)
    rows = numbered_rows(1_000)
    task = build_task(storage, write_base_file(storage, rows), rows.schema)
    monkeypatch.setattr(LocalExecutor, "patience", 0.001)
    running = LocalExecutor(2).run([task])
    assert next(running) is None
    storage.gate.set()
    running.close()
    assert len(staged) == 1
    assert stored_below(storage) == []


def test_a_base_file_begun_before_the_deadline_is_finished_after_it(storage: Storage) -> None:
    rows = numbered_rows(1_000)
    task = build_task(storage, write_base_file(storage, rows), rows.schema, deadline=1e12)
    first, second = Schedule([task], slots=2).tasks

    assert run_task(first).status is TaskStatus.STAGED
    assert run_task(replace(second, deadline=0.0)).status is TaskStatus.BUILT
    another_build = replace(first, build_id="000008", deadline=0.0)
    assert run_task(another_build).status is TaskStatus.LEFT


def test_base_files_changed_by_other_builders_are_rebuilt_in_one_part() -> None:
    storage = Storage("memory://anew")
    rows = numbered_rows(10)
    files = [
        BaseFile(f"{n}.parquet", "", n, "20260101000000000", s) for n, s in (("a", 10), ("b", 4))
    ]
    tasks = [build_task(storage, each, rows.schema, deadline=0.0) for each in files]
    schedule = Schedule(tasks, slots=2)
    for position, each in enumerate(schedule.tasks):
        path = each.due.base_file.path
        assert schedule.ended(position, TaskOutcome(path, "lucene", TaskStatus.STAGED)) is None

    left = schedule.undecided().tasks

    assert [task.part.of for task in left] == [1, 1]
    assert [task.deadline for task in left] == [None, None], "they began in time"


def test_tasks_with_a_deadline_begin_in_the_given_order() -> None:
    storage = Storage("memory://order")
    rows = numbered_rows(10)
    files = [write_base_file(storage, rows, name) for name in ("new", "old")]
    larger = replace(files[1], size=files[0].size * 50)
    tasks = [build_task(storage, each, rows.schema) for each in (files[0], larger)]

    ids = [task.due.base_file.file_id for task in Schedule(tasks, slots=2).tasks]
    assert ids == ["old", "old", "new"]
    in_time = [replace(task, deadline=1e12) for task in tasks]
    ids = [task.due.base_file.file_id for task in Schedule(in_time, slots=2).tasks]
    assert ids == ["new", "old", "old"]


def test_tasks_share_idle_slots_and_the_memory_of_a_process() -> None:
    storage = Storage("memory://sharing")
    rows = numbered_rows(10)
    base_file = BaseFile("f1.parquet", "", "f1", "20260101000000000", 1000)
    task = build_task(storage, base_file, rows.schema, memory_mb=384, part_bytes=2000)

    def limits_of(count: int, slots: int, processes: int | None = None) -> set[tuple[int, int]]:
        schedule = Schedule([task] * count, slots=slots, processes=processes)
        return {(each.threads, each.memory_mb) for each in schedule.tasks}

    assert limits_of(1, slots=8) == {(8, 384)}
    assert limits_of(3, slots=8) == {(2, 384)}
    assert limits_of(9, slots=8) == {(1, 384)}
    assert limits_of(1, slots=2, processes=1) == {(2, 384)}
    assert limits_of(5, slots=2, processes=1) == {(1, 192)}


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (["staged", "built"], "built"),
        (["built", "present"], "built"),
        (["staged", "failed"], "failed"),
        (["staged", "present"], "present"),
        (["gone", "staged"], "gone"),
        (["left", "staged"], "left"),
        (["unwanted", "staged"], "unwanted"),
        (["staged", "staged"], None),
    ],
)
def test_the_outcome_of_a_base_file_follows_from_its_parts(
    parts: list[str], whole: str | None
) -> None:
    storage = Storage("memory://ends")
    rows = numbered_rows(10)
    base_file = BaseFile("f1.parquet", "", "f1", "20260101000000000", 1000)
    schedule = Schedule([build_task(storage, base_file, rows.schema)], slots=2)
    found = [
        schedule.ended(position, TaskOutcome(base_file.path, "lucene", TaskStatus(part)))
        for position, part in enumerate(parts)
    ]
    assert found[0] is None, "undecided until all parts have ended"
    assert (found[1].status.value if found[1] else None) == whole
    assert len(schedule.undecided().tasks) == (whole is None)
