"""What the service tells of itself: attention, metrics, traces and logs."""
