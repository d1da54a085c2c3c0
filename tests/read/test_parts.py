"""How Spark tasks share slices: as Spark's own tasks share files."""

from itertools import pairwise
from math import inf

import pytest

from hudi_index_service.read.spark.parts import FileSplits, Part, RowGroup, Weight, shared

MIB = 2**20
SPARKS = FileSplits(most_bytes=128 * MIB, open_bytes=4 * MIB, fewest_tasks=2)


def sliced(*mib: float, most_tasks: float = inf) -> Weight:
    """A slice with row groups of 100 rows and so many MiB."""
    groups = [RowGroup(100, each * MIB) for each in mib]
    return Weight(100 * len(mib), None, groups, most_tasks)


def rows_of(tasks: list[list[Part]]) -> list[list[tuple[int, range | None]]]:
    numbers = [part.number for parts in tasks for part in parts]
    assert numbers == list(range(len(numbers)))
    return [[(each.slice_number, each.rows) for each in parts] for parts in tasks]


def test_a_large_base_file_is_shared_by_row_groups():
    tasks = shared([sliced(*[120] * 16)], SPARKS)

    assert len(tasks) == 15, "one split has the middles of two row groups"
    rows = sorted((part.rows for [part] in tasks if part.rows), key=lambda each: each.start)
    assert rows[0].start == 0
    assert rows[-1].stop == 1_600
    assert all(one.stop == other.start for one, other in pairwise(rows))


def test_a_smaller_one_is_shared_by_as_many_tasks_as_run_at_once():
    assert rows_of(shared([sliced(10, 10, 10, 10)], SPARKS)) == [
        [(0, range(200))],
        [(0, range(200, 400))],
    ]
    four = FileSplits(128 * MIB, 4 * MIB, fewest_tasks=4)
    assert len(shared([sliced(10, 10, 10, 10)], four)) == 4


def test_row_groups_with_nothing_to_read_go_to_a_neighbor():
    assert rows_of(shared([sliced(0, 0, 30, 0, 30, 0)], SPARKS)) == [
        [(0, range(400))],
        [(0, range(400, 600))],
    ]


def test_small_slices_are_read_by_one_task():
    tasks = shared([sliced(0.01) for _ in range(100)], SPARKS)

    assert [len(each) for each in tasks] == [32, 32, 32, 4], "128 MiB, 4 for opening each"
    assert sorted(part.slice_number for parts in tasks for part in parts) == list(range(100))
    assert rows_of(shared([sliced(0.01), sliced(0.01)], SPARKS)) == [
        [(0, None)],
        [(1, None)],
    ]


def test_large_slices_come_first():
    tasks = shared([sliced(1), sliced(60, 60), sliced(100)], SPARKS)

    assert rows_of(tasks) == [[(1, None)], [(2, None), (0, None)]]


@pytest.mark.parametrize(("most_tasks", "tasks"), [(1, 1), (2, 2), (3, 3)])
def test_no_more_tasks_share_a_slice_than_pay(most_tasks, tasks):
    assert len(shared([sliced(*[120] * 6, most_tasks=most_tasks)], SPARKS)) == tasks


def test_settings_of_a_session_without_costs_or_bytes():
    nothing = FileSplits(most_bytes=1, open_bytes=0, fewest_tasks=1)

    assert rows_of(shared([sliced(0), sliced(0, 0)], nothing)) == [[(0, None), (1, None)]]
    assert shared([], nothing) == []
