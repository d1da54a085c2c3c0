"""The fleet's file: which tables there are, and what is wanted of each."""
