"""Query execution: row ids, exact rows, scans, and the residual check on every row read."""
