"""The allow-list recognizes a table by every spelling of its base path that Hudi uses."""

import pytest

from hudi_index_service.errors import CallbackRefused, ConfigInvalid, StorageUnsupported
from hudi_index_service.hook.allowed_tables import AllowedTables


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("/data/t", "file:/data/t"),
        ("/data/t/", "file:///data/t"),
        ("file:/data/t", "/data/t"),
        ("/data/a b%20c", "file:/data/a b%20c"),
        ("s3a://bucket/t", "s3a://bucket/t/"),
        ("s3://bucket/t", "s3a://bucket/t"),
    ],
)
def test_all_spellings_of_a_table_are_recognized(given, sent):
    tables = AllowedTables([given, "/data/other"])

    assert tables.find(sent) == next(iter(tables))


def test_links_are_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert AllowedTables([tmp_path / "link"]).find(f"file:{tmp_path}/real") == f"{tmp_path}/real"


@pytest.mark.parametrize("sent", ["/data", "/data/t2", "/data/t/x", "/data/t/../u", "s3://data/t"])
def test_other_paths_are_refused(sent):
    with pytest.raises(CallbackRefused, match="is not one that this hook serves"):
        AllowedTables(["/data/t"]).find(sent)


def test_list_needs_at_least_one_supported_table():
    with pytest.raises(ConfigInvalid, match="no table"):
        AllowedTables([])
    with pytest.raises(StorageUnsupported):
        AllowedTables(["oss://bucket/t"])
