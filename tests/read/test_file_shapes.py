"""Base files of every layout that Hudi or others write: read correctly, with an index and without,
or refused with a clear error."""

import base64
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from hudi_index_parquet import Footer, stripped_footer

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.errors import StorageFailed, TableFeatureUnsupported
from hudi_index_service.hudi.files.parquet_file import BATCH_BYTES
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.base_file.row_reader import row_positions
from tests.golden.recipes.layouts import BY_HUDI, FEW, PREDICATES
from tests.indexed import indexed
from tests.read.by_pages import BY_PAGES
from tests.same_rows import assert_same_rows

BY_OTHERS: dict[str, dict[str, Any]] = {
    "v2 pages": {"data_page_version": "2.0", "compression": "zstd"},
    "no page index": {"write_page_index": False},
    "int96": {"use_deprecated_int96_timestamps": True},
    "page checksums": {"write_page_checksum": True},
    "brotli": {"compression": "brotli"},
    "lz4_raw": {"compression": "lz4"},
    "v2 gzip": {"data_page_version": "2.0", "compression": "gzip"},
    "delta": {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
}
LAYOUTS = ["gzip", *BY_HUDI, *BY_OTHERS]
COLUMNS = ["id", "name", "number", "text", "at", "place", "tags", "cost"]


def base_file(path: Path, layout: str) -> Path:
    (found,) = (path / layout).glob("*.parquet")
    return found


def rewrite(path: Path, **options: Any) -> None:
    """Writes the same rows in another layout."""
    defaults = {"max_rows_per_page": 100, "write_page_index": True, "store_schema": False}
    pq.write_table(pq.read_table(path, partitioning=None), path, **(defaults | options))


@pytest.fixture(scope="module")
def shaped(golden, tmp_path_factory) -> Path:
    """A table with a base file of each layout."""
    path = golden("base_file_layouts").put(tmp_path_factory.mktemp("shaped"))
    for layout, own in BY_OTHERS.items():
        rewrite(base_file(path, layout), **own)
    return path


@pytest.fixture(scope="module")
def table(shaped) -> IndexedTable:
    return indexed(shaped, ["name", "at", "id"], name="by_name", settings=BY_PAGES)


def test_the_files_have_the_intended_layouts(shaped):
    def chunk(layout):
        metadata = pq.read_metadata(base_file(shaped, layout)).row_group(0)
        leaf = [metadata.column(i).path_in_schema for i in range(metadata.num_columns)].index(
            "text"
        )
        return metadata.column(leaf)

    found = {layout: chunk(layout).compression for layout in LAYOUTS}
    assert found["gzip"] == "GZIP"
    assert found["lz4"] == "UNKNOWN", "LZ4 in Hadoop's framing, which Arrow does not name"
    for codec in ("snappy", "zstd", "uncompressed", "brotli"):
        assert found[codec] == codec.upper()
    schema = pq.ParquetFile(base_file(shaped, "int96")).schema
    assert "INT96" in {schema.column(i).physical_type for i in range(len(schema))}
    assert pq.read_metadata(base_file(shaped, "snappy")).num_row_groups > 3
    assert pq.read_metadata(base_file(shaped, "uncompressed")).serialized_size > 500_000
    assert not chunk("no page index").has_offset_index


@pytest.mark.parametrize("where", PREDICATES)
def test_every_layout_gives_the_same_rows(shaped, table, golden, where):
    found_by_spark = golden("base_file_layouts").answer(where)["id"].to_pylist()
    numbers = {key.removeprefix("gzip") for key in found_by_spark if key.startswith("gzip")}
    original = pq.read_table(base_file(shaped, "gzip"), columns=COLUMNS, partitioning=None)
    kept = [key.removeprefix("gzip") in numbers for key in original["id"].to_pylist()]
    expected = original.filter(pa.array(kept)).drop(["id"])

    scan = table.scan(where, columns=[*COLUMNS, "layout"])
    found = scan.to_arrow()
    plain = table.scan(where, columns=[*COLUMNS, "layout"], use_index="never").to_arrow()

    assert_same_rows(found, plain)
    by_index = 0 if " OR " in where else len(LAYOUTS)
    assert scan.statistics.count(Access.INDEX) == by_index
    for layout in LAYOUTS:
        rows = found.filter(pc.equal(found["layout"], layout))
        assert {key.removeprefix(layout) for key in rows["id"].to_pylist()} == numbers, layout
        assert_same_rows(rows.drop(["id", "layout"]), expected)
    assert len(found) == len(numbers) * len(LAYOUTS)


@pytest.mark.parametrize(
    ("where", "columns"),
    [
        ("id = 'gzip77'", None),
        ("id = 'snappy77'", ["id", "place", "tags"]),
        ("name = 'name7'", ["name", "place"]),
        ("at = TIMESTAMP'2000-01-01 00:05:00'", ["at", "tags"]),
    ],
)
def test_only_pages_with_matches_are_read(shaped, table, where, columns):
    scan = table.scan(where, columns=columns)
    assert scan.to_arrow().num_rows > 0
    matches = table.scan(where).row_ids()
    for read in scan.statistics.slices:
        if read.slice_name not in matches:
            assert (read.pages, read.bytes_read) == (0, 0)
            continue
        footer = Footer(stripped_footer(shaped / read.slice_name))
        floor = footer.plan(row_positions(matches[read.slice_name]), columns)
        assert (read.access, read.pages) == (Access.INDEX, floor.pages)
        assert read.bytes_read <= 1.05 * floor.page_bytes
        assert read.ranges <= floor.ranges + 3


def test_whole_chunks_are_read_without_an_offset_index(table):
    scan = table.scan("name = 'name7'", columns=["text"])
    scan.to_arrow()
    pages = {each.slice_name: each.pages for each in scan.statistics.slices}
    assert pages.pop(f"no page index/{base_file(Path(table.uri), 'no page index').name}") == 2
    assert min(pages.values()) > 2


def test_a_table_without_meta_columns(golden, tmp_path):
    bare = golden("without_hudis_columns")
    table = indexed(bare.put(tmp_path), ["name"], settings=BY_PAGES)
    expected = bare.answer(FEW).select(COLUMNS)
    for use_index in ("require", "never"):
        found = table.scan(FEW, columns=COLUMNS, use_index=use_index).to_arrow()
        assert_same_rows(found, expected)
    assert len(expected) == 2


@pytest.fixture
def copied(shaped, table, tmp_path) -> Path:
    """A copy of the indexed table that a test may damage."""
    return Path(shutil.copytree(shaped, tmp_path / "table"))


def replace_file(path: Path, contents: bytes) -> None:
    """Replaces a file by another of the same length, so that its entry stays valid."""
    path.unlink()
    path.write_bytes(contents)


def test_a_page_checksum_mismatch_is_an_error(copied):
    path = base_file(copied, "page checksums")
    contents = bytearray(path.read_bytes())
    metadata = pq.read_metadata(path).row_group(0)
    for leaf in range(metadata.num_columns):
        chunk = metadata.column(leaf)
        if chunk.path_in_schema == "number":
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            middle = start + chunk.total_compressed_size // 2
            contents[middle : middle + 40] = bytes(40)
    replace_file(path, bytes(contents))
    table = open_table(copied, settings=BY_PAGES)
    for use_index in ("auto", "never"):
        with pytest.raises(StorageFailed, match=path.name):
            table.scan("name > ''", columns=["number"], use_index=use_index).to_arrow()
    assert table.scan("name = 'name7'", columns=["text"]).to_arrow().num_rows == 3 * len(LAYOUTS)


def encrypt(path: Path, **options: Any) -> None:
    class OpenKeys(pe.KmsClient):
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
            return base64.b64encode(key_bytes)

    properties = pe.CryptoFactory(lambda _: OpenKeys()).file_encryption_properties(
        pe.KmsConnectionConfig(), pe.EncryptionConfiguration(footer_key="k", **options)
    )
    contents = pq.read_table(path, partitioning=None)
    pq.write_table(contents, path, encryption_properties=properties)


@pytest.mark.parametrize(
    "options",
    [
        {"uniform_encryption": True},
        {"uniform_encryption": True, "plaintext_footer": True},
        {"column_keys": {"k": ["number", "text"]}, "plaintext_footer": True},
    ],
    ids=["footer too", "plaintext footer", "some columns"],
)
def test_an_encrypted_base_file_needs_spark(copied, options):
    encrypt(base_file(copied, "gzip"), **options)
    table = open_table(copied, settings=BY_PAGES)
    for where in (None, "number = 7", "name = 'name7'"):
        with pytest.raises(TableFeatureUnsupported, match="encrypted") as refusal:
            table.scan(where, columns=["text"]).to_arrow()
        assert "spark" in refusal.value.remedy
    build = table.build(strategy="all")
    assert [outcome.status.value for outcome in build.failed] == ["failed"]
    assert "encrypted" in str(build.failed[0].error)


# Run as an unprivileged user: this process may be root's, which ignores file modes.
AS_NOBODY = """
import os, sys
import numpy as np
import pyarrow.parquet
from hudi_index_parquet import Footer, stripped_footer
from hudi_index_service.errors import PermissionDenied
from hudi_index_service.read.base_file.row_reader import RowReader
from hudi_index_service.storage.store import Storage
from hudi_index_service.hudi.files.parquet_file import open_parquet
from hudi_index_service.hudi.snapshot import BaseFile
folder, name = os.path.split(sys.argv[1])
storage, footer = Storage(folder), Footer(stripped_footer(sys.argv[1]))
base_file = BaseFile(name, "", "", "", os.stat(sys.argv[1]).st_size)
os.chmod(sys.argv[1], 0)
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
rows = RowReader(storage, base_file, footer, footer.schema).batches(np.arange(3))
for action in (lambda: open_parquet(storage, name), lambda: next(rows)):
    try:
        action()
    except PermissionDenied as error:
        assert name in error.message and "read access" in error.remedy, error
        print("refused")
"""


def test_missing_permission_has_its_own_error(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"n": range(3)}), path)
    command = [sys.executable, "-c", AS_NOBODY, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (run.stdout, run.stderr) == ("refused\nrefused\n", "")


def test_pages_the_row_reader_cannot_read_are_scanned(golden, tmp_path):
    """LZ4 pages of more than 256 KB in Hadoop's framing."""
    with indexed(golden("large_pages_of_lz4").put(tmp_path), ["name"], settings=BY_PAGES) as table:
        scan = table.scan("name = 'name77'", columns=["id"])
        assert scan.to_arrow().to_pylist() == [{"id": "77"}]


def test_large_rows_come_in_small_batches(golden, tmp_path):
    table = indexed(golden("rows_of_many_bytes").put(tmp_path), ["name"], settings=BY_PAGES)
    scan = table.scan("name = '1'", columns=["text"], use_index="require")
    batches = list(scan.to_batches())
    assert sum(batch.num_rows for batch in batches) == 600
    assert sum(batch.nbytes for batch in batches) > 3.5 * BATCH_BYTES
    assert max(batch.nbytes for batch in batches) < 1.5 * BATCH_BYTES
