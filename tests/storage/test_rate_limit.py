"""The limit on the request rate, tested with a fake clock, so that no test waits."""

import pickle
from pathlib import Path
from threading import Lock

import pytest

from hudi_index_service.storage.store import Storage
from hudi_index_service.storage.waiting import RateLimit


class FakeClock:
    """Records the waits; its time changes only when a test sets it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waited: list[float] = []
        self._lock = Lock()

    def time(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        with self._lock:
            self.waited.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    monkeypatch.setattr("hudi_index_service.storage.waiting.monotonic", clock.time)
    monkeypatch.setattr("hudi_index_service.storage.waiting.sleep", clock.wait)
    return clock


def test_idle_time_does_not_allow_a_burst(clock: FakeClock) -> None:
    limit = RateLimit(4)
    limit.take()
    clock.now += 60
    limit.take()
    limit.take()
    assert clock.waited == [0.25]


def test_the_rate_may_be_below_one_per_second(clock: FakeClock) -> None:
    limit = RateLimit(0.5)
    limit.take()
    limit.take()
    assert clock.waited == [2.0]


def test_every_request_of_a_throttled_storage_is_limited(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: dict[tuple[str, float], RateLimit] = {}

    def shared(location: str, per_second: float) -> RateLimit:
        return limits.setdefault((location, per_second), RateLimit(per_second))

    monkeypatch.setattr("hudi_index_service.storage.store.shared_limit", shared)
    free = Storage(tmp_path)
    slow = free.throttled(5)
    unpickled = pickle.loads(pickle.dumps(slow))  # noqa: S301 - as Spark sends it to a task

    free.create("a/b", b"free")
    assert slow.read("a/b") == b"free"
    unpickled.files("a")
    slow.size("a/b")

    assert clock.waited == pytest.approx([0.2, 0.4])
    assert (free.io.requests, slow.io.requests, unpickled.io.requests) == (1, 2, 1)
    assert unpickled.requests_per_second == 5
    assert list(limits) == [(str(tmp_path), 5)]
    assert free.throttled(None).requests_per_second is None
