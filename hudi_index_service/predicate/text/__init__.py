"""Parsing of where texts."""
