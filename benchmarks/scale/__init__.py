"""The service on tables of one to ten thousand base files: `make bench-scale`."""
