"""Builds: find the base files that are due, build their entries, and publish them."""
