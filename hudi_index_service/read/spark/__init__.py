"""Returns a scan's rows as a DataFrame that Spark tasks read."""
