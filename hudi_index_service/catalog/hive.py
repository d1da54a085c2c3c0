"""Tables in a Hive metastore, through the Thrift client of pymetastore.

Only this module imports pymetastore and Thrift, which are installed with
``hudi-index-service[hive]``. Metastores that require Kerberos are not supported.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pymetastore.hive_metastore import ThriftHiveMetastore
from pymetastore.hive_metastore.ttypes import GetTableRequest, NoSuchObjectException
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from hudi_index_service.catalog.entry import PROVIDER, CatalogTable
from hudi_index_service.errors import CatalogFailed, TableNotFound
from hudi_index_service.wording import reason

_TIMEOUT_SECONDS = 20.0


def hive_table(text: str, host: str, port: int, database: str, name: str) -> CatalogTable:
    """A table or view in a Hive metastore.

    Args:
        text: As the user wrote it.

    Raises:
        TableNotFound, CatalogFailed: see `table_location`.
    """
    missing = TableNotFound(
        f"The metastore at {host}:{port} has no table {database}.{name}.",
        remedy="Check database and table.",
    )
    with _client(host, port, missing) as client:
        return _entry(text, _table(client, database, name))


def hive_tables(text: str, host: str, port: int, database: str) -> list[tuple[str, CatalogTable]]:
    """The tables and views of a database in a Hive metastore, each with its name.

    Args:
        text: The database, as the user wrote it.

    Raises:
        TableNotFound: there is no such database.
        CatalogFailed: see `table_location`.
    """
    missing = TableNotFound(
        f"The metastore at {host}:{port} has no database {database}.", remedy="Check its name."
    )
    found = []
    with _client(host, port, missing) as client:
        client.get_database(database)  # else one that is missing looks empty
        for name in sorted(client.get_all_tables(database)):
            with suppress(NoSuchObjectException):  # dropped meanwhile
                found.append((name, _entry(f"{text}.{name}", _table(client, database, name))))
    return found


def _entry(text: str, table: Any) -> CatalogTable:
    parameters = table.parameters or {}
    serde = table.sd.serdeInfo.parameters if table.sd.serdeInfo else {}
    return CatalogTable(
        text,
        is_view=table.tableType == "VIRTUAL_VIEW",
        location=table.sd.location or None,
        provider=parameters.get(PROVIDER),
        input_format=table.sd.inputFormat,
        serde=serde or {},
    )


@contextmanager
def _client(host: str, port: int, missing: TableNotFound) -> Iterator[Any]:
    """A metastore's client; `missing` is the error if it does not have what is asked for."""
    try:
        with socket.create_connection((host, port), _TIMEOUT_SECONDS) as connection:
            # TSocket's own open would log a failure with its traceback.
            handle = TSocket()
            handle.setHandle(connection)
            yield ThriftHiveMetastore.Client(TBinaryProtocol(TBufferedTransport(handle)))
    except NoSuchObjectException as error:
        raise missing from error
    except (TException, OSError, EOFError) as error:
        raise CatalogFailed(
            f"The metastore at {host}:{port} does not answer: {reason(error)}.",
            remedy="Check host and port, which is mostly 9083. A metastore that requires Kerberos "
            "is not supported.",
        ) from error


def _table(client: Any, database: str, name: str) -> Any:
    # get_table is not there in every Hive 4; this is, since Hive 2.3.
    return client.get_table_req(GetTableRequest(dbName=database, tblName=name)).table
