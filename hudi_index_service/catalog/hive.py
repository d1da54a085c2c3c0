"""Tables in a Hive metastore, through the Thrift client of pymetastore.

Only this module imports pymetastore and Thrift, which are installed with
``hudi-index-service[hive]``. Metastores that require Kerberos are not supported.
"""

import socket
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
    try:
        with socket.create_connection((host, port), _TIMEOUT_SECONDS) as connection:
            table = _table(connection, database, name)
    except NoSuchObjectException as error:
        raise TableNotFound(
            f"The metastore at {host}:{port} has no table {database}.{name}.",
            remedy="Check database and table.",
        ) from error
    except (TException, OSError, EOFError) as error:
        raise CatalogFailed(
            f"The metastore at {host}:{port} does not answer: {reason(error)}.",
            remedy="Check host and port, which is mostly 9083. A metastore that requires Kerberos "
            "is not supported.",
        ) from error
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


def _table(connection: socket.socket, database: str, name: str) -> Any:
    # TSocket's own open would log a failure with its traceback.
    handle = TSocket()
    handle.setHandle(connection)
    client = ThriftHiveMetastore.Client(TBinaryProtocol(TBufferedTransport(handle)))
    # get_table is not there in every Hive 4; this is, since Hive 2.3.
    return client.get_table_req(GetTableRequest(dbName=database, tblName=name)).table
