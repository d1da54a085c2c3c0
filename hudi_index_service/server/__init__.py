"""The callback listener as a process of its own, for writers that are no Python programs."""
