"""Plain queries of a Spark session read Hudi tables through the index: answers the optimizer rule
of `native/spark_rule`, which asks while Spark plans a query and while it runs."""

from hudi_index_service.sql.rule.enable import enable, last_queries

__all__ = ["enable", "last_queries"]
