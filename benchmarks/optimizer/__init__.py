"""The optimizer's decisions: `make bench-optimizer`. See `benchmarks.optimizer.__main__`."""
