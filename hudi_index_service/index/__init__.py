"""Index types behind one contract, and the entries they build (disk format: docs/format.md)."""
