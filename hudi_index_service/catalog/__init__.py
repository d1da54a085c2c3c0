"""Here is a table's name in Spark's catalog, the Hive metastore or Glue: where is the table?"""

from hudi_index_service.catalog.location import table_location

__all__ = ["table_location"]
