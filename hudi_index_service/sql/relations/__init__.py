"""One Hudi relation of a query: decides whether an index pays, and builds the replacement."""
