"""The benchmark of a fleet of tables: see `benchmarks.fleet.__main__`."""
