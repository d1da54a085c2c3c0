"""The pages of a fleet, made on the server: a list of tables, and a page for each."""
