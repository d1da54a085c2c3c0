"""Operations on an existing index: change it, check it, and remove unused files."""

DEFAULT_SAMPLE = 20
"""Number of rows of each base file whose values `verify` looks up."""
