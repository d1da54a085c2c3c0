"""Locates record keys: their file slices and row positions."""
