"""Index types, their contract, and the entries they build (disk format: docs/format.md)."""
