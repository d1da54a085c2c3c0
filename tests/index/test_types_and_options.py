"""Which column types and options index types accept, and broken plug-ins."""

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_index_service.errors import (
    ColumnNotIndexable,
    IndexDefinitionInvalid,
    IndexTypeBroken,
    IndexTypeUnknown,
)
from hudi_index_service.index.factory import index_type, index_type_names
from hudi_index_service.index.stored_column import parse_arrow_type
from tests.index.plug_in import install
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
@pytest.mark.parametrize("name", ["btree", "hbase", "lucene"])
def test_unsupported_types_are_refused_by_name(name: str, type: pa.DataType) -> None:
    with pytest.raises(ColumnNotIndexable, match=name.capitalize() + "|" + name) as refused:
        index_type(name).fields("price", type, {})
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
def test_manifests_can_spell_every_supported_type(type: pa.DataType) -> None:
    required = pa.list_(pa.field("element", type, nullable=False))
    for each in (type, pa.list_(type), required):
        assert parse_arrow_type(str(each)) == each


FULL = """
from hudi_index_service.index.contract import IndexType

class Plugged(IndexType):
    name, contract, version = "{name}", 2, 1
    def fields(self, *_): return ()
    builder = combine = answer = verify = open = fields
"""
MADE_FOR_VERSION_1 = FULL.replace("(IndexType)", "").replace(", 2, 1", ", 1, 1")


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("unimportable", "import a_module_that_is_not_there", "cannot be loaded: ModuleNotFound"),
        ("unwritten", "class Plugged:", "cannot be loaded: IndentationError"),
        ("classless", "", "cannot be loaded: AttributeError"),
        ("raising", "class Plugged:\n    def __init__(self): 1 / 0", "ZeroDivisionError"),
        ("other", "class Plugged: pass", r"not a subclass of hudi\S+contract\.IndexType"),
        ("older", MADE_FOR_VERSION_1, "a subclass .*, as version 2"),
        ("newer", FULL.replace(", 2, 1", ", 3, 1"), r"version 3 of the contract.* has version 2"),
        ("misnamed", FULL.replace("{name}", "x"), "has the name 'x'"),
        ("unnumbered", FULL.replace(", 2, 1", ", 2, None"), "has no integer version"),
        ("unversioned", FULL.replace("contract,", "other,"), "abstract method '?contract"),
        ("closed", FULL.replace("= open ", ""), "abstract method '?open"),
        ("listless", FULL + "    store = destroy = open", "lacks the method stored"),
        ("keeping", FULL + "    store = stored = open", "lacks the method destroy"),
    ],
)
def test_broken_plug_ins_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str, message: str
) -> None:
    install(tmp_path, name, code.replace("{name}", name))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    assert name in index_type_names()
    with pytest.raises(IndexTypeBroken, match=message) as broken:
        index_type(name)
    assert f"'{name}' (plug_in_{name}:Plugged)" in broken.value.message
    assert broken.value.code == "INDEX_TYPE_BROKEN"
    assert "Repair" in broken.value.remedy


def test_a_plug_in_that_fulfils_the_contract_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "whole", FULL.replace("{name}", "whole"))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert index_type("Whole").name == "whole"


def test_two_packages_with_the_same_index_type_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "lucene", FULL.replace("{name}", "lucene"))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    index_type.cache_clear()
    with pytest.raises(IndexTypeBroken, match=r"Several packages.*plug_in_lucene:Plugged") as error:
        index_type("lucene")
    assert "all but one of them" in error.value.remedy


def test_an_unknown_index_type_lists_the_installed_ones() -> None:
    with pytest.raises(IndexTypeUnknown, match="no index type 'rtree'") as unknown:
        index_type("rtree")
    assert "lucene" in unknown.value.remedy
