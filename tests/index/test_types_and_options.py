"""What a Lucene index takes, and plug-ins that are none."""

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service.errors import (
    ColumnNotIndexable,
    IndexDefinitionInvalid,
    IndexTypeUnknown,
)
from hudi_index_service.index.arrow_types import parse_arrow_type
from hudi_index_service.index.factory import index_type, index_type_names
from tests.index.test_leaves import VALUES


@pytest.mark.parametrize(
    "type",
    [
        pa.binary(4), pa.uint8(), pa.uint64(), pa.float16(), pa.decimal256(39, 0), pa.date64(),
        pa.time64("us"), pa.list_(pa.list_(pa.string())), pa.struct([("a", pa.string())]),
        pa.list_(pa.struct([("a", pa.string())])), pa.list_(pa.map_(pa.string(), pa.string())),
        pa.map_(pa.string(), pa.string()), pa.dictionary(pa.int32(), pa.string()), pa.null(),
        pa.duration("us"), pa.month_day_nano_interval(), pa.list_(pa.duration("us")),
    ],
    ids=str,
)  # fmt: skip
def test_types_it_cannot_hold_are_named(type: pa.DataType) -> None:
    with pytest.raises(ColumnNotIndexable) as refused:
        index_type("lucene").fields("price", type, {})
    assert "price" in refused.value.message
    assert str(type) in refused.value.message
    if pa.types.is_struct(type):
        assert "price.a" in refused.value.remedy


@pytest.mark.parametrize(
    ("type", "options", "message"),
    [
        (pa.string(), {"analyser": "standard"}, "no column option 'analyser'"),
        (pa.string(), {"analyzer": "klingon"}, "no analyzer 'klingon'"),
        (pa.string(), {"analyzer": "java.lang.Runtime"}, "no analyzer 'java.lang.Runtime'"),
        (pa.string(), {"keyword": "no"}, "keyword is 'no'"),
        (pa.string(), {"ranked": "true"}, "without an analyzer there are no words to rank by"),
        (pa.string(), {"analyzer": "german", "ranked": "1"}, "ranked is '1'"),
        (pa.string(), {"keyword": "false"}, "nothing would be indexed"),
        (pa.list_(pa.string()), {"analyzer": "standard"}, "only string columns"),
        (pa.binary(), {"keyword": "true"}, "only string columns"),
        (pa.int64(), {"analyzer": "standard"}, "int64: only string columns"),
    ],
)
def test_unknown_options_are_refused(
    type: pa.DataType, options: dict[str, str], message: str
) -> None:
    with pytest.raises(IndexDefinitionInvalid, match=message):
        index_type("lucene").fields("c", type, options)


@pytest.mark.parametrize(
    "name", ["german", "GermanAnalyzer", "org.apache.lucene.analysis.de.GermanAnalyzer"]
)
def test_an_analyzer_has_one_name_in_the_index(name: str) -> None:
    fields = index_type("lucene").fields("c", pa.string(), {"analyzer": name})
    assert fields == ("keyword", "text:german")
    ranked = {"analyzer": name, "ranked": "True"}
    fields = index_type("lucene").fields("c", pa.string(), ranked)
    assert fields == ("keyword", "text:german", "ranked:german")


@pytest.mark.parametrize("type", VALUES, ids=str)
def test_manifests_can_spell_every_type_it_holds(type: pa.DataType) -> None:
    required = pa.list_(pa.field("element", type, nullable=False))
    for each in (type, pa.list_(type), required):
        assert parse_arrow_type(str(each)) == each


def plug_in(folder: Path, name: str, code: str) -> None:
    """An installed package as pip leaves it, with one entry point."""
    (folder / f"plug_in_{name}.py").write_text(code)
    info = folder / f"plug_in_{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: plug-in-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[hudi_index_service.index_types]\n{name} = plug_in_{name}:Plugged\n"
    )


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("unimportable", "import a_module_that_is_not_there", "cannot be loaded: ModuleNotFound"),
        ("classless", "", "cannot be loaded: AttributeError"),
        ("raising", "class Plugged:\n    def __init__(self): 1 / 0", "ZeroDivisionError"),
        ("nameless", "class Plugged: pass", "cannot be loaded: AttributeError"),
        ("misnamed", "class Plugged:\n    name = 'x'", "is no index type named 'misnamed'"),
    ],
)
def test_broken_plug_ins_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str, message: str
) -> None:
    plug_in(tmp_path, name, code)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    assert name in index_type_names()
    with pytest.raises(IndexTypeUnknown, match=message):
        index_type(name)


def test_an_unknown_index_type_lists_the_installed_ones() -> None:
    with pytest.raises(IndexTypeUnknown, match="no index type 'rtree'") as unknown:
        index_type("rtree")
    assert "lucene" in unknown.value.remedy


def test_names_are_case_insensitive() -> None:
    assert index_type("Lucene").name == "lucene"
