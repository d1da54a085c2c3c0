"""Brings a table's definitions to what the fleet's file says, in a child: a plan may need a JVM."""

from hudi_index_service.fleet.builds.messages import Order
from hudi_index_service.fleet.means import DefinitionsSeen
from hudi_index_service.table import IndexedTable


def define(table: IndexedTable, order: Order) -> DefinitionsSeen:
    """Plans the changes, and makes them if they are approved, or need not be.

    Raises:
        IndexServiceError: the table cannot be read, or written.
    """
    return DefinitionsSeen()
