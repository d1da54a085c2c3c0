"""The hook: a connection, and the three ways to run that it may stand for."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

from hudi_index_airflow.errors import HudiIndexError, HudiIndexFailed
from hudi_index_airflow.get_provider_info import UI_FIELD_BEHAVIOUR
from hudi_index_airflow.service import Instant, ServiceClient
from hudi_index_airflow.spark import SparkSubmit
from hudi_index_airflow.worker import Worker

SERVICE, SPARK, WORKER = WAYS = "service", "spark-submit", "worker"
"""The three ways to run."""


@dataclass(frozen=True)
class Target:
    """What a connection says.

    Attributes:
        way: One of `WAYS`.
        host: The service's URL, or Spark's master.
        extra: The further fields.
    """

    way: str
    host: str
    token: str
    extra: dict[str, Any]


class HudiIndexHook(BaseHook):
    """Asks the service, spark-submit or this worker's own hudi-index-service, as the connection
    says. Without a connection of the default name: this worker.

    Args:
        hudi_index_conn_id: A connection of the type ``hudi_index``; or of ``spark``, which stands
            for spark-submit with that master.
        patience: For how many seconds a service that does not answer is asked again.
    """

    conn_name_attr = "hudi_index_conn_id"
    default_conn_name = "hudi_index_default"
    conn_type = "hudi_index"
    hook_name = "Hudi Index"

    def __init__(
        self, hudi_index_conn_id: str = default_conn_name, *, patience: float = 120.0
    ) -> None:
        super().__init__()
        self.conn_id = hudi_index_conn_id
        self._patience = patience

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """The form of a connection, for releases of Airflow that ask the hook for it."""
        return {name.replace("-", "_"): each for name, each in UI_FIELD_BEHAVIOUR.items()}

    @cached_property
    def target(self) -> Target:
        """What the connection says.

        Raises:
            HudiIndexFailed: it is wrong.
            AirflowNotFoundException: there is none, and it is not the default one.
        """
        try:
            connection = self.get_connection(self.conn_id)
        except AirflowNotFoundException:
            if self.conn_id != self.default_conn_name:
                raise
            return Target(WORKER, "", "", {})
        extra = dict(connection.extra_dejson)
        host = connection.host or ""
        default = SPARK if connection.conn_type == "spark" else SERVICE if host else WORKER
        way = extra.get("run_by") or default
        if way not in WAYS:
            raise self._wrong(f"run_by is {way!r}", f"Write one of {', '.join(WAYS)}.")
        if way == WORKER:
            return Target(way, "", "", extra)
        if not host:
            raise self._wrong("it names no host", "Write the service's URL, or Spark's master.")
        if way == SERVICE and "://" not in host:
            host = f"{connection.schema or 'https'}://{host}"
        if connection.port:
            host = f"{host.rstrip('/')}:{connection.port}"
        return Target(way, host, connection.password or "", extra)

    @cached_property
    def service(self) -> ServiceClient:
        """The client of the service."""
        if self.target.way != SERVICE:
            raise self._wrong(f"it runs by {self.target.way}", "This needs a running service.")
        ca_file = self.target.extra.get("ca_file") or None
        return ServiceClient(
            self.target.host, self.target.token, ca_file=ca_file, patience=self._patience
        )

    @cached_property
    def worker(self) -> Worker:
        """What this worker's own hudi-index-service does."""
        return Worker(self.target.extra.get("storage_options") or {})

    def spark(
        self, *, conf: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None
    ) -> SparkSubmit:
        """spark-submit on the connection's Spark, with settings of Spark and variables of the
        environment."""
        if self.target.way != SPARK:
            raise self._wrong(f"it runs by {self.target.way}", "This needs a connection to Spark.")
        return SparkSubmit(self.target.host, self.target.extra, conf=conf, env=env)

    def get_conn(self) -> ServiceClient:
        """The client of the service."""
        return self.service

    def instants(self, table: str) -> list[Instant]:
        """The last completed instants of a table, newest first.

        Args:
            table: Its base path, or with the service its name in the fleet.

        Raises:
            TableMissing: there is no such table.
            HudiIndexError: it cannot be read.
        """
        if self.target.way == SERVICE:
            return self.service.instants(table)
        return self.worker.instants(table)

    def test_connection(self) -> tuple[bool, str]:
        """Whether what the connection stands for is there; and what was found, in a sentence."""
        try:
            return True, self._found()
        except (HudiIndexError, AirflowNotFoundException) as error:
            return False, str(error)

    def _found(self) -> str:
        if self.target.way == SERVICE:
            tables = len(self.service.tables())
            return f"The service at {self.target.host} has {tables} tables for this token."
        if self.target.way == SPARK:
            return f"{self.spark().check()} is here; it submits to {self.target.host}."
        return f"Builds run in the worker, by hudi-index-service {self.worker.version}."

    def _wrong(self, what: str, remedy: str) -> HudiIndexFailed:
        return HudiIndexFailed("CONFIG_INVALID", f"The connection {self.conn_id}: {what}.", remedy)
