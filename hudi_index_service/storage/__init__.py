"""Bytes under a table: create exclusively, read ranges, list, delete."""
