"""SQL: queries of a Spark session through the index, and index statements.

>>> from hudi_index_service.sql import IndexSession, enable
>>> enable(spark)
>>> spark.table("messages").where("sender = 'UserA'").show()
>>> session = IndexSession(spark)
>>> session.sql("CREATE INDEX by_sender ON messages USING lucene (sender, msg)")
>>> session.sql("OPTIMIZE TABLE messages STRATEGY ALL").show()
"""

# ruff: noqa: E402

from hudi_index_service.spark_session import require_pyspark

require_pyspark()  # what follows imports it, and would fail in its terms, or later

from hudi_index_service.sql.rule import enable, last_queries
from hudi_index_service.sql.session import IndexSession

__all__ = ["IndexSession", "enable", "last_queries"]
