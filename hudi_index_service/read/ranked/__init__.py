"""Ranked full-text search."""
