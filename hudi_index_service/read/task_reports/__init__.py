"""What Spark tasks tell the driver of the slices that they have read."""
