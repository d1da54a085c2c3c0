"""The demo: real Hudi tables are written, clustered, compacted, indexed, queried and cleaned, and
every answer is compared with plain Spark's."""
