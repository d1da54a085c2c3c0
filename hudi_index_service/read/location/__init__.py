"""Record keys located by Spark."""
