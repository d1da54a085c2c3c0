"""How the service does on tables of one to ten thousand base files: `make bench-scale`."""
