"""Building: which base files are due, building their entries, publishing them."""
