"""One thread at a time runs short queries on a table; other queries run beside each other."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.read import execution
from hudi_index_service.read.recording import QueryTaken, listen, stop_listening
from hudi_index_service.read.scan import Scan
from hudi_index_service.read.turn import Turn
from tests.indexed import GoldenIndex


@pytest.fixture(scope="module")
def table(golden_index: GoldenIndex) -> Iterator[IndexedTable]:
    """30,000 rows, whose entry is open: 300 of each kind, one of each name."""
    with open_table(golden_index("runs_in_row_groups", ["name", "kind", "number"])) as opened:
        opened.scan("name = 'name77'").count()
        yield opened


def is_free(turn: Turn) -> bool:
    """Whether another thread can have the turn now."""
    taken = []

    def take() -> None:
        with turn:
            taken.append(True)

    other = Thread(target=take, daemon=True)
    other.start()
    other.join(0.2)
    return bool(taken)


def test_one_thread_has_the_turn_until_its_outer_block_ends():
    turn = Turn(is_needed=True)
    with turn:
        with turn:
            assert not is_free(turn)
        assert not is_free(turn)
    assert is_free(turn)
    with turn:
        turn.end()
        assert is_free(turn)
    assert is_free(turn)


def test_another_thread_does_not_end_it():
    turn = Turn(is_needed=True)
    with turn, ThreadPoolExecutor(1) as other:
        other.submit(turn.end).result()
        assert not is_free(turn)


def test_without_need_all_threads_have_it():
    turn = Turn(is_needed=False)
    with turn:
        assert is_free(turn)
        turn.end()


def test_it_is_given_away_where_a_query_fails():
    turn = Turn(is_needed=True)
    with pytest.raises(LookupError), turn:
        raise LookupError
    assert is_free(turn)


def test_a_fork_does_not_wait_for_its_parents_threads():
    turn = Turn(is_needed=True)
    with turn:
        child = os.fork()
        if not child:
            os._exit(0 if is_free(turn) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    ("where", "run", "is_short"),
    [
        ("name = 'name77'", Scan.to_arrow, True),
        ("name = 'name77' AND number > 5", Scan.count, True),
        ("name IN ('name77', 'name78')", Scan.exists, True),
        ("kind = 'kind7'", Scan.to_arrow, True),
        ("number > 500", Scan.to_arrow, False),
        ("number > 500 AND text LIKE 'a%'", Scan.count, False),
        ("name LIKE '%77%'", Scan.to_arrow, False),
        (None, Scan.to_arrow, False),
    ],
)
def test_short_queries_keep_the_turn_while_they_run(
    table: IndexedTable, where: str | None, run: Callable[[Scan], object], is_short: bool
):
    assert lets_others_run(table, where, run) is not is_short


def test_more_rows_than_expected_end_the_turn(table: IndexedTable, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(execution, "MOST_IN_TURN", 299)
    assert lets_others_run(table, "kind = 'kind7'", Scan.to_arrow)


def lets_others_run(table: IndexedTable, where: str | None, run: Callable[[Scan], object]) -> bool:
    """Whether another thread can query the table before a query has ended."""
    finished = []

    def query_meanwhile(_: QueryTaken) -> None:
        stop_listening(query_meanwhile)
        other = Thread(target=table.scan("name = 'name1'").count)
        other.start()
        other.join(0.3)
        finished.append(not other.is_alive())
        others.append(other)

    others = list[Thread]()
    listen(query_meanwhile)
    run(table.scan(where, columns=["id"]))
    for other in others:
        other.join()
    return finished == [True]
