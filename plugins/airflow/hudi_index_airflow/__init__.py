"""Airflow's provider for hudi-index-service. Its core talks to a running service, and needs neither
Java, nor Spark, nor the service's own package. The extra ``local`` brings that, for builds in the
worker."""

__version__ = "0.1.0"
