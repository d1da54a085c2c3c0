"""Sorts, merges and writes the keys of a B+ tree."""
