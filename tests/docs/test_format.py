"""docs/format.md describes the written format: fields, examples, and the reader that it shows."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Any

import hudi_index_parquet
import pyarrow as pa
import pytest
from pydantic import TypeAdapter

from hudi_index_service import Column, open_table
from hudi_index_service.build.entry.column_facts import Extremes
from hudi_index_service.hudi.snapshot import parse_path
from hudi_index_service.index.btree.tree import LEAF as LEAF_PLACE
from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.index.metadata.definitions import (
    IndexDefinition,
    ReadingSwitch,
    SeenTimeline,
)
from hudi_index_service.index.metadata.documents import FORMAT_MAJOR, FORMAT_MINOR, INDEX_ROOT
from hudi_index_service.index.metadata.manifest import (
    PARQUET_METADATA,
    BuildInfo,
    IndexedBaseFile,
    Manifest,
    SkippedColumn,
    entry_folder,
)
from hudi_index_service.index.metadata.segments.segment import Segment
from hudi_index_service.index.metadata.summary import Summary
from hudi_index_service.index.packed_file import BLOCK_SIZE, DataFile, Member
from tests.docs.markdown import ROOT, code_blocks, field_tables
from tests.indexed import indexed

pytestmark = pytest.mark.fast

PAGE = "docs/format.md"
PAGE_TEXT = (ROOT / PAGE).read_text()
TABLES = {(table.section, table.label): table.fields for table in field_tables(PAGE)}

MODELS: dict[tuple[str, str], type[Any]] = {
    ("Definition", ""): IndexDefinition,
    ("Definition", "columns[]"): Column,
    ("Definition", "seen"): SeenTimeline,
    ("Reading switch", ""): ReadingSwitch,
    ("Manifest", ""): Manifest,
    ("Manifest", "base_file"): IndexedBaseFile,
    ("Manifest", "data"): DataFile,
    ("Manifest", "data.members[]"): Member,
    ("Manifest", "columns[]"): StoredColumn,
    ("Manifest", "skipped[]"): SkippedColumn,
    ("Manifest", "build"): BuildInfo,
    ("Summary", ""): Summary,
    ("Segment", ""): Segment,
}
BTREE = "B+ tree, version 2"
HBASE = "HBase, version 2"
LEAF_HEADER = Struct("<BBBBIQII")
"""As `native/parquet_rows` writes and reads it."""

STRUCTS: dict[tuple[str, str], Struct] = {
    (BTREE, "leaf"): LEAF_PLACE,
    (BTREE, "header"): LEAF_HEADER,
}
ENVELOPE = TABLES["Documents", ""]


@pytest.mark.parametrize("key", MODELS, ids=lambda key: " ".join(key).strip())
def test_tables_list_the_fields_of_the_documents(key: tuple[str, str]) -> None:
    properties = TypeAdapter(MODELS[key]).json_schema()["properties"]
    stored = {name: in_words(schema) for name, schema in properties.items()}
    for_older_readers = {"index_type": "string"} if key == ("Definition", "") else {}

    assert TABLES[key] == {**stored, **for_older_readers}


def test_all_tables_are_compared() -> None:
    described = {(BTREE, "description"), (HBASE, "stored")}
    assert set(TABLES) == {*MODELS, *STRUCTS, ("Documents", ""), *described}


@pytest.mark.parametrize("key", STRUCTS, ids=lambda key: key[1])
def test_tables_list_the_fields_of_binary_records(key: tuple[str, str]) -> None:
    letters = {"uint8": "B", "uint32": "I", "uint64": "Q"}
    assert "<" + "".join(letters[type] for type in TABLES[key].values()) == STRUCTS[key].format
    above = PAGE_TEXT.split(f"`{key[1]}`:")[0].rsplit("\n\n", 2)[1]
    assert f"{STRUCTS[key].size} bytes:" in " ".join(above.split())


def test_described_layout_of_a_tree() -> None:
    """The golden entry, read with the page's tables alone."""
    folder = next((ROOT / "tests/index/golden/btree_2").rglob("manifest-0001.json")).parent
    manifest = json.loads((folder / "manifest-0001.json").read_text())
    packed = (folder / manifest["data"]["name"]).read_bytes()
    members = {
        each["name"]: packed[each["offset"] : each["offset"] + each["length"]]
        for each in manifest["data"]["members"]
    }
    with pa.ipc.open_stream(members["tree"]) as stream:
        tree = stream.read_all()
    pairs = [(row["key"], row["leaf"]) for row in tree.to_pylist()]
    names, leaves = list(TABLES[BTREE, "leaf"]), []
    description = json.loads(tree.schema.metadata[b"description"])
    assert set(description) == set(TABLES[BTREE, "description"])
    for key, value in pairs:
        leaf = dict(zip(names, LEAF_PLACE.unpack(value), strict=True))
        body = members["leaves"][leaf["offset"] : leaf["offset"] + leaf["length"]]
        assert zlib.crc32(body) == leaf["crc32"]
        column = description["columns"][int.from_bytes(key[:2], "big")][0]
        leaves.append((column, key[2], key[3:], leaf, body))
    fixed = list(TABLES[BTREE, "header"])
    first = next(each for each in leaves if each[:2] == ("key", 2))
    header = dict(zip(fixed, LEAF_HEADER.unpack_from(first[4]), strict=True))
    assert (first[2], header["key_width"], header["count_width"]) == (b"user-0000", 0, 0)
    sets = [each for each in leaves if each[3]["is_set"]]
    assert {each[0] for each in sets if each[1] == 0} == {"city", "raw", "age", "tags"}
    assert [each[2] for each in sets if each[:2] == ("city", 2)] == [
        f"city {i}".encode() for i in range(5)
    ]


def in_words(schema: dict[str, Any]) -> str:
    """A JSON schema's type in the words of the page."""
    if "anyOf" in schema:
        return " or ".join(in_words(each) for each in schema["anyOf"])
    if "$ref" in schema:
        return "object"
    match schema["type"]:
        case "array":
            return f"list of {in_words(schema['items'])}s"
        case "object":
            return f"object of {in_words(schema['additionalProperties'])}s"
        case other:
            return str(other)


def test_definition_in_the_page_is_valid_with_its_checksum() -> None:
    (example,) = code_blocks(PAGE, "json definition")

    definition = IndexDefinition.from_json(example.encode(), source=PAGE)

    assert [column.name for column in definition.columns] == ["sender", "msg", "amount"]
    assert {*ENVELOPE, *TABLES["Definition", ""]} == set(json.loads(example))


def test_manifest_in_the_page_matches_its_definition() -> None:
    (shown,) = (json.loads(block) for block in code_blocks(PAGE, "json manifest"))
    (definition,) = code_blocks(PAGE, "json definition")
    fields = {name: value for name, value in shown.items() if name not in ENVELOPE}

    manifest = Manifest.model_validate(fields)

    assert set(fields) == set(TABLES["Manifest", ""]) - {"skipped"}
    assert shown["format"] == [FORMAT_MAJOR, FORMAT_MINOR]
    fingerprint = IndexDefinition.from_json(definition.encode(), source=PAGE).fingerprint("lucene")
    assert manifest.definitions == {"by_sender": fingerprint}
    folder = entry_folder("lucene", parse_path(manifest.base_file.path))
    assert folder.removeprefix(f"{INDEX_ROOT}/") in (ROOT / PAGE).read_text()


@pytest.fixture
def entry(messages: Path) -> Path:
    """The folder of a real entry."""
    with open_table(messages) as table:
        analyzed = Column(name="msg", options={"analyzer": "simple"})
        indexed(table, ["sender", analyzed])
    (manifest,) = (messages / INDEX_ROOT).glob("lucene/*/*/*/manifest-0001.json")
    return manifest.parent


@pytest.fixture
def shown_reader() -> dict[str, Callable[..., Any]]:
    """The functions of the reader in the page."""
    (block,) = code_blocks(PAGE, "python reader")
    names: dict[str, Any] = {}
    exec(compile(block, PAGE, "exec"), names)
    return names


def test_reader_in_the_page_reads_a_real_entry(
    entry: Path, shown_reader: dict[str, Callable[..., Any]]
) -> None:
    manifest = shown_reader["newest_manifest"](entry)
    metadata = shown_reader["member"](entry, manifest, PARQUET_METADATA)

    stored = Manifest.from_json((entry / "manifest-0001.json").read_bytes(), source="here")
    fields = {name: value for name, value in manifest.items() if name not in ENVELOPE}
    assert fields == stored.model_dump(mode="json", by_alias=True, exclude={"skipped"})
    assert manifest["data"]["block_size"] == BLOCK_SIZE
    assert metadata.endswith(b"PAR1")
    assert hudi_index_parquet.Footer(metadata).rows == manifest["base_file"]["rows"] == 3


def test_reader_in_the_page_refuses_a_damaged_manifest(
    entry: Path, shown_reader: dict[str, Callable[..., Any]]
) -> None:
    path = entry / "manifest-0001.json"
    path.write_bytes(path.read_bytes().replace(b'"rows": 3', b'"rows": 2'))

    with pytest.raises(LookupError):
        shown_reader["newest_manifest"](entry)


def test_reader_in_the_page_refuses_a_damaged_block(
    entry: Path, shown_reader: dict[str, Callable[..., Any]]
) -> None:
    manifest = shown_reader["newest_manifest"](entry)
    path = entry / manifest["data"]["name"]
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)

    with pytest.raises(AssertionError):
        shown_reader["member"](entry, manifest, PARQUET_METADATA)


def test_keys_of_build_records_are_described(entry: Path) -> None:
    page = (ROOT / PAGE).read_text().split("## Build records")[1].split("\n## ")[0]
    builds = entry.parents[3] / "_service" / "builds" / "000001"
    (finished,) = [json.loads((builds / "finished.json").read_text())]
    records = [json.loads((builds / "started.json").read_text()), finished, *finished["outcomes"]]

    assert {path.name for path in builds.iterdir()} == {
        "started.json",
        "heartbeat",
        "finished.json",
    }
    for record in records:
        for key in record:
            assert f"`{key}`" in page, key


def test_described_length_limit_of_extremes() -> None:
    assert f"more than {Extremes.LONGEST} bytes" in (ROOT / PAGE).read_text()
