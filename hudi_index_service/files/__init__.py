"""Files to copy or to pass on, which the wheel holds too: DAGs for Airflow, the options for
Hudi's writes, the settings of the service with their defaults, a fleet file.

>>> from hudi_index_service.files import DAG, SERVICE_SETTINGS, WRITE_OPTIONS
>>> DAG.name, SERVICE_SETTINGS.name, WRITE_OPTIONS.name
('hudi_index.py', 'service.yaml', 'hudi-write.properties')
>>> from hudi_index_service.files import FLEET_FILE, FLEET_SCHEMA
>>> FLEET_FILE.name, FLEET_SCHEMA.name
('fleet.yaml', 'fleet.schema.json')
"""

from pathlib import Path

# In the repository these folders are links to those at its top.
_FOLDER = Path(__file__).parent

DAGS = _FOLDER / "dags"
"""For the DAGs folder of Airflow 3, with its provider for indexes."""

DAG = DAGS / "hudi_index.py"
"""The one of them that keeps the table up to date with which it is triggered."""

ALERT_RULES = _FOLDER / "configs" / "prometheus" / "alerts.yaml"
"""Alert rules for Prometheus, on the service's metrics."""

DASHBOARD = _FOLDER / "configs" / "grafana" / "dashboard.json"
"""A dashboard of these metrics, to import into Grafana."""

WRITE_OPTIONS = _FOLDER / "configs" / "hudi-write.properties"
"""Options of a write by Hudi that wakes the service."""

SERVICE_SETTINGS = _FOLDER / "configs" / "service.yaml"
"""Every setting with its default; ``HUDI_INDEX_CONFIG`` names a copy."""

FLEET_FILE = _FOLDER / "configs" / "fleet.yaml"
"""An example of a fleet file, with a word on each key."""

FLEET_SCHEMA = _FOLDER / "configs" / "fleet.schema.json"
"""The JSON schema of fleet files, for editors."""
