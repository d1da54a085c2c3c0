"""The demo: writes, clusters, compacts, indexes, queries and cleans real Hudi tables, and compares
every answer with plain Spark's."""
