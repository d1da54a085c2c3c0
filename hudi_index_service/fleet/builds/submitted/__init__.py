"""What spark-submit runs for a build of the fleet."""
