"""Tables of the versions that the current Hudi still writes: due base files and answers at each
step. Tables written by the releases themselves are in test_tables.py."""

from pathlib import Path

import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from hudi_index_service.hudi.snapshot import ServiceKind
from hudi_index_service.optimizer.plan import Access
from tests.golden.recipes.versions import PREDICATES
from tests.golden.table import Golden, GoldenTable
from tests.indexed import indexed
from tests.same_rows import assert_same_rows

VERSIONS = ["version_6", "version_8", "version_9"]


def assert_gives_sparks_rows(table: IndexedTable, golden: GoldenTable, step: str) -> None:
    assert_same_rows(table.scan().to_arrow(), golden.rows(step))
    for where in PREDICATES:
        for use_index in ("auto", "never"):
            scan = table.scan(where, use_index=use_index)  # type: ignore[arg-type]
            assert_same_rows(scan.to_arrow(), golden.answer(where, step))


@pytest.mark.parametrize("name", VERSIONS)
def test_compacted_base_files_are_built_and_used(name: str, golden: Golden, tmp_path: Path) -> None:
    hudi, path = golden(name), tmp_path / "table"
    settings = Settings(cache_folder=tmp_path / "cache")
    hudi.put(path, "written")
    version = name.removeprefix("version_")
    properties = (path / ".hoodie/hoodie.properties").read_text()
    assert f"hoodie.table.version={version}\n" in properties
    table = open_table(path, settings=settings)
    table.create_index("all", ["id", "msg", "amount", "ts"])
    for step in hudi.steps:
        hudi.put(path, step)
        assert_gives_sparks_rows(table, hudi, step)
        build = table.build().raise_for_failures()
        compacted = {
            each.requested
            for each in table.hudi_table.completed_instants()
            if table.hudi_table.service_kind(each) is ServiceKind.COMPACTION
        }
        assert len(build.built) == (1 if step == "compacted" else 0), step
        assert {each.base_file.instant for each in build.due} <= compacted
        assert_gives_sparks_rows(table, hudi, step)
    plan = table.scan(PREDICATES[0]).explain().plan
    assert plan.count(Access.LOGS) == 1


@pytest.mark.parametrize("name", VERSIONS)
def test_earlier_steps_are_read_as_of_their_instant(
    name: str, golden: Golden, tmp_path: Path
) -> None:
    hudi, path = golden(name), tmp_path / "table"
    latest = {}
    for step in hudi.steps:
        table = open_table(hudi.put(path, step))
        latest[step] = table.hudi_table.completed_instants()[-1].requested
    indexed(table, ["amount", "msg"], name="all")
    assert len(set(latest.values())) == len(hudi.steps)
    for step, instant in latest.items():
        assert_same_rows(table.scan(as_of=instant).to_arrow(), hudi.rows(step))
        for where in PREDICATES:
            found = table.scan(where, as_of=instant).to_arrow()
            assert_same_rows(found, hudi.answer(where, step))
