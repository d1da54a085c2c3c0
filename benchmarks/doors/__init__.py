"""Reads by HTTP, by agents, by Polars and DuckDB: `make bench-doors`."""
