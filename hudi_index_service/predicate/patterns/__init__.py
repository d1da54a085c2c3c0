"""Patterns of LIKE and RLIKE."""
