"""Many callbacks at once: each is answered, and one build serves all that waited."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from hudi_index_service.config import HookSettings
from hudi_index_service.hook.allowed_tables import AllowedTables
from hudi_index_service.hook.listener import CallbackListener
from hudi_index_service.hook.worker import Worker
from tests.hook.callbacks import SECRET, BlockedBuild, callback_of, post

BURST = 200


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_a_burst_for_one_table_causes_two_builds(closing: ExitStack, tmp_path: Path) -> None:
    build = BlockedBuild()
    worker = Worker(build, queue=1)
    worker.start()
    listener = CallbackListener(worker, AllowedTables([tmp_path]), SECRET, HookSettings())
    listener.start()
    closing.callback(listener.close)
    assert post(listener, callback_of(tmp_path))[0] == 202
    assert build.begun.wait(30)

    with ThreadPoolExecutor(16) as writers:
        answers = list(
            writers.map(lambda _: post(listener, callback_of(tmp_path))[0], range(BURST))
        )

    assert answers == [202] * BURST
    build.released.set()
    worker.close()
    # The one that ran, and one for all callbacks received meanwhile.
    assert build.tables == [str(tmp_path)] * 2
