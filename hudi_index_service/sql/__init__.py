"""SQL: index statements, in addition to all statements of the Spark session.

>>> from hudi_index_service.sql import IndexSession
>>> session = IndexSession(spark)
>>> session.sql("CREATE INDEX by_sender ON messages USING lucene (sender, msg)")
>>> session.sql("OPTIMIZE TABLE messages STRATEGY ALL").show()
"""

from hudi_index_service.sql.session import IndexSession

__all__ = ["IndexSession"]
