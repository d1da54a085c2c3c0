"""An operator that builds: by spark-submit with a Spark connection, else in the Airflow worker."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import (
    AirflowFailException,
    AirflowNotFoundException,
    BaseHook,
)

from hudi_index_service.airflow.tasks import build_index
from hudi_index_service.errors import (
    BuildFailed,
    BuildInProgress,
    IndexChanged,
    IndexServiceError,
    SnapshotChanged,
    SnapshotUnavailable,
    StorageFailed,
)
from hudi_index_service.hook.write_options import read_write_config
from hudi_index_service.submit import APPLICATION

if TYPE_CHECKING:
    from airflow.sdk import Context

_MAY_PASS = (
    BuildFailed,
    BuildInProgress,
    IndexChanged,
    SnapshotChanged,
    SnapshotUnavailable,
    StorageFailed,
)
"""Errors that a retry may resolve; any other error fails the task at once."""

_HADOOP = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


class BuildIndexOperator(SparkSubmitOperator):
    """Builds what is due for a table.

    With the connection `conn_id`, spark-submit runs the build on the connection's Spark. Without
    it, the build runs on YARN, the default of Airflow's Spark provider, if ``HADOOP_CONF_DIR`` or
    ``YARN_CONF_DIR`` is set; otherwise in local threads of the Airflow worker.

    Args:
        table: Base path of the table; a template.
        strategy: ``incremental``, ``all`` or ``refresh``; ``auto`` for the strategy in
            ``hoodie.index.strategy``, or incremental; a template.
        hoodie_conf: ``hoodie.index.*`` keys, as lines ``key=value``, which override those that the
            table's writers stored; a template.
        options: As for `SparkSubmitOperator`.
    """

    template_fields: Sequence[str] = (
        *SparkSubmitOperator.template_fields,
        "table",
        "strategy",
        "hoodie_conf",
    )

    def __init__(
        self,
        *,
        table: str,
        strategy: str = "auto",
        hoodie_conf: str = "",
        conn_id: str = "spark_default",
        **options: Any,
    ) -> None:
        arguments = ("--table", table, "--strategy", strategy, "--hoodie-conf", hoodie_conf)
        super().__init__(
            application=str(APPLICATION),
            application_args=list(arguments),
            conn_id=conn_id,
            **options,
        )
        self.table = table
        self.strategy = strategy
        self.hoodie_conf = hoodie_conf
        self.conn_id = conn_id

    def execute(self, context: "Context") -> None:
        """Runs the build.

        Raises:
            AirflowFailException: the build failed and a retry would not help.
            IndexServiceError: nothing, or not everything, could be built in the worker.
            AirflowException: the Spark job failed.
        """
        master = self._master()
        if master is None:
            self.log.info(
                "Connection %s does not exist: the build runs in this worker, without Spark.",
                self.conn_id,
            )
            self._build_in_worker()
            return
        if master == "yarn" and not self._has_hadoop_config():
            raise AirflowFailException(
                f"The connection {self.conn_id} names the master yarn, and neither "
                f"{' nor '.join(_HADOOP)} is set on this worker. Set one of them, or set another "
                "master in the connection, or delete the connection to build in this worker."
            )
        try:
            super().execute(context)
        except FileNotFoundError as error:
            raise AirflowFailException(
                f"The connection {self.conn_id} needs Spark, but {error.filename} is not on this "
                "worker's PATH. Install pyspark, or delete the connection to build in this worker."
            ) from error

    def _master(self) -> str | None:
        """The Spark master, or "" if the connection names none; None to build in the worker."""
        try:
            return BaseHook.get_connection(self.conn_id).host or ""
        except AirflowNotFoundException:
            return "yarn" if self._has_hadoop_config() else None

    def _has_hadoop_config(self) -> bool:
        environment = {**os.environ, **(self.env_vars or {})}
        return any(environment.get(name) for name in _HADOOP)

    def _build_in_worker(self) -> None:
        try:
            count = build_index.function(
                self.table, self.strategy, hoodie_conf=read_write_config([self.hoodie_conf])
            )
        except _MAY_PASS:
            raise
        except IndexServiceError as error:
            raise AirflowFailException(str(error)) from error
        self.log.info("%s: built %d entries.", self.table, count)
