"""What operators asked for outlives the service, and its file may be damaged, or impossible."""

import json
import os
from datetime import UTC, datetime, timedelta
from errno import ENOSPC

from hudi_index_service.fleet import ledger as ledgers
from hudi_index_service.fleet.builds.messages import Ended
from hudi_index_service.fleet.ledger import Ledger, Request
from hudi_index_service.fleet.observation import Refusal

NOW = datetime.now(UTC)


def request(name: str, *, at: datetime = NOW, trigger: str = "request", key: str = "") -> Request:
    return Request(name, "/a", "build", trigger, at, "all", key=key, requested_by="anna")


def test_what_is_known_outlives_the_service(tmp_path):
    ledger = Ledger(tmp_path)
    for name in ("waits", "ended", "failed"):
        ledger.add(request(name, key=name))
    ledger.add(request("by itself", trigger="poll"))
    ended = request("ended").ended(NOW, NOW, Ended("ended", "finished"))
    failed = request("failed").ended(
        NOW, NOW, Ended("failed", "failed", Refusal("CODE", "what", "remedy"))
    )
    ledger.end("/a", ended)
    ledger.end("/a", failed)
    ledger.settle("/a", "incremental 1")
    ledger.verify("/a", NOW, 3)
    ledger.mute("/a", "coverage", NOW + timedelta(days=1))
    for _ in range(2):  # as written, and as written anew
        ledger.close()
        ledger = Ledger(tmp_path)

        assert [each.id for each in ledger.waiting()] == ["waits"]
        assert ledger.with_key("/a", "build", "ended").id == "ended"
        assert ledger.with_key("/a", "clean", "ended") is None
        assert ledger.end_of("failed") == failed
        assert list(ledger.table("/a").builds) == [failed, ended]
        known = ledger.table("/a")
        assert (known.settled, known.verified, known.damaged) == ("incremental 1", NOW, 3)
        assert known.mutes == {"coverage": NOW + timedelta(days=1)}


def test_two_services_have_their_own_files(tmp_path):
    first, second = Ledger(tmp_path), Ledger(tmp_path)
    first.settle("/a", "1")
    assert second.table("/a").settled == ""
    first.close()
    assert Ledger(tmp_path).table("/a").settled == "1"


def test_what_is_past_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(ledgers, "MAX_ENDED", 3)
    ledger = Ledger(tmp_path)
    ledger.add(request("old", at=NOW - timedelta(days=8)))
    for number in range(50):
        each = request(str(number), key=str(number))
        ledger.add(each)
        ledger.end("/a", each.ended(NOW, NOW, Ended(each.id, "finished")))
    assert ledger.find("46") is None
    assert ledger.with_key("/a", "build", "46") is None
    assert ledger.with_key("/a", "build", "47").id == "47"
    ledger.close()
    ledger = Ledger(tmp_path)
    assert ledger.waiting() == []
    assert len(ledger.table("/a").builds) == 10
    ledger.close()
    (file,) = tmp_path.glob("*.jsonl")
    assert len(file.read_bytes().splitlines()) < 25


def test_file_does_not_grow_for_ever(tmp_path):
    ledger = Ledger(tmp_path)
    for number in range(2_500):
        ledger.settle("/a", str(number))
    (file,) = tmp_path.glob("*.jsonl")
    lines = file.read_bytes().splitlines()
    assert len(lines) < 1_200
    assert json.loads(lines[-1])["version"] == "2499"
    assert file.stat().st_mode & 0o077 == 0


def test_torn_and_strange_lines_of_the_file_are_left_out(tmp_path, caplog):
    ledger = Ledger(tmp_path)
    ledger.settle("/a", "1")
    ledger.close()
    (file,) = tmp_path.glob("*.jsonl")
    file.write_bytes(file.read_bytes() + b'{"kind": "settled"}\n[]\n{"kind": "set')
    ledger = Ledger(tmp_path)
    assert ledger.table("/a").settled == "1"
    assert caplog.text.count("cannot be read") == 3
    ledger.close()


def test_folder_that_cannot_be_made_is_said_once_and_made_later(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(ledgers, "SECONDS_UNTIL_MENDED", 0)
    folder = tmp_path / "state"
    folder.write_text("no folder")
    ledger = Ledger(folder)
    ledger.settle("/a", "1")
    ledger.settle("/a", "2")
    ledger.mend()
    assert caplog.text.count("kept in memory alone") == 1
    assert ledger.table("/a").settled == "2"
    folder.unlink()
    ledger.mend()
    assert ledger.problem is None
    ledger.close()
    assert Ledger(folder).table("/a").settled == "2"


def test_what_a_full_disk_does_not_take_is_written_once_it_does(tmp_path, caplog, monkeypatch):
    ledger = Ledger(tmp_path)
    ledger.add(request("before"))
    writes = os.write

    def half(descriptor, data):
        if len(data) > 10:
            return writes(descriptor, data[:10])
        raise OSError(ENOSPC, os.strerror(ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(os, "write", half)
        for number in range(3):
            ledger.add(request(str(number)))
        ledger.mute("/a", "lag", NOW + timedelta(days=3))
    assert ledger.problem.code == "STORAGE_FAILED"
    assert "No space left" in ledger.problem.message
    assert os.fspath(tmp_path) in ledger.problem.message
    assert caplog.text.count("kept in memory alone") == 1
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".new"] == []

    ledger.mend()  # too early: a full disk is not asked all the time
    assert ledger.problem is not None
    monkeypatch.setattr(ledgers, "SECONDS_UNTIL_MENDED", 0)
    ledger.mend()
    assert ledger.problem is None
    ledger.close()

    after = Ledger(tmp_path)
    assert [each.id for each in after.waiting()] == ["before", "0", "1", "2"]
    assert after.table("/a").mutes == {"lag": NOW + timedelta(days=3)}
    assert "cannot be read" not in caplog.text
    after.close()
