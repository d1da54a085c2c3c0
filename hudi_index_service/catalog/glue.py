"""Tables in AWS Glue's Data Catalog, through boto3.

Only this module imports boto3, which is installed with ``hudi-index-service[glue]``. Region,
credentials and endpoint are boto3's own: environment, ``~/.aws``, the machine's role.
"""

from collections.abc import Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

from hudi_index_service.catalog.entry import PROVIDER, CatalogTable
from hudi_index_service.errors import (
    CatalogFailed,
    IndexServiceError,
    PermissionDenied,
    TableNotFound,
)
from hudi_index_service.wording import first_line

_CLIENT = Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 3})
_REFUSED = ("AccessDenied", "UnrecognizedClient", "ExpiredToken", "InvalidSignature")


def glue_table(text: str, database: str, name: str) -> CatalogTable:
    """A table or view in Glue.

    Args:
        text: As the user wrote it.

    Raises:
        TableNotFound, PermissionDenied, CatalogFailed: see `table_location`.
    """
    try:
        client = boto3.client("glue", config=_CLIENT)
        table = client.get_table(DatabaseName=database, Name=name)["Table"]
    except (BotoCoreError, ClientError) as error:
        raise _failure(text, error) from error
    return _entry(text, table)


def glue_tables(text: str, database: str) -> list[tuple[str, CatalogTable]]:
    """The tables and views of a database in Glue, each with its name.

    Args:
        text: The database, as the user wrote it.

    Raises:
        TableNotFound: there is no such database.
        PermissionDenied, CatalogFailed: see `table_location`.
    """
    try:
        client = boto3.client("glue", config=_CLIENT)
        pages = client.get_paginator("get_tables").paginate(DatabaseName=database)
        found = [table for page in pages for table in page["TableList"]]
    except (BotoCoreError, ClientError) as error:
        raise _failure(text, error, "database", "glue:GetTables") from error
    return [(table["Name"], _entry(f"{text}.{table['Name']}", table)) for table in found]


def _entry(text: str, table: Mapping[str, Any]) -> CatalogTable:
    storage = table.get("StorageDescriptor", {})
    return CatalogTable(
        text,
        is_view=table.get("TableType") == "VIRTUAL_VIEW",
        location=storage.get("Location") or None,
        provider=table.get("Parameters", {}).get(PROVIDER),
        input_format=storage.get("InputFormat"),
        serde=storage.get("SerdeInfo", {}).get("Parameters", {}),
    )


def _failure(
    text: str, error: Exception, noun: str = "table", permission: str = "glue:GetTable"
) -> IndexServiceError:
    if isinstance(error, NoRegionError):
        return CatalogFailed(f"{text}: no AWS region is set.", remedy="Set AWS_REGION.")
    if isinstance(error, NoCredentialsError):
        return CatalogFailed(
            f"{text}: no AWS credentials are found.",
            remedy="Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        )
    code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
    if code == "EntityNotFoundException":
        return TableNotFound(
            f"Glue has no {noun} {text}.", remedy="Check its name, and AWS_REGION."
        )
    if code.startswith(_REFUSED):
        return PermissionDenied(
            f"{text}: Glue refuses the request: {first_line(error)}.",
            remedy=f"Give these credentials the permission {permission}.",
        )
    return CatalogFailed(f"{text}: Glue does not answer as expected: {first_line(error)}.")
