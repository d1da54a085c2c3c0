"""A signal, Ctrl-C for one, ends a read that the row reader is in the midst of; and so does the
check that it calls."""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_index_parquet import Footer, PageCache, stripped_footer

from hudi_index_service import Cancellation
from hudi_index_service.errors import QueryCancelled
from tests.native.test_page_cache import A_TICK

ROWS, PAGE_ROWS = 12_000_000, 20_000


class Stopped(Exception):
    """What the signal's handler raises."""


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    """A signal that comes when this process has worked for some time raises `Stopped`."""

    def stop(number: int, frame: Any) -> None:
        raise Stopped

    before = signal.signal(signal.SIGVTALRM, stop)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


@pytest.fixture(scope="module")
def footer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Footer]:
    """A file whose pages take some hundred milliseconds to decompress."""
    path = tmp_path_factory.mktemp("signals") / "f.parquet"
    numbers = np.random.default_rng(1).integers(0, 2**20, ROWS)
    pq.write_table(
        pa.table({"number": numbers}),
        path,
        compression="gzip",
        compression_level=1,
        max_rows_per_page=PAGE_ROWS,
        write_page_index=True,
        use_dictionary=False,
    )
    while time.time_ns() - path.stat().st_ctime_ns <= A_TICK:
        pass  # pages of a file that was written just now are not kept
    return path, Footer(stripped_footer(path))


@pytest.mark.parametrize("threads", [2, 1])
def test_a_read_ends_before_all_pages_are_opened(footer: tuple[Path, Footer], threads: int) -> None:
    path, of_file = footer
    pages, rows = PageCache(2**28), np.arange(0, ROWS, PAGE_ROWS // 2)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.03)
    with pytest.raises(Stopped):
        of_file.read(path, rows, ["number"], pages=pages, threads=threads)
    assert 0 < pages.bytes < ROWS * 8 * 0.9


@pytest.mark.parametrize("threads", [2, 1])
def test_a_cancelled_read_of_any_thread_ends(footer: tuple[Path, Footer], threads: int) -> None:
    path, of_file = footer
    pages, rows = PageCache(2**28), np.arange(0, ROWS, PAGE_ROWS // 2)

    def read() -> None:
        with Cancellation(seconds=0.03):
            of_file.read(path, rows, ["number"], pages=pages, threads=threads)

    with ThreadPoolExecutor(1) as thread, pytest.raises(QueryCancelled):
        thread.submit(read).result()
    assert 0 < pages.bytes < ROWS * 8 * 0.9
