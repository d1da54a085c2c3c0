"""Problems that `verify` finds in entries, and their repair."""

import json
import shutil
from pathlib import Path

import hudi_index_parquet
import pyarrow.parquet as pq
import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.config import Settings
from hudi_index_service.errors import BuildInProgress, ConfigInvalid
from hudi_index_service.index.files.local_copy import packed_index
from hudi_index_service.index.metadata.build_records import BuildRecords
from hudi_index_service.index.metadata.entry import Entry
from hudi_index_service.index.metadata.manifest import PARQUET_METADATA
from hudi_index_service.index.metadata.segments.segment import Facts, merged
from hudi_index_service.index.metadata.segments.store import SegmentStore
from hudi_index_service.index.packed_file import read_member
from hudi_index_service.maintain.row_sample import sampled_positions
from hudi_index_service.storage.store import Storage
from tests.programs import Command
from tests.verify.conftest import ROWS, Forge, files, put_manifest, rewrite, serving

WHERE = "id = '7' or (msg = 'Buying car 3' and amount > 100)"


def reasons(table: IndexedTable) -> list[str]:
    return [problem.reason for problem in table.verify().problems]


def assert_repaired(table: IndexedTable, damaged: Entry) -> None:
    """Repairs: the entry is then new, sound, and alone in its folder."""
    expected = sorted(table.scan(WHERE, use_index="never").to_arrow()["id"].to_pylist())
    found = table.verify(repair=True)

    assert found.problems
    assert found.unrepaired == ()
    entry = serving(table)
    assert entry.manifest.generation == damaged.manifest.generation + 1
    assert entry.manifest.columns == damaged.manifest.columns
    assert files(table, entry) == [entry.manifest.data.name, "manifest-0002.json"]
    assert entry.manifest.build.id == table.builds()[0].id
    assert table.verify().problems == ()
    fresh = open_table(table.uri)
    rows = fresh.scan(WHERE, use_index="require").to_arrow()["id"].to_pylist()
    assert sorted(rows) == expected
    assert len(rows) > 1


def test_sound_entries_have_no_problems(table: IndexedTable) -> None:
    found = table.verify(sample=40)
    assert (found.entries, found.rows, found.problems, found.skipped) == (2, 80, (), ())
    assert table.verify(sample=10_000).rows == 2 * ROWS
    assert table.verify(sample=0).rows == 0
    with pytest.raises(ConfigInvalid, match="sample=-1"):
        table.verify(sample=-1)


def test_base_files_without_an_entry_are_not_a_problem(table: IndexedTable, entry: Entry) -> None:
    shutil.rmtree(Path(table.uri, entry.folder))
    assert (table.verify().entries, table.verify().problems) == (1, ())
    Path(table.uri, entry.folder).mkdir()
    Path(table.uri, entry.folder, "data-000009-abc.pack").write_bytes(b"about to be published")
    assert table.verify().problems == ()


def test_a_table_without_index(table: IndexedTable) -> None:
    table.drop_index("all")
    assert table.verify(repair=True).entries == 0


def test_a_flipped_bit_is_repaired(table: IndexedTable, entry: Entry) -> None:
    path = Path(table.uri, entry.data_path)
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    rewrite(path, bytes(content))

    (problem,) = table.verify().problems
    assert problem.path == entry.data_path
    assert problem.base_file == entry.manifest.base_file.path
    assert problem.reason == (
        f"blocks are damaged: 0 of {-(-len(content) // 65536)}, 65536 bytes each."
    )
    assert not problem.repaired
    assert_repaired(table, entry)


def test_a_short_or_missing_data_file_is_repaired(table: IndexedTable, entry: Entry) -> None:
    path = Path(table.uri, entry.data_path)
    rewrite(path, path.read_bytes()[:-1])
    (reason,) = reasons(table)
    assert f"has {entry.manifest.data.length - 1} bytes" in reason
    path.unlink()
    assert reasons(table) == [f"{entry.data_path} is missing."]
    assert_repaired(table, entry)


def test_a_damaged_manifest_is_repaired(table: IndexedTable, entry: Entry) -> None:
    manifest = Path(table.uri, entry.folder, "manifest-0001.json")
    rewrite(manifest, manifest.read_bytes().replace(b"amount", b"tnuoma"))
    (problem,) = table.verify().problems
    assert problem.path == f"{entry.folder}/manifest-0001.json"
    assert "checksum" in problem.reason
    assert_repaired(table, entry)


def test_a_damaged_newer_manifest_is_repaired(table: IndexedTable, entry: Entry) -> None:
    above = Path(table.uri, entry.folder, "manifest-0002.json")
    above.write_bytes(b"{")
    (problem,) = table.verify().problems
    assert problem.path == f"{entry.folder}/manifest-0002.json"
    assert problem.reason == "it is damaged; generation 1 serves."

    assert table.verify(repair=True).unrepaired == ()
    assert files(table, entry) == [serving(table).manifest.data.name, "manifest-0003.json"]


def test_an_entry_of_another_footer_is_repaired(table: IndexedTable, entry: Entry) -> None:
    other = entry.manifest.base_file.model_copy(update={"footer_sha256": "0" * 64})
    put_manifest(table, entry, entry.manifest.model_copy(update={"base_file": other}))
    (reason,) = reasons(table)
    assert reason == f"the footer of {other.path} is not the one it was built from."
    assert_repaired(table, entry)


def test_damage_with_matching_checksums_is_repaired(
    table: IndexedTable, entry: Entry, members: dict[str, bytes], forge: Forge
) -> None:
    """As by faulty memory while the entry was packed: Lucene has its own checksums."""
    name = max(
        (name for name in members if not name.startswith("parquet-")),
        key=lambda name: len(members[name]),
    )
    content = bytearray(members[name])
    content[len(content) // 2] ^= 1
    forge({**members, name: bytes(content)})

    (reason,) = reasons(table)
    assert reason.startswith(("Lucene's CheckIndex finds 1 of 1 segments bad", "Lucene cannot"))
    assert_repaired(table, entry)


def test_an_index_of_other_rows_is_repaired(
    table: IndexedTable, entry: Entry, members: dict[str, bytes], forge: Forge, tmp_path: Path
) -> None:
    """It is sound to Lucene; only comparing the rows shows the problem."""
    forge({**index_of_reversed_rows(table, entry, tmp_path), **parquet_members(members)})

    (first, *others) = reasons(table)
    assert first == "column amount: row 0 is not indexed under its value."
    assert len(others) == 5, "every column but flag, which is the same in all rows"
    found = table.verify(sample=0)
    assert (found.problems, found.rows) == ((), 0), "no row was compared"
    assert_repaired(table, entry)


def test_statistics_of_other_rows_are_removed(
    table: IndexedTable, entry: Entry, members: dict[str, bytes], forge: Forge, tmp_path: Path
) -> None:
    """A segment states the values of the entry's rows, and would exclude the base file."""
    forge({**index_of_reversed_rows(table, entry, tmp_path), **parquet_members(members)})
    base_file = entry.manifest.base_file.path
    (key,) = pq.read_table(Path(table.uri, base_file), columns=["id"])["id"][:1].to_pylist()
    state_values_of_another_file(SegmentStore(Storage(table.uri), "lucene"), base_file)
    assert open_table(table.uri).scan(f"id = '{key}'").count() == 0

    assert_repaired(table, entry)
    assert open_table(table.uri).scan(f"id = '{key}'").count() == 1


def state_values_of_another_file(store: SegmentStore, path: str) -> None:
    """Replaces all segments by one that states of a base file what is true of the other."""
    listed = store.listed()
    facts = merged([store.open(each).facts() for each in listed])
    paths = facts.files["path"].to_pylist()
    other = 1 - paths.index(path)
    store.forget(lambda _: False, lambda _: True)
    columns = {key: rows.take([other, other]) for key, rows in facts.columns.items()}
    store.add(Facts(facts.files, columns, {}))


def index_of_reversed_rows(table: IndexedTable, entry: Entry, folder: Path) -> dict[str, bytes]:
    """Lucene's files for the base file's rows in reverse order."""
    other = Path(shutil.copytree(table.uri, folder / "reversed"))
    shutil.rmtree(other / entry.folder)
    path = other / entry.manifest.base_file.path
    rows = pq.ParquetFile(path).read()
    pq.write_table(rows.take(list(range(ROWS - 1, -1, -1))), path)
    reversed_table = open_table(other)
    reversed_table.build(strategy="all").raise_for_failures()
    with packed_index(Storage(other), serving(reversed_table), Settings()) as index:
        found = {name: read_member(index, name) for name in index.members}
    return {name: found[name] for name in found if not name.startswith("parquet-")}


def parquet_members(members: dict[str, bytes]) -> dict[str, bytes]:
    return {name: members[name] for name in members if name.startswith("parquet-")}


def test_a_copy_of_another_files_footer_is_repaired(
    table: IndexedTable, entry: Entry, members: dict[str, bytes], forge: Forge
) -> None:
    """The footer is used to read the rows that the index finds."""
    second = table.hudi_table.snapshot().base_files()[1]
    path = str(Path(table.uri, second.path))
    footer = hudi_index_parquet.stripped_footer(path, size=second.size)
    forge({**members, PARQUET_METADATA: footer})

    (reason,) = reasons(table)
    assert "footer" in reason
    assert_repaired(table, entry)


def test_counts_that_differ_from_the_index_are_repaired(table: IndexedTable, entry: Entry) -> None:
    columns = tuple(
        column.model_copy(update={"null_count": 0}) if column.name == "msg" else column
        for column in entry.manifest.columns
    )
    nulls = next(c.null_count for c in entry.manifest.columns if c.name == "msg")
    put_manifest(table, entry, entry.manifest.model_copy(update={"columns": columns}))

    (reason,) = reasons(table)
    assert reason == f"column msg is NULL in {nulls} rows; the manifest says 0."
    found = table.verify(repair=True)
    assert found.unrepaired == ()
    assert serving(table).manifest.columns == entry.manifest.columns


def test_an_entry_of_a_newer_release_is_skipped(table: IndexedTable, entry: Entry) -> None:
    newer = entry.manifest.model_copy(update={"index_type_version": 99})
    put_manifest(table, entry, newer)
    found = table.verify(repair=True)
    assert (found.entries, found.problems) == (1, ())
    assert found.skipped == (entry.manifest.base_file.path,)
    assert files(table, entry) == [entry.manifest.data.name, "manifest-0001.json"]


def test_nothing_is_repaired_during_a_build(table: IndexedTable, entry: Entry) -> None:
    Path(table.uri, entry.data_path).unlink()
    running = BuildRecords(Storage(table.uri), stale_seconds=120).start({"strategy": "all"})
    with pytest.raises(BuildInProgress):
        table.verify(repair=True)
    running.finish({})
    assert_repaired(table, entry)


def test_a_repair_builds_the_current_definitions(table: IndexedTable, entry: Entry) -> None:
    table.drop_index("all")
    table.create_index("less", ["id", "amount"])
    Path(table.uri, entry.data_path).unlink()
    assert table.verify(repair=True).unrepaired == ()
    assert [column.name for column in serving(table).manifest.columns] == ["amount", "id"]


def test_verify_on_the_command_line(table: IndexedTable, entry: Entry, command: Command) -> None:
    assert command("verify", table.uri, "--sample", "7") == (
        "2 entries checked, 14 rows looked up, 0 problems, 0 repaired.\n"
    )
    Path(table.uri, entry.data_path).unlink()

    found = command("verify", table.uri, status=1)
    assert f"damaged: {entry.folder}/manifest-0001.json: {entry.data_path} is missing.\n" in found
    as_json = command("verify", table.uri, "--output", "json", status=1)
    (problem,) = json.loads(as_json)["problems"]
    assert problem == {
        "index_type": "lucene",
        "base_file": entry.manifest.base_file.path,
        "path": f"{entry.folder}/manifest-0001.json",
        "reason": f"{entry.data_path} is missing.",
        "repaired": False,
    }
    repaired = command("verify", table.uri, "--repair", "--output", "json")
    assert [each["repaired"] for each in json.loads(repaired)["problems"]] == [True]
    command("verify", table.uri)


@pytest.mark.parametrize(("rows", "size"), [(0, 5), (1, 5), (5, 5), (6, 5), (1000, 1), (1000, 20)])
def test_sampled_rows_are_repeatable_and_span_the_file(rows: int, size: int) -> None:
    positions = sampled_positions(rows, size)
    assert positions == sorted(set(positions)) == sampled_positions(rows, size)
    assert len(positions) == min(rows, size)
    assert all(0 <= position < rows for position in positions)
    if size > 3 and rows > size:
        assert (positions[0], positions[-1]) == (0, rows - 1)
