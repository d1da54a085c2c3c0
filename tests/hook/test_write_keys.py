"""The hoodie.index.* keys of a write config are read, or refused by name."""

import pytest

from hudi_index_service import Column
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hook.write_options import (
    CALLBACK_PATH,
    WriteKeys,
    callback_options,
    parse_columns,
    read_write_config,
    read_write_keys,
)
from hudi_index_service.hudi.properties import parse_properties
from tests.programs import ROOT


def test_all_keys_are_read_among_other_options():
    keys = read_write_keys(
        {
            "hoodie.table.name": "messages",
            "hoodie.index.type": "BLOOM",  # Hudi's own
            "hoodie.index.bucket.engine": "SIMPLE",
            "hoodie.index.enabled": "true",
            "hoodie.index.types": "lucene",
            "hoodie.index.columns": "msg:analyzer=standard; sender",
            "hoodie.index.strategy": "ALL",
            "hoodie.index.wait": "2.5",
        }
    )

    assert keys == WriteKeys(
        enabled=True,
        types=("lucene",),
        columns=(Column(name="msg", options={"analyzer": "standard"}), Column(name="sender")),
        strategy=Strategy.ALL,
        wait=2.5,
    )


def test_columns_alone_are_enough():
    keys = read_write_keys({"hoodie.index.columns": "msg"})
    assert keys == WriteKeys(columns=(Column(name="msg"),))
    assert keys.enabled


def test_options_without_a_key_of_the_service():
    assert read_write_keys({}) is None
    assert read_write_keys({"hoodie.index.type": "RECORD_INDEX", "hoodie.table.name": "t"}) is None


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("msg", [("msg", {})]),
        ("msg,sender , city", [("msg", {}), ("sender", {}), ("city", {})]),
        ("msg;sender;", [("msg", {}), ("sender", {})]),
        ("a.b:analyzer=simple , x=1;c,d", [("a.b", {"analyzer": "simple", "x": "1"}), *"cd"]),
        ("", []),
    ],
)
def test_column_lists_are_parsed(text, columns):
    expected = [each if isinstance(each, tuple) else (each, {}) for each in columns]
    assert [(c.name, c.options) for c in parse_columns(text)] == expected


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hoodie.index.enabled", "perhaps", "hoodie.index.enabled=perhaps: Input should be"),
        ("hoodie.index.types", ",", "hoodie.index.types=,: "),
        ("hoodie.index.strategy", "some", "hoodie.index.strategy=some: Input should be 'incr"),
        ("hoodie.index.wait", "-1", "hoodie.index.wait=-1: Input should be greater"),
        ("hoodie.index.wait", "nan", "hoodie.index.wait=nan: Input should be"),
        ("hoodie.index.wait", "100000", "hoodie.index.wait=100000: Input should be less"),
        ("hoodie.index.columns", "a,b:x=1", "'a,b:x=1': columns with options are separated by ';'"),
        ("hoodie.index.columns", "a:x", "'a:x': an option is key=value"),
        ("hoodie.index.colums", "a", "hoodie.index.colums is neither a key of the index service"),
    ],
)
def test_invalid_keys_are_named(key, value, message):
    with pytest.raises(ConfigInvalid) as invalid:
        read_write_keys({key: value})
    assert message in invalid.value.message


def test_the_remedy_for_an_unknown_key_lists_the_known_ones():
    with pytest.raises(ConfigInvalid) as invalid:
        read_write_keys({"hoodie.index.colums": "a"})
    assert invalid.value.remedy == (
        "Did you mean hoodie.index.columns? The service's keys are hoodie.index.enabled, "
        "hoodie.index.types, hoodie.index.columns, hoodie.index.strategy, hoodie.index.retention, "
        "hoodie.index.wait."
    )


def test_config_as_given_to_hudis_tools(tmp_path):
    file = tmp_path / "hudi-write.properties"
    file.write_text("# a comment\nhoodie.index.columns=msg:analyzer=standard;city\nother: 1\n")

    assert read_write_config(["hoodie.index.wait=3\n a = b=c \n", "other=2"], file) == {
        "hoodie.index.columns": "msg:analyzer=standard;city",
        "hoodie.index.wait": "3",
        "a": "b=c",
        "other": "2",
    }
    assert read_write_config() == {}


def test_a_key_without_its_prefix_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert read_write_config(["index.columns=msg", "hoodie.index.wait=3"]) == {
        "index.columns": "msg",
        "hoodie.index.wait": "3",
    }
    assert caplog.messages == [
        "index.columns is no key of Hudi, and is ignored. "
        "Write whole keys, such as hoodie.index.columns."
    ]


def test_config_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(ConfigInvalid, match="'nothing' is not of the form key=value"):
        read_write_config(["nothing"])
    with pytest.raises(ConfigInvalid, match=r"The properties file .*none cannot be read"):
        read_write_config(file=tmp_path / "none")


def test_the_example_of_a_write_config_has_the_callback_keys():
    options = parse_properties((ROOT / "configs" / "hudi-write.properties").read_bytes())

    expected = callback_options(f"http://127.0.0.1:9099{CALLBACK_PATH}", "replace-this", wait=0)
    assert options.items() >= expected.items()
