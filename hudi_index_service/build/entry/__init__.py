"""Builds the index entry of one base file."""
