"""Which texts are paths, and which are names in a catalog."""

import sys
from pathlib import Path

import pytest

from hudi_index_service import IndexHook, open_table
from hudi_index_service.catalog import table_location
from hudi_index_service.catalog.entry import CatalogTable
from hudi_index_service.cli.console import error_line
from hudi_index_service.errors import NotAHudiTable, StorageUnsupported, TableNotFound
from tests.golden.table import Golden


@pytest.mark.parametrize(
    "path",
    ["/data/messages", "./db.messages", "data/db.messages", "s3://bucket/db.messages", "messages"],
)
def test_a_text_with_a_slash_or_without_a_dot_is_a_path(path: str) -> None:
    assert table_location(path) == path


def test_a_path_object_is_a_path() -> None:
    assert table_location(Path("db.messages")) == Path("db.messages")


def test_a_folder_with_a_dot_is_opened(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden("rfc_messages").put(tmp_path / "db.messages")
    monkeypatch.chdir(tmp_path)
    assert open_table("db.messages").uri == str(tmp_path / "db.messages")


def test_a_name_without_a_session_tells_how_to_name_a_catalog() -> None:
    with pytest.raises(TableNotFound) as raised:
        open_table("db.messages")
    assert raised.value.remedy.endswith("or pass spark=<session>.")
    assert error_line(raised.value) == (
        "TABLE_NOT_FOUND: There is no folder db.messages here. For a folder, write ./db.messages; "
        "for a catalog's table, glue://db.messages or hive://host:9083/db.messages."
    )


@pytest.mark.parametrize("text", ["", "  "])
def test_no_text_is_no_table(text: str) -> None:
    with pytest.raises(TableNotFound, match="The table's path is empty"):
        open_table(text)


@pytest.mark.parametrize(
    "text",
    [
        *("glue://messages", "glue://", "glue://db.", "glue://db/messages"),
        *("hive://db.messages", "hive://host", "hive://host:x/db.messages", "hive://host/messages"),
        *("hive:///db.messages", "hive://host:99999/db.messages"),
    ],
)
def test_a_malformed_name_is_refused_with_the_right_form(text: str) -> None:
    with pytest.raises(StorageUnsupported, match=r"does not name a table") as raised:
        open_table(text)
    assert raised.value.remedy.startswith("Write ")


@pytest.mark.parametrize(
    ("text", "module", "extra"),
    [
        ("glue://db.messages", "boto3", "glue"),
        ("hive://127.0.0.1/db.messages", "pymetastore", "hive"),
    ],
)
def test_a_missing_client_is_named_with_its_extra(
    text: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"hudi_index_service.catalog.{extra}", raising=False)
    for name in [each for each in sys.modules if each.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Without(module), *sys.meta_path])
    with pytest.raises(StorageUnsupported, match=f"the package {module} is not installed") as error:
        open_table(text)
    assert error.value.remedy == f"pip install 'hudi-index-service[{extra}]'."


class _Without:
    """Finds nothing of a package, as if it were not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.split(".")[0] == self._package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=self._package)


def test_what_a_catalog_says_decides_whether_it_is_a_hudi_table() -> None:
    base = {"is_view": False, "location": "/data/t"}
    by_provider = CatalogTable("t", **base, provider="HUDI")  # type: ignore[arg-type]
    by_format = CatalogTable(
        "t",
        **base,
        input_format="org.apache.hudi.hadoop.HoodieParquetInputFormat",  # type: ignore[arg-type]
    )
    assert by_provider.base_path() == by_format.base_path() == "/data/t"
    for other in (
        CatalogTable("t", **base),  # type: ignore[arg-type]
        CatalogTable("t", **base, provider="parquet"),  # type: ignore[arg-type]
        CatalogTable("t", is_view=True, location=None),
        CatalogTable("t", is_view=False, location=None, provider="hudi"),
    ):
        with pytest.raises(NotAHudiTable):
            other.base_path()


def test_the_read_optimized_view_of_a_table_is_refused() -> None:
    """Opened, its rows would silently include those in log files."""
    table = CatalogTable(
        "db.t_ro",
        is_view=False,
        location="/data/t",
        provider="hudi",
        serde={"hoodie.query.as.ro.table": "true"},
    )
    with pytest.raises(NotAHudiTable, match="the read-optimized view of the Hudi table at /data/t"):
        table.base_path_to_read()
    assert table.base_path() == "/data/t", "its indexes are the table's"


def test_a_hook_serves_a_table_by_its_name_too(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = golden("rfc_messages").put(tmp_path / "db.messages")
    monkeypatch.chdir(tmp_path)
    with IndexHook(["db.messages"]) as hook:
        assert hook.tables == (str(path),)
        assert hook.write_options("db.messages").keys() == hook.write_options(path).keys()


def test_a_hook_serves_a_folder_that_is_not_written_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableNotFound, match=r"There is no folder db\.messages here"):
        IndexHook(["db.messages"])
    assert IndexHook(["./db.messages"]).tables == (str(tmp_path / "db.messages"),)
