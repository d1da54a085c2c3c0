"""Whichever way Hudi spells a base path, the allow-list knows the table."""

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
def test_spellings_of_one_table(given, sent):
    tables = AllowedTables([given, "/data/other"])

    assert tables.find(sent) == next(iter(tables))


def test_links_are_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert AllowedTables([tmp_path / "link"]).find(f"file:{tmp_path}/real") == f"{tmp_path}/link"


@pytest.mark.parametrize("sent", ["/data", "/data/t2", "/data/t/x", "/data/t/../u", "s3://data/t"])
def test_other_paths_are_refused(sent):
    with pytest.raises(CallbackRefused, match="not among those this hook serves"):
        AllowedTables(["/data/t"]).find(sent)


def test_list_needs_a_table_that_can_be_served():
    with pytest.raises(ConfigInvalid, match="no table"):
        AllowedTables([])
    with pytest.raises(StorageUnsupported):
        AllowedTables(["hdfs://host/t"])
