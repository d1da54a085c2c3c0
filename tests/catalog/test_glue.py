"""Tables by their names in AWS Glue's Data Catalog, which moto plays."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from hudi_index_service import open_table
from hudi_index_service.catalog import tables_in_glue
from hudi_index_service.errors import (
    CatalogFailed,
    NotAHudiTable,
    PermissionDenied,
    TableNotFound,
)
from tests.golden.table import Golden
from tests.programs import Command

HUDI = {
    "InputFormat": "org.apache.hudi.hadoop.HoodieParquetInputFormat",
    "SerdeInfo": {"Parameters": {"hoodie.query.as.ro.table": "false"}},
}


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The catalog, with the database db."""
    for name, value in {
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_CONFIG_FILE": "/nowhere",
        "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        client = boto3.client("glue")
        client.create_database(DatabaseInput={"Name": "db"})
        yield client


def put(glue: Any, name: str, *, type: str = "EXTERNAL_TABLE", **storage: Any) -> None:
    glue.create_table(
        DatabaseName="db",
        TableInput={"Name": name, "TableType": type, "StorageDescriptor": storage},
    )


def test_a_table_is_opened_by_its_name(golden: Golden, tmp_path: Path, glue: Any) -> None:
    path = golden("rfc_messages").put(tmp_path / "messages")
    put(glue, "messages", Location=f"file:{path}", **HUDI)
    table = open_table("glue://db.messages")
    assert table.uri == str(path)
    assert table.scan().count() == golden("rfc_messages").rows().num_rows


def test_commands_take_the_name(
    golden: Golden, tmp_path: Path, glue: Any, command: Command
) -> None:
    path = golden("rfc_messages").put(tmp_path / "messages")
    put(glue, "messages", Location=str(path), **HUDI)
    command("create", "glue://db.messages", "by_id", "id")
    command("status", "glue://db.messages")
    assert command("query", "glue://db.messages", "id = '1'", "--count") == "1\n"


def test_the_tables_of_a_database(glue: Any) -> None:
    for number in range(3):
        put(glue, f"t{number}", Location=f"s3://bucket/t{number}", **HUDI)
    put(glue, "seen", type="VIRTUAL_VIEW")
    found = dict(tables_in_glue("db"))
    assert sorted(found) == ["seen", "t0", "t1", "t2"]
    assert (found["t1"].name, found["t1"].base_path()) == ("glue://db.t1", "s3://bucket/t1")
    assert found["seen"].is_view
    with pytest.raises(TableNotFound, match="Glue has no database glue://bd"):
        tables_in_glue("bd")


def test_an_unknown_table_and_an_unknown_database_are_not_found(glue: Any) -> None:
    for text in ("glue://db.massages", "glue://bd.messages"):
        with pytest.raises(TableNotFound, match=f"Glue has no table {text}"):
            open_table(text)


def test_a_view_a_table_of_another_format_and_a_read_optimized_view_are_refused(glue: Any) -> None:
    put(glue, "seen", type="VIRTUAL_VIEW")
    put(glue, "plain", Location="s3://bucket/plain", InputFormat="org.apache.hadoop.hive.ql.io.X")
    ro = {"Parameters": {"hoodie.query.as.ro.table": "true"}}
    put(glue, "t_ro", Location="s3://bucket/t", **{**HUDI, "SerdeInfo": ro})
    for name, reason in (
        ("seen", "is a view"),
        ("plain", "is not a Hudi table"),
        ("t_ro", "is the read-optimized view of the Hudi table at s3://bucket/t"),
    ):
        with pytest.raises(NotAHudiTable, match=reason):
            open_table(f"glue://db.{name}")


def test_a_missing_region_is_named(glue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    with pytest.raises(CatalogFailed, match="no AWS region is set") as raised:
        open_table("glue://db.messages")
    assert raised.value.remedy == "Set AWS_REGION."


def test_missing_credentials_are_named(glue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    boto3.setup_default_session()
    with pytest.raises(CatalogFailed, match="no AWS credentials are found"):
        open_table("glue://db.messages")


def answer(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "No."}}, "GetTable")


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (answer("AccessDeniedException"), PermissionDenied, r"glue://db\.messages"),
        (answer("Internal"), CatalogFailed, r"glue://db\.messages"),
        (
            EndpointConnectionError(endpoint_url="https://glue.eu-west-1.amazonaws.com/"),
            *(CatalogFailed, "Could not connect to the endpoint URL"),
        ),
    ],
)
def test_what_glue_refuses_is_told_from_what_it_fails_at(
    raised: Exception,
    kind: type[Exception],
    message: str,
    glue: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", fail)
    with pytest.raises(kind, match=message):
        open_table("glue://db.messages")
