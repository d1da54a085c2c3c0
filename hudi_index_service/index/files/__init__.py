"""Copies the data files of entries from a remote store, and opens them."""
