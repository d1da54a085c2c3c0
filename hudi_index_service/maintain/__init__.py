"""Operations on an existing index: change it, check it, and remove unused files."""
