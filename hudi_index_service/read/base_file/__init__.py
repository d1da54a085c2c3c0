"""Reads the rows of a base file by row id or by predicate."""
