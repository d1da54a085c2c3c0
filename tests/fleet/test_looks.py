"""Looks are cheap, spread over time, and need neither Spark nor a JVM."""

import shutil
from collections import Counter
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from hudi_index_service.config import Settings
from hudi_index_service.errors import StorageFailed, TableNotFound
from hudi_index_service.fleet.looks import Looker
from hudi_index_service.fleet.policies.policy import DesiredIndex, TablePolicy
from hudi_index_service.fleet.polls import Polls, share_of
from hudi_index_service.index.metadata.definitions import Column
from hudi_index_service.storage.store import Storage
from tests.programs import awaited, lines_of

WANTED = (DesiredIndex("by_msg", (Column(name="msg"),)),)


def look(looker: Looker, path: Path, known: str, **options: str) -> Any:
    policy = TablePolicy("t", str(path), definitions=WANTED, storage=options)
    return looker.look(policy, Settings(), known)


@pytest.fixture
def requests(monkeypatch):
    """Counts the requests to stores."""
    made: Counter[str] = Counter()
    names = ("files", "files_in", "files_outside", "names_in", "folders", "linked_folders")
    for name in (*names, "read", "read_ranges", "status", "size", "root_exists"):
        method = getattr(Storage, name)

        def counted(*args: Any, _method: Any = method, _name: str = name, **options: Any) -> Any:
            made[_name] += 1
            return _method(*args, **options)

        monkeypatch.setattr(Storage, name, counted)
    return made


def test_look_at_an_unchanged_table_takes_two_requests(two_states, requests):
    looker, path = Looker(), two_states["written"]
    first = look(looker, path, "")
    assert first.differences.drift == ("by_msg",)
    assert first.status.indexes[0].base_files == 1
    requests.clear()

    second = look(looker, path, first.version)

    assert (second.version, second.status) == (first.version, None)
    assert requests
    assert requests.total() <= 2
    looker.close()


def test_look_after_a_commit_has_a_status(two_states, tmp_path, golden):
    path = shutil.copytree(two_states["written"], tmp_path / "table")
    looker = Looker()
    before = look(looker, path, "")
    golden("messages_of_users").put(path, "clustered")
    after = look(looker, path, before.version)
    assert after.version != before.version
    assert [each.due for each in after.status] == [1]
    assert look(looker, path, after.version, some="option").status is None  # opened again


def test_table_that_went_is_found_again(two_states, tmp_path):
    path = shutil.copytree(two_states["written"], tmp_path / "table")
    looker = Looker()
    known = look(looker, path, "").version
    path.rename(tmp_path / "away")
    with pytest.raises(StorageFailed):
        look(looker, path, known)
    with pytest.raises(TableNotFound):  # it is opened again
        look(looker, path, known)
    (tmp_path / "away").rename(path)
    assert look(looker, path, known).version == known


PROGRAM = """
import sys
from hudi_index_service.config import Settings
from hudi_index_service.fleet.supervisor import Supervisor
from hudi_index_service.fleet.looks import Looker
from hudi_index_service.fleet.policies.policy import TablePolicy
look = Looker().look(TablePolicy("t", sys.argv[1]), Settings())
assert look.status
print(sorted({"pyspark", "py4j"} & set(sys.modules)))
print("libjvm" in open("/proc/self/maps").read())
"""


def test_service_needs_neither_spark_nor_a_jvm(two_states):
    modules, is_jvm = lines_of(PROGRAM, two_states["clustered"])
    assert (modules, is_jvm) == ("[]", "False")


def test_each_table_is_looked_at_again_and_again():
    looks: Counter[str] = Counter()

    def count(name: str) -> None:
        looks[name] += 1
        if name == "wrong":
            raise ZeroDivisionError

    polls = Polls(count, threads=2)
    polls.keep({"a": 0.01, "b": 0.01, "wrong": 0.01, "rare": 3600})
    polls.start()
    assert awaited(lambda: min(looks[name] for name in ("a", "b", "wrong")) > 3, 30)
    assert looks["rare"] == 1

    polls.soon("rare")
    assert awaited(lambda: looks["rare"] == 2, 30)
    polls.keep({"b": 0.01})
    polls.soon("a")
    before = looks["b"]
    assert awaited(lambda: looks["b"] > before + 3, 30)
    polls.close()


def test_table_is_looked_at_once_at_a_time_and_not_lost_meanwhile():
    begun, go_on, looks = Event(), Event(), []

    def slow(name: str) -> None:
        looks.append(name)
        begun.set()
        assert go_on.wait(30)

    polls = Polls(slow, threads=4)
    polls.keep({"a": 3600})
    polls.start()
    assert begun.wait(30)
    polls.soon("a")
    polls.soon("a")
    assert looks == ["a"]
    go_on.set()
    assert awaited(lambda: looks == ["a", "a"], 30)
    polls.close()


def test_store_that_does_not_answer_delays_no_other():
    answers = Event()
    looks: Counter[str] = Counter()

    def look(uri: str) -> None:
        looks[uri] += 1
        if uri.startswith("s3://dead/"):
            assert answers.wait(30)

    dead = [f"s3://dead/{number}" for number in range(8)]
    polls = Polls(look, threads=4)
    polls.keep(dict.fromkeys(dead, 3600) | {"s3://well/a": 0.01, "/local/a": 0.01})
    polls.start()
    assert awaited(lambda: min(looks["s3://well/a"], looks["/local/a"]) > 3, 30)
    assert sum(looks[uri] for uri in dead) <= 2
    answers.set()
    assert awaited(lambda: all(looks[uri] for uri in dead), 30)
    polls.close()


def test_looks_are_spread():
    shares = sorted(share_of(f"table {number}") for number in range(1000))
    assert all(abs(share - number / 1000) < 0.05 for number, share in enumerate(shares))
