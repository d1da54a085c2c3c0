"""Indexes of several types: entries of each are built, queried, dropped and cleaned separately."""

import hashlib
import json
from pathlib import Path

import pytest

from hudi_index_service import Column, IndexedTable, open_table
from hudi_index_service.build.entry.task import BuildTask, TaskStatus
from hudi_index_service.build.executor import LocalExecutor
from hudi_index_service.errors import (
    IndexDefinitionInvalid,
    IndexTypeUnknown,
)
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.storage.store import Storage
from tests.definitions.entries import columns, index_files
from tests.index.plug_in import uninstalled
from tests.indexed import indexed


def index_types_used(table: IndexedTable, where: str) -> set[str]:
    """The index types whose entries the plan may use."""
    slices = table.scan(where).explain().to_dict()["slices"]
    return {name for each in slices for name in each["index_types"]}


def test_an_index_of_two_types_has_entries_of_both(table: IndexedTable, copied: str) -> None:
    definition = table.create_index("numbers", ["amount", "ts"], using=["lucene", copied])

    build = table.build(strategy="all").raise_for_failures()

    assert definition.index_types == ("lucene", "copied")
    assert sorted(each.index_type for each in build.due) == ["copied"] * 2 + ["lucene"] * 2
    assert columns(table, "lucene") == columns(table, "copied") == [["amount", "ts"]] * 2
    assert {(s.definition.name, s.index_type, s.covered) for s in table.status()} == {
        ("numbers", "lucene", 2),
        ("numbers", "copied", 2),
    }
    assert table.build(strategy="all").due == ()


def test_an_index_type_of_another_package_answers_correctly(
    table: IndexedTable, copied: str
) -> None:
    indexed(table, ["amount", "ts"], using=copied)

    for where, rows in {
        "amount = 30": 1,
        "amount <> 30": 59,
        "amount BETWEEN 30 AND 60": 11,
        "amount IS NULL": 0,
        "ts IS NOT NULL AND amount > 150": 9,
        "amount IN (3, 6)": 2,
        "NOT (amount <= 30 OR amount >= 60)": 9,
    }.items():
        assert table.scan(where).count() == table.scan(where).to_arrow().num_rows == rows
        # Manifests show that no amount is NULL.
        assert index_types_used(table, where) == (set() if " IS NULL" in where else {copied})


def test_a_predicate_is_answered_by_a_type_that_supports_it(table: IndexedTable) -> None:
    indexed(table, ["msg"], using=["btree", "lucene"])
    assert "btree" in index_types_used(table, "msg = 'Buying car 3'")
    assert "lucene" in index_types_used(table, "msg LIKE '%car 3'")

    scan = table.scan("msg LIKE '%car 3'", use_index="require")

    assert scan.count() == 9
    assert sum(each.rows_checked for each in scan.statistics.slices) == 0, "btree cannot answer it"


def test_one_type_answers_while_the_other_is_damaged(table: IndexedTable) -> None:
    indexed(table, ["amount"], using=["lucene", "btree"])
    for data in Path(table.uri, ".hoodie/.index/lucene").rglob("*.pack"):
        data.write_bytes(bytes(data.stat().st_size))

    scan = table.scan("amount = 30")

    assert scan.count() == 1
    assert sum(each.rows_checked for each in scan.statistics.slices) == 0, "nothing was scanned"


def test_index_types_are_dropped_and_cleaned_separately(table: IndexedTable) -> None:
    table.create_index("both", ["amount"], using=["lucene", "btree"])
    table.create_index("texts", ["msg"])
    table.create_index("numbers", ["ts"], using="btree")
    table.build(strategy="all").raise_for_failures()

    table.drop_index("numbers", purge=True)
    assert columns(table, "lucene") == [["amount", "msg"]] * 2
    assert columns(table, "btree") == [["amount"]] * 2

    table.drop_index("both")
    table.clean()
    assert {path.parts[0] for path in index_files(table)} == {"lucene"}
    assert table.scan("msg = 'Buying car 3'", use_index="require").count() == 9


def test_a_prefixed_option_applies_to_one_type_only(table: IndexedTable) -> None:
    both = ["lucene", "btree"]
    plain = Column(name="msg", options={"analyzer": "standard"})
    with pytest.raises(IndexDefinitionInvalid, match=r"Index type btree: .*'analyzer'") as refused:
        table.create_index("texts", [plain, "amount"], using=both)
    assert refused.value.code == "INDEX_DEFINITION_INVALID"
    assert "'lucene.analyzer'" in refused.value.remedy
    for key, message in {
        "hbase.analyzer": "index type 'hbase', which the index does not have",
        "lucene.analyser": "Index type lucene: .*'analyser'",
        "btree.analyzer": "Index type btree: .*'analyzer'",
    }.items():
        column = Column(name="msg", options={key: "standard"})
        with pytest.raises(IndexDefinitionInvalid, match=message):
            table.create_index("texts", [column], using=both)
    assert table.indexes() == ()

    own = Column(name="msg", options={"lucene.analyzer": "standard"})
    definition = table.create_index("texts", [own, "amount"], using=both)

    table.build(strategy="all").raise_for_failures()
    assert table.scan("match(msg, 'car')", use_index="require").count() > 0
    assert columns(table, "btree") == columns(table, "lucene") == [["amount", "msg"]] * 2
    before = {name: definition.fingerprint(name) for name in both}
    changed = table.alter_index("texts", options={"msg": {"lucene.analyzer": "simple"}})
    assert changed.fingerprint("btree") == before["btree"]
    assert changed.fingerprint("lucene") != before["lucene"]
    due = table.build(strategy="refresh", dry_run=True).due
    assert {each.index_type for each in due} == {"lucene"}


def pretend_version(table: IndexedTable, version: int) -> None:
    """Gives one of the table's btree entries another version of the layout."""
    path = min(Path(table.uri, ".hoodie/.index/btree").rglob("manifest-0001.json"))
    manifest = Manifest.from_json(path.read_bytes(), source="here")
    path.write_bytes(manifest.model_copy(update={"index_type_version": version}).to_json())


@pytest.mark.parametrize("others", [[], ["lucene"]])
def test_entries_of_known_versions_are_used_beside_newer_ones(
    table: IndexedTable, others: list[str]
) -> None:
    indexed(table, ["amount"], using=["btree", *others])
    pretend_version(table, 3)

    with open_table(table.uri) as again:
        scan = again.scan("amount <> 30")
        reasons = [each["reason"] for each in scan.explain().to_dict()["slices"]]
        assert scan.count() == 59
        assert sum("newer version 3" in each for each in reasons) == (0 if others else 1)
        assert index_types_used(again, "amount <> 30") == {"btree", *others}
        assert again.build(strategy="all").due == ()


def test_entries_of_versions_that_are_no_longer_read_are_built_anew(table: IndexedTable) -> None:
    indexed(table, ["amount"], name="numbers", using="btree")
    pretend_version(table, 1)

    with open_table(table.uri) as again:
        scan = again.scan("amount <> 30")
        reasons = [each["reason"] for each in scan.explain().to_dict()["slices"]]
        assert sum("older version 1" in each for each in reasons) == 1
        assert scan.count() == 59
        assert [each.reason for each in again.verify().problems] == ["it has the older version 1."]
        assert len(again.refresh("numbers").raise_for_failures().built) == 1
        assert scan.count() == 59
        assert again.scan("amount = 30", use_index="require").count() == 1


@pytest.mark.parametrize(
    ("using", "error", "message"),
    [
        ([], IndexDefinitionInvalid, "No index type is given"),
        (["lucene", "Lucene"], IndexDefinitionInvalid, "lucene is named twice"),
        (["lucene", "rtree"], IndexTypeUnknown, "no index type 'rtree'"),
    ],
)
def test_invalid_lists_of_types_are_refused(
    table: IndexedTable, using: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        table.create_index("i", ["amount"], using=using)


def test_a_type_that_is_not_installed_is_ignored(table: IndexedTable, copied: str) -> None:
    indexed(table, ["amount"], name="both", using=[copied, "lucene"])
    built = index_files(table)

    with uninstalled(copied):
        assert [status.index_type for status in table.status()] == ["lucene"]
        assert table.scan("amount = 30", use_index="require").count() == 1
        assert table.refresh("both").due == ()
        table.clean()
        assert index_files(table) == built


def test_a_large_base_file_is_built_in_parts_by_any_type(table: IndexedTable, copied: str) -> None:
    """Each part is built by its own task, and the parts are combined without re-indexing."""
    table.create_index("numbers", ["amount", "ts"], using=["lucene", copied])
    due = table.build(strategy="all", partitions=["2026-01-01"], dry_run=True).due
    tasks = [
        BuildTask(Storage(table.uri), each, "000001", 16, 7, schema=table.schema(), part_bytes=1)
        for each in due
    ]

    outcomes = [outcome for outcome in LocalExecutor(8).run(tasks) if outcome is not None]

    assert [outcome.status for outcome in outcomes] == [TaskStatus.BUILT] * 2
    assert [outcome.rows for outcome in outcomes] == [30, 30]
    for where, rows in (("amount = 30", 1), ("amount < 60", 10), ("ts IS NOT NULL", 30)):
        scan = table.scan(f"{where} AND dt = '2026-01-01'", columns=["id"])
        assert scan.to_arrow().num_rows == rows
    table.drop_index("numbers")
    table.create_index("numbers", ["amount", "ts"], using=copied)
    assert table.scan("amount = 30", columns=["amount"]).to_arrow()["amount"].to_pylist() == [30]


def test_definitions_of_format_1_0_and_1_1_are_read(table: IndexedTable) -> None:
    """1.0 had one type per index, `index_type`; 1.1 still stores the first of its types there."""
    created = table.create_index("new", ["amount"])
    folder = Path(table.uri, ".hoodie/.index/_service/definitions")
    written = json.loads((folder / "new-0001.json").read_bytes())
    assert written["format"] == [1, 4]
    assert (written["index_types"], written["index_type"]) == (["lucene"], "lucene")

    old = {key: written[key] for key in ("kind", "index_type", "columns", "seen", "created")}
    old |= {"format": [1, 0], "name": "old", "version": 1, "dropped": False}
    canonical = json.dumps(old, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    old["checksum"] = "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
    (folder / "old-0001.json").write_text(json.dumps(old))

    new, read = open_table(table.uri).indexes()
    assert new == created
    assert (read.name, read.index_types, read.columns) == ("old", ("lucene",), created.columns)
    assert table.alter_index("old", add=["msg"]).index_types == ("lucene",)
