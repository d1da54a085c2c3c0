"""The disk format as first released: it remains readable and answers correctly."""

import shutil
from pathlib import Path

import hudi_index_parquet
import numpy as np
import pyarrow.parquet as pq
import pytest
from hudi_index_parquet import Footer

from hudi_index_service.build.entry.task import BuildTask, TaskStatus, run_task
from hudi_index_service.build.reconcile import DueEntry
from hudi_index_service.config import Settings
from hudi_index_service.hudi.files.parquet_file import footer_sha256
from hudi_index_service.index.contract import Answer, Conjunction
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.files.local_copy import packed_index
from hudi_index_service.index.files.stored_values import values_footer
from hudi_index_service.index.metadata.definitions import DefinitionStore
from hudi_index_service.index.metadata.entry import Entry, EntryListing
from hudi_index_service.index.metadata.manifest import PARQUET_METADATA, Layout
from hudi_index_service.index.metadata.requirements import indexed
from hudi_index_service.index.packed_file import checksums, read_member
from hudi_index_service.predicate import negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import And
from hudi_index_service.storage.store import Storage
from tests.index.conftest import rows_where
from tests.index.golden import make


@pytest.fixture
def storage() -> Storage:
    return Storage(make.FOLDER)


@pytest.fixture
def entry(storage: Storage) -> Entry:
    return EntryListing(storage, "lucene").find(make.base_file(make.FOLDER))


def test_the_definition_is_read(storage: Storage, entry: Entry) -> None:
    (definition,) = DefinitionStore(storage).live()
    assert (definition.name, definition.index_types) == ("people", ("lucene",))
    assert definition.columns[0].options == {"analyzer": "standard"}
    assert definition.seen.covers("20251231")
    assert not definition.seen.covers(make.INSTANT)
    assert entry.manifest.definitions == {"people": definition.fingerprint("lucene")}


def test_the_manifest_describes_the_base_file_and_data(storage: Storage, entry: Entry) -> None:
    manifest = entry.manifest
    assert manifest.generation == 1
    assert manifest.base_file.rows == make.ROWS.num_rows
    rows = pq.read_table(make.FOLDER / make.BASE_FILE, partitioning=None)
    assert repr(rows.to_pydict()) == repr(make.ROWS.to_pydict())  # NaN is not equal to itself
    assert manifest.base_file.footer_sha256 == footer_sha256(
        storage, manifest.base_file.path, manifest.base_file.length
    )
    for field in make.ROWS.schema:
        column = manifest.column(field.name)
        assert column is not None
        assert column.type == field.type
        assert column.null_count == make.ROWS.column(field.name).null_count
    crc32s, sha256 = checksums(storage.local_path(entry.data_path))
    assert (crc32s, sha256) == (manifest.data.crc32s(), manifest.data.sha256)
    age = manifest.column("age")
    assert age is not None
    assert (age.minimum, age.maximum) == ("-1", str(2**63 - 1))


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("name = 'Ada'", [0, 6]),
        ("name like 'Buying%'", [3]),
        ("name like '%Buying%'", [3, 4]),
        ("name is null", [2]),
        ("name <> 'Ada'", [1, 3, 4, 5, 7]),
        ("age > 7", [0, 3, 5, 7]),
        ("age in (-1, 36)", [0, 2, 5]),
        ("score = 0", [2, 3]),
        ("score > 1", [1, 5, 6]),
        ("member", [0, 3, 4, 6, 7]),
        ("born < date'1900-01-01'", [0]),
        ("seen >= timestamp'2026-01-01 05:00:00'", [5, 6]),
        ("price between 0.02 and 0.04", [2, 3, 4]),
    ],
)
def test_the_golden_entry_answers_exactly(
    storage: Storage, entry: Entry, tmp_path: Path, where: str, rows: list[int]
) -> None:
    kind = index_type("lucene")
    columns = entry.manifest.columns
    with packed_index(storage, entry, Settings(cache_folder=tmp_path)) as index:
        reader = kind.open(index, columns)
    predicate = negation_normal_form(parse_predicate(where, make.ROWS.schema))
    leaves = predicate.children if predicate.children[1:] else (predicate,)

    assert {kind.answer(leaf, columns) for leaf in leaves} == {Answer.EXACT}
    found = reader.row_ids(leaves[0])
    for leaf in leaves[1:]:
        found &= reader.row_ids(leaf)
    assert list(found) == rows == list(rows_where(predicate, make.ROWS))


def test_its_stripped_footer_reads_all_rows(storage: Storage, entry: Entry, tmp_path: Path) -> None:
    with packed_index(storage, entry, Settings(cache_folder=tmp_path)) as index:
        metadata = read_member(index, PARQUET_METADATA)
    path = str(storage.local_path(make.BASE_FILE))
    size = entry.manifest.base_file.length
    old = Footer(metadata)
    fresh = Footer(hudi_index_parquet.stripped_footer(path, size=size))
    rows = np.arange(old.rows, dtype=np.int64).data
    read = [footer.read(path, rows, size=size)[0] for footer in (old, fresh)]
    assert str(read[0].to_pylist()) == str(read[1].to_pylist())  # NaN is NaN
    assert old.plan(rows) == fresh.plan(rows)
    # It was made before footers recorded column indexes, so none of its pages are skipped.
    (known,) = old.bounds(path, ["name"], size=size) or []
    assert (known.start, known.stop, known.range) == (0, old.rows, None)


LUCENE_WHERES = [
    "key = 'user-042'",
    "key IN ('user-001', 'user-599', 'none')",
    "key BETWEEN 'user-100' AND 'user-199x'",
    "key >= 'user-590'",
    "key LIKE 'user-29%'",
    "key LIKE '%0_7'",
    "city = 'city 2'",
    "city <> 'city 2'",
    "city IS NULL",
    "text = 'Green car car '",
    "text LIKE 'red%car car%'",
    "match(text, 'green')",
    "match_phrase(text, 'red car car')",
    "match_prefix(text, 'gr')",
    "match_fuzzy(text, 'gren')",
    "match(words, 'run')",
    "raw = X'03FF'",
    "raw < X'02'",
    "age = 24",
    "age < 1000",
    "age IN (-1000, 999, 24, 8000)",
    "age IS NOT NULL",
    "member",
    "score > 2.25",
    "score = 0",
    "born < date'1901-06-01'",
    "seen >= timestamp'2026-01-01 22:00:00'",
    "wide BETWEEN -5000000000 AND 100000000000",
    "array_contains(tags, 't3')",
    "NOT array_contains(tags, 't3')",
]


def test_the_golden_entry_of_lucene_9_12_answers_exactly(tmp_path: Path) -> None:
    storage, kind = Storage(make.LUCENE_FOLDER), index_type("lucene")
    entry = EntryListing(storage, "lucene").find(make.base_file(make.LUCENE_FOLDER))
    columns = entry.manifest.columns
    rows = pq.read_table(make.LUCENE_FOLDER / make.BASE_FILE, partitioning=None)
    assert repr(rows.to_pydict()) == repr(make.LUCENE_ROWS.to_pydict())
    assert entry.manifest.codec == "Lucene912"
    assert {column.name for column in columns} == set(rows.column_names)
    with packed_index(storage, entry, Settings(cache_folder=tmp_path)) as index:
        assert kind.verify(index, columns) == []
        reader = kind.open(index, columns)
        analyzed = {each.name: kind.analyzed_text(each.spec) for each in columns}
        texts = {name: (each,) for name, each in analyzed.items() if each is not None}
        assert set(texts) == set(make.LUCENE_OPTIONS)
        for where in LUCENE_WHERES:
            condition = parse_predicate(where, rows.schema, texts=lambda: texts)
            leaf = negation_normal_form(condition)
            expected = rows_where(leaf, rows)
            assert 0 < len(expected) < len(rows), where
            assert kind.answer(leaf, columns) is Answer.EXACT, where
            assert reader.row_ids(leaf) == expected, where
        reader.close()


BTREE_WHERES = [
    "key = 'user-0042'",
    "key BETWEEN 'user-0100' AND 'user-0199x'",
    "key LIKE 'user-29%'",
    "city = 'city 3'",
    "city <> 'city 3'",
    "city IN ('city 1', 'city 4', 'none')",
    "city IS NULL",
    "text = '05 xxxxx'",
    "text LIKE '69 xxx%'",
    "raw > X'C000000000'",
    "age < 1000",
    "age IN (-1000, 999, 24, 8998001)",
    "age IS NOT NULL",
    "far < -9223372036854775000",
    "member",
    "score > 100",
    "score > 1000000",
    "born < date'1582-10-15'",
    "seen >= timestamp'2026-01-27 12:00:00'",
    "wide BETWEEN 5 AND 100000000000000000000000",
    "array_contains(tags, 't3')",
    "NOT array_contains(tags, 't3')",
]


def test_the_golden_btree_entry_answers_exactly(tmp_path: Path) -> None:
    storage, kind = Storage(make.BTREE_FOLDER), index_type("btree")
    entry = EntryListing(storage, "btree").find(make.base_file(make.BTREE_FOLDER))
    columns = indexed(entry.manifest.columns)
    rows = pq.read_table(make.BTREE_FOLDER / make.BASE_FILE, partitioning=None)
    assert repr(rows.to_pydict()) == repr(make.BTREE_ROWS.to_pydict())
    assert entry.manifest.index_type_version == 2
    assert {column.name: column.type for column in columns} == {
        field.name: field.type for field in make.BTREE_ROWS.schema
    }
    with packed_index(storage, entry, Settings(cache_folder=tmp_path)) as index:
        assert kind.verify(index, columns) == []
        reader = kind.open(index, columns)
        for where in BTREE_WHERES:
            leaf = negation_normal_form(parse_predicate(where, make.BTREE_ROWS.schema))
            expected = rows_where(leaf, make.BTREE_ROWS)
            assert kind.answer(leaf, columns) is Answer.EXACT, where
            assert reader.row_ids(leaf) == expected, where
            least, most = reader.row_bounds(leaf)
            assert 0 < least <= len(expected) <= most, where
        conjuncts = negation_normal_form(
            parse_predicate(
                "city = 'city 3' AND age BETWEEN 1000 AND 90000", make.BTREE_ROWS.schema
            )
        )
        assert isinstance(conjuncts, And)
        together = Conjunction(conjuncts.operands)
        assert kind.answer(together, columns) is Answer.EXACT
        assert reader.row_ids(together) == rows_where(conjuncts, make.BTREE_ROWS)
        reader.close()
        footer = values_footer(index)
        assert footer is not None
        positions = np.array([0, 7, 2999], dtype=np.int64)
        values, _ = footer.read(index.path, positions.data, ["text", "wide"])
    assert values == make.BTREE_ROWS.select(["text", "wide"]).take(positions)


def test_a_btree_entry_of_the_first_version_is_scanned_and_built_anew(tmp_path: Path) -> None:
    shutil.copytree(make.FIRST_BTREE_FOLDER, tmp_path / "table")
    storage, base_file = Storage(tmp_path / "table"), make.base_file(make.FIRST_BTREE_FOLDER)
    manifest = EntryListing(storage, "btree").find(base_file).manifest
    assert manifest.index_type_version == 1
    assert manifest.layout(index_type("btree")) is Layout.UNREAD
    due = DueEntry(base_file, "btree", manifest.specs(), manifest.definitions)
    outcome = run_task(BuildTask(storage, due, "000002", memory_mb=16, batch_rows=1000))
    assert outcome.status is TaskStatus.BUILT, outcome.error
    assert EntryListing(storage, "btree").find(base_file).manifest.index_type_version == 2
