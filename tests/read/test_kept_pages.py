"""Pages of base files that stay opened between queries: how many, where, and what EXPLAIN says."""

from collections.abc import Callable, Iterator

import pytest

from hudi_index_service import open_table
from hudi_index_service.config import settings
from hudi_index_service.read.base_file import kept_pages as module
from hudi_index_service.read.base_file.kept_pages import (
    budget,
    forget_pages,
    keep_less_for_tasks,
    kept_pages,
)
from tests.forked_child import status_of_child

MIB = 2**20
VARIABLE = "HUDI_INDEX_READ__PAGE_CACHE_MB"
WHERE, COLUMNS = "amount BETWEEN 20 AND 60", ["id", "msg"]


@pytest.fixture
def configured() -> Iterator[Callable[[str | None], None]]:
    """Begins anew with another value of the setting."""
    with pytest.MonkeyPatch.context() as patch:

        def begin(value):
            if value is None:
                patch.delenv(VARIABLE, raising=False)
            else:
                patch.setenv(VARIABLE, value)
            settings.cache_clear()
            forget_pages()

        yield begin
    settings.cache_clear()
    forget_pages()


@pytest.mark.parametrize(
    ("limits", "expected"), [([], 256), ([64 * 2**30, 2**30], 64), ([8 * 2**30], 256)]
)
def test_by_default_a_sixteenth_of_the_memory_is_used(configured, monkeypatch, limits, expected):
    monkeypatch.setattr(module, "control_group_limits", lambda: iter(limits))
    configured(None)
    assert budget() == expected * MIB


def test_spark_tasks_keep_a_tenth(configured):
    configured("50")
    assert budget() == 50 * MIB
    keep_less_for_tasks()
    assert budget() == 5 * MIB


def test_a_process_has_one_cache_and_its_child_another(configured):
    configured("1")
    cache = kept_pages()
    assert cache is not None
    assert kept_pages() is cache

    def in_child():
        own = kept_pages()
        assert own is not cache
        assert own.bytes == 0

    assert status_of_child(in_child) == 0


def test_nothing_is_kept_if_it_is_switched_off(configured, golden_index):
    configured("0")
    assert kept_pages() is None
    with open_table(golden_index("hundred_base_files", ["amount"])) as table:
        for _ in range(3):
            scan = table.scan(WHERE, columns=COLUMNS, use_index="require")
            scan.to_arrow()
            assert scan.statistics.pages > scan.statistics.kept_pages == 0


def test_a_query_that_is_repeated_reads_no_page_from_files(golden_index):
    with open_table(golden_index("hundred_base_files", ["amount"])) as table:
        first = table.scan(WHERE, columns=COLUMNS, use_index="require")
        rows = first.to_arrow()
        assert first.statistics.pages > 0
        again = table.scan(WHERE, columns=COLUMNS, use_index="require")
        assert again.to_arrow() == rows
        assert again.statistics.kept_pages == again.statistics.pages == first.statistics.pages
        assert again.statistics.bytes_read == 0
        explained = table.scan(WHERE, columns=COLUMNS, use_index="require").explain(analyze=True)
        assert f"({first.statistics.pages} kept in memory)" in str(explained)
        document = explained.to_dict()
        assert document["actual"]["kept_pages"] == first.statistics.pages
        read = [each["actual"] for each in document["slices"] if "actual" in each]
        assert sum(each["kept_pages"] for each in read) == first.statistics.pages
