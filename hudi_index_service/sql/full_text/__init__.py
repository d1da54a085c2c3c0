"""What full-text functions mean for the texts of a column."""
