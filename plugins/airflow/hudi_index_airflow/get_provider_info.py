"""What Airflow asks of a provider: the entry point ``apache_airflow_provider``."""

from typing import Any

_NAME = "Hudi Index"
_TEXT = {"type": ["string", "null"]}


UI_FIELD_BEHAVIOUR: dict[str, Any] = {
    "hidden-fields": ["schema", "login"],
    "relabeling": {"host": "Service address, or Spark master", "password": "Token"},
    "placeholders": {
        "host": "https://indexes.example.com, yarn, spark://master:7077",
        "port": "7052",
        "password": "a token with the role operate",
    },
}
"""The form of a connection, as the provider's information names its parts."""


def get_provider_info() -> dict[str, Any]:
    """The provider's parts, as Airflow's ``provider_info.schema.json`` describes them."""

    def modules(*names: str) -> list[dict[str, Any]]:
        paths = [f"hudi_index_airflow.{name}" for name in names]
        return [{"integration-name": _NAME, "python-modules": paths}]

    return {
        "package-name": "airflow-provider-hudi-index",
        "name": _NAME,
        "description": "Row-level indexes of Apache Hudi tables, by hudi-index-service.",
        "integrations": [
            {
                "integration-name": _NAME,
                "external-doc-url": "https://hudi.apache.org/",
                "tags": ["software"],
            }
        ],
        "hooks": modules("hook"),
        "operators": modules("operators"),
        "sensors": modules("sensor"),
        "triggers": modules("trigger"),
        "extra-links": ["hudi_index_airflow.links.TablePageLink"],
        "connection-types": [
            {
                "hook-class-name": "hudi_index_airflow.hook.HudiIndexHook",
                "hook-name": _NAME,
                "connection-type": "hudi_index",
                "ui-field-behaviour": UI_FIELD_BEHAVIOUR,
                "conn-fields": {
                    "run_by": {
                        "label": "Run by",
                        "description": "service, spark-submit, or worker (this Airflow's own). "
                        "Without: the service if there is a host, otherwise the worker.",
                        "schema": _TEXT,
                    },
                    "ca_file": {
                        "label": "CA file",
                        "description": "For the service: the file of certificates to trust, on the "
                        "worker and the triggerer.",
                        "schema": _TEXT,
                    },
                    "deploy_mode": {
                        "label": "Deploy mode",
                        "description": "For spark-submit: client, or on YARN cluster.",
                        "schema": _TEXT,
                    },
                    "spark_binary": {
                        "label": "Spark binary",
                        "description": "For spark-submit: the command, by default spark-submit.",
                        "schema": _TEXT,
                    },
                    "application": {
                        "label": "Application",
                        "description": "For spark-submit: path or URI of submit/spark.py, where "
                        "hudi-index-service is not installed beside Airflow.",
                        "schema": _TEXT,
                    },
                    "resource_manager": {
                        "label": "YARN ResourceManager",
                        "description": "For the deploy mode cluster: http://rm.example.com:8088.",
                        "schema": _TEXT,
                    },
                },
            }
        ],
    }
