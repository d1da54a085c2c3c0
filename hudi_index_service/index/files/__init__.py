"""Packs the data files of an entry, copies them from a remote store, and opens them."""
