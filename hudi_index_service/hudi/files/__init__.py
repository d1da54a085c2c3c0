"""The files of a file slice: base files as Parquet, and the blocks of log files."""
