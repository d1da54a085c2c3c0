"""A Hudi table read through hudi-rs, without Spark."""
