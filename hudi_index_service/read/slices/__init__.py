"""Reads one file slice: the rows that its index finds, or a scan where that is cheaper."""
