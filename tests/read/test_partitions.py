"""Partitions are pruned by their path, and their columns read from it, as Spark does."""

import pyarrow as pa
import pytest

from hudi_index_service import IndexedTable, open_table
from hudi_index_service.errors import TableFeatureUnsupported
from hudi_index_service.hudi.gate import unsupported_partition
from hudi_index_service.hudi.partition_path import PartitionPaths
from hudi_index_service.hudi.snapshot import BaseFile, FileSlice, Snapshot
from hudi_index_service.optimizer.partitions import PartitionValues
from hudi_index_service.optimizer.plan import Access
from hudi_index_service.read.query import Binding
from tests.golden.recipes.shapes import (
    HIVE_STYLE,
    ODD_PARTITIONS,
    STAYED,
    THREE_PARTITION_COLUMNS,
    URL_ENCODED,
)
from tests.indexed import indexed
from tests.read.test_shapes import assert_sparks_answers
from tests.same_rows import assert_same_rows


def pruned(table: IndexedTable, where: str) -> set[str]:
    """The partitions that a query prunes."""
    plan = table.scan(where).explain().plan
    assert plan is not None
    skipped = [each for each in plan.slices if each.rule == "partition_pruning"]
    assert all(each.access is Access.SKIP for each in skipped)
    return {each.file_slice.partition for each in skipped}


@pytest.mark.parametrize("name", ["stays_in_its_partition", "stays_in_its_partition_with_logs"])
def test_a_record_kept_in_its_partition_has_the_value_of_the_path(name, golden, tmp_path):
    table = indexed(golden(name).put(tmp_path), ["dt", "amount"])
    assert_sparks_answers(table, golden(name), STAYED)
    assert pruned(table, "dt = '2026-01-02' AND amount = 1") == {"2026-01-01"}


@pytest.mark.parametrize("generator", [None, "GLOBAL_DELETE", "AUTO_RECORD", "NON_PARTITION"])
def test_any_key_generator_that_the_gate_knows_leaves_the_value_of_the_path(
    generator, golden, tmp_path
):
    """Spark 3.5 with Hudi 1.2 gave the same rows with each of them in the properties."""
    shape = golden("stays_in_its_partition")
    properties = shape.put(tmp_path) / ".hoodie" / "hoodie.properties"
    key = "hoodie.table.keygenerator"
    lines = [each for each in properties.read_text().splitlines() if not each.startswith(key)]
    named = [] if generator is None else [f"{key}.type={generator}"]
    properties.write_text("\n".join([*lines, *named, ""]))
    assert_sparks_answers(open_table(tmp_path), shape, STAYED)


def test_hive_style_and_encoded_values_of_several_columns(golden, tmp_path):
    shape = golden("three_partition_columns")
    table = open_table(shape.put(tmp_path))
    table.create_index("by_amount", ["amount"])
    assert_sparks_answers(table, shape, THREE_PARTITION_COLUMNS)
    left = {each for each in pruned(table, "number = 1 AND name = 'plain'") if "number=1" in each}
    assert left
    assert not any("name=plain" in each for each in left)


def test_null_and_an_empty_text_are_null(golden, tmp_path):
    """They share a folder, whose value is NULL in Spark. Spark also decodes what looks encoded in a
    path, even if the table does not encode paths."""
    shape = golden("odd_partition_values")
    table = open_table(shape.put(tmp_path))
    assert table.scan("part = 'a'").count() == 4
    assert table.scan("part IS NULL").count() == 8
    for where in ODD_PARTITIONS:
        assert_same_rows(table.scan(where).to_arrow(), shape.answer(where))
    plain = {"a", "%41b", "%+1"}
    null = "__HIVE_DEFAULT_PARTITION__"
    assert pruned(table, "part <=> ''") == {*plain, null}
    assert pruned(table, "part IS NULL") == plain
    assert pruned(table, "part = 'a'") == {*plain, null} - {"a"}
    assert pruned(table, "part = 'a' OR amount = 3") == set()
    assert pruned(table, "amount = 3") == set()
    for text in ("", null, "Ab", "%41b", "./a"):
        escaped = text.replace("_", "!_").replace("%", "!%")
        for where in (f"part = '{text}'", f"part LIKE '{escaped}' ESCAPE '!' OR amount = 3"):
            with pytest.raises(TableFeatureUnsupported, match="Spark finds other partitions by"):
                table.scan(where).count()


@pytest.mark.parametrize(
    ("properties", "path", "texts"),
    [
        ({}, "7/a", []),
        ({}, "7/A%41", [("s", "A%41"), ("s", "AA")]),
        ({}, "%37/a", [("i", "%37"), ("i", "7")]),
        (HIVE_STYLE, "i=7/s=%zz", []),
        (URL_ENCODED, "7/%41", [("s", "%41"), ("s", "A")]),  # not how Hudi writes it
        (URL_ENCODED, "7/a%2F%3D%25", []),
        (URL_ENCODED, "7/a%2fb", [("s", "a%2fb"), ("s", "a/b")]),
        ({}, "7/__HIVE_DEFAULT_PARTITION__", [("s", ""), ("s", "__HIVE_DEFAULT_PARTITION__")]),
    ],
)
def test_texts_whose_folder_is_not_that_of_the_value(properties, path, texts):
    paths = PartitionPaths.of({"hoodie.table.partition.fields": "i,s", **properties})
    assert list(paths.ambiguous_texts(path)) == texts


def test_a_partition_within_another():
    reason = "Partition a/b lies within partition a, where Spark does not look for it."
    for properties in ({}, HIVE_STYLE):
        assert unsupported_partition(properties, ["a/b", "a b", "a", "ab/c"]) == reason
        assert unsupported_partition(properties, ["a/b", "a b", "ab/c", ""]) is None


@pytest.mark.parametrize(
    ("properties", "path", "values"),
    [
        ({}, "7/a", {"i": 7, "s": "a"}),
        ({}, "07/a", {"s": "a"}),  # not how an int is written
        ({}, "7", {}),
        ({}, "7/a/b", {}),  # a value with a slash
        ({}, "7/__HIVE_DEFAULT_PARTITION__", {"i": 7, "s": None}),
        # Spark always decodes them, byte by byte.
        ({}, "7/a%2Fb", {"i": 7, "s": "a/b"}),
        ({}, "%37/%c3%A9%", {"i": 7, "s": "\u00c3\u00a9%"}),
        ({}, "7/%+a%-1%zz%2", {"i": 7, "s": "\n%-1%zz%2"}),
        (URL_ENCODED, "7/a%2Fb", {"i": 7, "s": "a/b"}),
        (HIVE_STYLE, "i=7/s=a", {"i": 7, "s": "a"}),
        (HIVE_STYLE, "i=7/t=a", {"i": 7}),
        (HIVE_STYLE, "i=7/s=", {"i": 7}),
        ({"hoodie.table.keygenerator.type": "TIMESTAMP"}, "7/a", {}),
        ({"hoodie.table.keygenerator.type": "CUSTOM"}, "7/a", {}),
        ({"hoodie.table.keygenerator.type": None}, "7/a", {"i": 7, "s": "a"}),
        ({"hoodie.table.keygenerator.type": "SIMPLE_AVRO"}, "7/a", {"i": 7, "s": "a"}),
        (
            {
                "hoodie.table.keygenerator.type": None,
                "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
            },
            "7/a",
            {"i": 7, "s": "a"},
        ),
        (
            {
                "hoodie.table.keygenerator.type": None,
                "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
            },
            "7/a",
            {},
        ),
        ({"hoodie.table.partition.fields": "d,x"}, "1.5/a", {"d": 1.5}),
        ({"hoodie.table.partition.fields": "d,x"}, "1/a", {}),  # not how a double is written
        ({"hoodie.table.partition.fields": "s"}, "2026/01/02", {"s": "2026/01/02"}),
        ({"hoodie.table.partition.fields": "s"}, "2026/01/%41", {}),
        ({"hoodie.table.partition.fields": "s", **HIVE_STYLE}, "s=a/b", {"s": "a/b"}),
    ],
)
def test_values_read_from_a_path(properties, path, values):
    schema = pa.schema([("i", pa.int64()), ("s", pa.string()), ("d", pa.float64())])
    table = {
        "hoodie.table.partition.fields": "i,s",
        "hoodie.table.keygenerator.type": "COMPLEX",
        **properties,
    }
    known = {key: value for key, value in table.items() if value is not None}
    found = PartitionPaths.of(known).values(path, schema)
    assert {name: value.as_py() for name, value in found.items()} == values


NULL = "9/__HIVE_DEFAULT_PARTITION__"


@pytest.mark.parametrize(
    ("where", "left_out"),
    [
        ("i = 7", {"8/a", NULL}),
        ("i = 7 AND d > 1", {"8/a", NULL}),
        ("i = 7 OR d > 1", set()),
        ("i = 7 OR s = 'b'", {"8/a", NULL}),
        ("i > 7 AND s <> 'a'", {"7/a", "7/b", "8/a", NULL}),
        ("NOT (s IN ('a', 'b'))", {"7/a", "7/b", "8/a", NULL}),
        ("i IS NULL", {"7/a", "7/b", "8/a", NULL}),
        ("s IS NULL", {"7/a", "7/b", "8/a"}),
        ("d > 1", set()),
        (None, set()),
    ],
)
def test_partitions_ruled_out(where, left_out):
    schema = pa.schema([("i", pa.int64()), ("s", pa.string()), ("d", pa.float64())])
    files = [BaseFile(f"{p}/f", p, "f", "1", 1) for p in ("7/a", "7/b", "8/a", NULL, "x")]
    slices = tuple(FileSlice(each.partition, "f", each) for each in files)
    snapshot = Snapshot("1", slices, schema)
    normal_form = Binding(where, None, "UTC").to(schema).normal_form
    found = PartitionValues.of(PartitionPaths(("i", "s")), snapshot)
    assert found.ruled_out(normal_form) == left_out
    assert PartitionValues.of(PartitionPaths(), snapshot).ruled_out(normal_form) == set()
