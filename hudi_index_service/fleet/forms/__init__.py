"""The service of a fleet for tables that are named as arguments, without a fleet file: each form
does a part of what it does."""
