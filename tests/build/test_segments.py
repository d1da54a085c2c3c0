"""Builds write segments; they are used, merged, forgotten and done without."""

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.build.entry.planning_facts import FactWriter
from hudi_index_service.errors import StorageFailed
from hudi_index_service.index.metadata.manifest import entry_folder_at
from hudi_index_service.index.metadata.segments.segment import Facts
from hudi_index_service.index.metadata.segments.segment_file import SegmentFile
from hudi_index_service.index.metadata.segments.store import SEGMENTS_FOLDER, SegmentStore
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.storage.store import Storage
from tests.golden.table import Golden
from tests.indexed import indexed
from tests.same_rows import assert_same_rows

WHERES = [
    "amount = 77",
    "amount IN (5, 105, 1000)",
    "amount BETWEEN 70 AND 72",
    "id = '77' OR amount = 5",
    "NOT amount < 190",
    "msg LIKE 'Buying%' AND amount = 100",
]


@dataclass(frozen=True)
class Built:
    """A hundred base files with an index.

    Attributes:
        path: The table's.
        written: The number of base files in each segment that the build wrote.
    """

    path: Path
    written: list[int]


@pytest.fixture(scope="module")
def built(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Built:
    path = golden("hundred_base_files").put(tmp_path_factory.mktemp("built"))
    written = []
    add = SegmentStore.add

    def recorded(self: SegmentStore, facts: Facts, replaces: Iterable[str] = ()) -> str | None:
        written.append(facts.count)
        return add(self, facts, replaces)

    with patch.object(SegmentStore, "add", recorded):
        indexed(path, ["id", "amount", "msg"]).close()
    return Built(path, written)


@pytest.fixture
def path(built: Built, tmp_path: Path) -> Path:
    """A copy of the table for one test."""
    return Path(shutil.copytree(built.path, tmp_path / "table"))


def segments(path: Path) -> list[SegmentFile]:
    store = SegmentStore(Storage(path), "lucene")
    return [store.open(each) for each in store.listed()]


def stated(path: Path) -> list[str]:
    """The base files that segments state facts of."""
    return sorted(name for each in segments(path) for name in each.files["path"].to_pylist())


def base_files(table: IndexedTable) -> list[str]:
    return sorted(each.path for each in table.hudi_table.snapshot().base_files())


def test_a_build_leaves_one_segment_of_all_base_files(path: Path) -> None:
    (segment,) = segments(path)
    with open_table(path) as table:
        assert stated(path) == base_files(table)
    assert {name for name, _ in segment.columns} == {"id", "amount", "msg"}


def test_later_builds_add_to_it(golden: Golden, tmp_path: Path) -> None:
    path = golden("hundred_base_files").put(tmp_path / "table")
    with open_table(path) as table:
        table.create_index("i", ["id"])
        some, built = list(table.partitions())[:40], []
        for number in range(5):
            build = table.build(strategy="all", partitions=some[number::5]).raise_for_failures()
            built += [each.path for each in build.built]
        assert stated(path) == sorted(built)
    assert (len(built), len(segments(path))) in {(40, 1), (40, 2)}


def test_a_build_states_what_is_known_of_older_entries(path: Path) -> None:
    """Those that an earlier release built, or a build that was killed."""
    for entry in sorted({each.parent for each in path.rglob("manifest-*.json")})[60:]:
        shutil.rmtree(entry)
    for file in (path / SEGMENTS_FOLDER).rglob("*.segment"):
        file.unlink()
    with open_table(path) as table:
        assert table.scan("id = '7'", use_index="never").count() == 1
        assert len(table.build(strategy="all").raise_for_failures().built) == 40
        assert stated(path) == base_files(table)
        scan = table.scan("id = '7'")
        assert scan.count() == 1
        assert scan.statistics is not None
        assert scan.statistics.count(Access.SKIP) > 90


def test_facts_of_many_base_files_are_written_together(built: Built) -> None:
    assert sorted(built.written) == [4, 32, 32, 32, 100]


def test_facts_of_an_entry_that_was_removed_while_they_waited_are_not_stated(path: Path) -> None:
    store = SegmentStore(Storage(path), "lucene")
    (segment,) = segments(path)
    facts = segment.facts()
    names = facts.files["path"].to_pylist()
    Storage(path).delete([each.path for each in store.listed()])
    with FactWriter() as writer:
        for name in names[:3]:
            writer.add(Storage(path), "lucene", facts.kept(name.__eq__, facts.columns))
        folder = entry_folder_at("lucene", names[1])
        assert folder is not None
        shutil.rmtree(path / folder)
    assert stated(path) == sorted([names[0], names[2]])


def damage(file: Path) -> None:
    content = file.read_bytes()
    middle = len(content) // 2
    file.write_bytes(content[:middle] + b"damage" + content[middle + 6 :])


TREATMENTS: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "damaged": damage,
    "cut short": lambda file: file.write_bytes(file.read_bytes()[:-20]),
    "empty": lambda file: file.write_bytes(b""),
}


def test_answers_do_not_depend_on_segments(path: Path) -> None:
    with open_table(path) as table:
        expected = {where: table.scan(where, use_index="never").to_arrow() for where in WHERES}
        for where, rows in expected.items():
            assert_same_rows(table.scan(where, use_index="require").to_arrow(), rows)
    (file,) = (path / SEGMENTS_FOLDER).rglob("*.segment")
    sound = file.read_bytes()
    for treat in TREATMENTS.values():
        file.write_bytes(sound)
        treat(file)
        with open_table(path) as table:
            for where, rows in expected.items():
                assert_same_rows(table.scan(where, use_index="require").to_arrow(), rows)
                assert table.scan(where).count() == rows.num_rows


def test_a_query_reads_manifests_of_few_entries(path: Path) -> None:
    with open_table(path) as table:
        io = table.hudi_table.storage.io
        table.scan("amount = 1000000").to_arrow()
        before = io.bytes_read
        scan = table.scan("id = '77'")
        assert scan.to_arrow().num_rows == 1
        assert scan.statistics is not None
        looked_into = len(scan.statistics.slices) - scan.statistics.count(Access.SKIP)
        assert looked_into == len(scan.statistics.begun)
        assert 1 <= looked_into <= 3
        assert io.bytes_read - before < 30_000


def test_a_removed_entry_is_not_missed_though_a_segment_knows_its_base_file(path: Path) -> None:
    """Segments exclude; they do not make an entry exist."""
    with open_table(path) as table:
        scan = table.scan("id = '77'")
        assert scan.to_arrow().num_rows == 1
        assert scan.statistics is not None
        (holder,) = [each.slice_name for each in scan.statistics.slices if each.rows_returned]
        for manifest in list((path / ".hoodie/.index/lucene").rglob("manifest-*.json")):
            if holder in manifest.read_text():
                shutil.rmtree(manifest.parent)
        again = table.scan("id = '77'")
        assert again.to_arrow().num_rows == 1
        assert again.statistics is not None
        assert again.statistics.count(Access.SCAN) == 1


def test_cleaning_forgets_base_files_whose_entries_are_removed(path: Path) -> None:
    with open_table(path) as table:
        removed = base_files(table)[:30]
    for name in removed:
        (path / name).unlink()
    with open_table(path) as table:
        dry = table.clean(dry_run=True)
        assert len(dry.rewritten) == 1
        assert len(stated(path)) == 100
        assert table.clean().rewritten == dry.rewritten
    assert len(stated(path)) == 70
    assert set(stated(path)).isdisjoint(removed)


def test_entries_that_were_cleaned_do_not_stay_open(path: Path) -> None:
    with open_table(path) as table:
        scan = table.scan("id = '77'", use_index="require")
        assert scan.to_arrow().num_rows == 1
        assert scan.statistics is not None
        (holder,) = [each.slice_name for each in scan.statistics.slices if each.rows_returned]
        assert open_data_files(path)
        (path / holder).unlink()
        with open_table(path) as other:
            other.clean()
        assert table.scan("part = 'p010' AND id = 'nobody'").count() == 0
        assert open_data_files(path) == []


def open_data_files(path: Path) -> list[str]:
    """The entries' data files that this process has open."""
    links = (str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink())
    return [each for each in links if each.startswith(str(path)) and ".pack" in each]


def test_dropped_columns_leave_segments(path: Path) -> None:
    with open_table(path) as table:
        table.alter_index("i", drop=["amount"])
        table.clean()
        assert len(segments(path)[0].columns) == 3, "the grace period has begun"
        table.clean(grace_seconds=0)
        (segment,) = segments(path)
        assert {name for name, _ in segment.columns} == {"id", "msg"}
        table.drop_index("i", purge=True)
    assert segments(path) == []


def test_a_dropped_index_excludes_nothing(path: Path) -> None:
    with open_table(path) as table:
        table.create_index("other", ["msg"])
        table.drop_index("i")
        scan = table.scan("amount = 1000000")
        assert scan.to_arrow().num_rows == 0
        assert scan.statistics is not None
        assert scan.statistics.count(Access.SKIP) == 0


def test_a_base_file_of_another_length_is_not_the_one_that_a_segment_knows(path: Path) -> None:
    (segment,) = segments(path)
    facts = segment.facts()
    longer = pa.compute.add(facts.files["length"], 1)
    others = replace(facts, files=facts.files.set_column(1, "length", longer))
    store = SegmentStore(Storage(path), "lucene")
    (right,) = store.listed()
    store.add(others)
    Storage(path).delete([right.path])
    with open_table(path) as table:
        scan = table.scan("id = 'nobody'", use_index="require")
        assert scan.to_arrow().num_rows == 0
        explanation = scan.explain()
    assert "by index" in str(explanation)
    with open_table(path) as table:
        keys = [f"{number}" for number in range(0, 200, 20)]
        assert table.tag_location(keys).column("file_id").null_count == 0


def test_a_build_that_cannot_write_segments_builds_entries(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = golden("hundred_base_files").put(tmp_path / "table")
    create = Storage.create

    def refused(self: Storage, name: str, data: bytes | Path) -> None:
        if name.startswith(SEGMENTS_FOLDER):
            raise StorageFailed("the disk is full.")
        create(self, name, data)

    monkeypatch.setattr(Storage, "create", refused)
    with open_table(path) as table:
        table.create_index("i", ["id"])
        some = list(table.partitions())[:10]
        build = table.build(strategy="all", partitions=some).raise_for_failures()
        assert len(build.built) == 10
        assert segments(path) == []
        where = f"part = '{some[0]}' AND id IS NOT NULL"
        assert table.scan(where, use_index="require").count() > 0
