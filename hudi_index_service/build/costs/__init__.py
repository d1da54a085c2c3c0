"""What a build costs, estimated before it: from the table's past builds, or from a sample."""
