"""Estimates how many rows match a predicate: guaranteed bounds and an expected number."""
