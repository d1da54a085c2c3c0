"""SQL: index statements, in addition to all statements of the Spark session; and plain queries of a
session through the index.

>>> from hudi_index_service.sql import IndexSession, enable
>>> session = IndexSession(spark)
>>> session.sql("CREATE INDEX by_sender ON messages USING lucene (sender, msg)")
>>> session.sql("OPTIMIZE TABLE messages STRATEGY ALL").show()
>>> enable(spark)
>>> spark.table("messages").where("sender = 'UserA'").show()
"""

from hudi_index_service.sql.rule import enable, last_queries
from hudi_index_service.sql.session import IndexSession

__all__ = ["IndexSession", "enable", "last_queries"]
