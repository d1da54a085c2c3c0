"""Index entries: which base file they serve, what they hold, and how long they are kept."""
