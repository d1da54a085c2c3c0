"""How well the optimizer decides: `make bench-optimizer`. See `benchmarks.optimizer.__main__`."""
