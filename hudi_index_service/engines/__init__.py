"""Tables for engines without Spark: a LazyFrame for Polars, a dataset for DuckDB and Arrow."""
