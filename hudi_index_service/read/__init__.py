"""Reading: row ids, exact rows, scans, and the residual that decides."""
