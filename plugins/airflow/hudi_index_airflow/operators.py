"""Operators: each does one thing with a table, by the service, by spark-submit or in the worker, as
the connection says."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseOperator, ResumableJobMixin, conf

from hudi_index_airflow.assets import names_of, tell
from hudi_index_airflow.errors import HudiIndexFailed, error_of
from hudi_index_airflow.hook import SERVICE, SPARK, HudiIndexHook
from hudi_index_airflow.jobs import (
    ACTIVE,
    SUCCEEDED,
    Job,
    ServiceJob,
    YarnJob,
    key_of,
    round_of,
)
from hudi_index_airflow.links import TablePageLink
from hudi_index_airflow.spark import SparkSubmit
from hudi_index_airflow.trigger import HudiIndexRequestTrigger
from hudi_index_airflow.worker import Worker

if TYPE_CHECKING:
    from airflow.sdk import Context


class HudiIndexOperator(ResumableJobMixin, BaseOperator):
    """What the operators have in common.

    A request to the service, and an application in YARN's cluster mode, outlive the worker: the
    next try finds them by their id, or by a key that all tries of this task share, and asks for no
    second one. Faults on the way to the service are tried again for `patience` seconds. Errors that
    may pass leave it to Airflow's ``retries``; any other fails the task at once.

    Args:
        table: The table's base path, or with the service its name in the fleet; a template.
        hudi_index_conn_id: See `HudiIndexHook`; a template.
        deferrable: Whether the triggerer waits for the service, and no slot of a worker does. For
            the service alone.
        poll_interval: The seconds between the triggerer's looks at the request.
        patience: The seconds for which a service that does not answer is asked again.
        spark_conf: Spark's settings, for spark-submit; a template.
        env_vars: Further environment variables, for spark-submit; a template.
        options: As for `BaseOperator`; ``durable=False`` forgets the id of an earlier try.
    """

    template_fields: Sequence[str] = ("table", "hudi_index_conn_id", "spark_conf", "env_vars")
    operator_extra_links = (TablePageLink(),)
    ui_color = "#dcecf7"

    def __init__(
        self,
        *,
        table: str,
        hudi_index_conn_id: str = HudiIndexHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: float = 10.0,
        patience: float = 120.0,
        spark_conf: Mapping[str, str] | None = None,
        env_vars: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.table = table
        self.hudi_index_conn_id = hudi_index_conn_id
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.patience = patience
        self.spark_conf = spark_conf
        self.env_vars = env_vars
        self._id: str | None = None
        self._uri: str | None = None
        self._is_killed = False

    @abstractmethod
    def _request(self) -> tuple[str, dict[str, object]]:
        """The service's action, and the body of the request."""

    @abstractmethod
    def _in_worker(self, worker: Worker) -> dict[str, Any]:
        """Does it in this process."""

    def _arguments(self) -> list[str] | None:
        """The arguments of the application for spark-submit; None for what it does not do, which
        then runs in the worker."""
        return None

    @cached_property
    def hook(self) -> HudiIndexHook:
        """The hook."""
        return HudiIndexHook(self.hudi_index_conn_id, patience=self.patience)

    def execute(self, context: "Context") -> dict[str, Any]:
        """Does it, and returns the id and what was counted.

        Raises:
            HudiIndexFailed: it failed, and a retry would not help.
            HudiIndexError: it failed, and a retry may help.
        """
        if self._by_service:
            self._link(context)
            if self.deferrable:
                self._id = self._job.submit(key_of(context))
                self._defer()
        if self._by_service or (self._spark is not None and self._spark.is_cluster):
            self.external_id_key = f"hudi_index_id_{round_of(context)}"
            return self._done(context, self.execute_resumable(context))
        if self._spark is not None:
            return self._done(context, self._spark.run(self._name, self._arguments() or ()))
        return self._done(context, self._in_worker(self.hook.worker))

    def execute_complete(self, context: "Context", event: dict[str, Any]) -> dict[str, Any]:
        """Goes on once the triggerer has seen the end of the request."""
        if error := event.get("error"):
            raise error_of(**error)
        assert isinstance(self._job, ServiceJob)
        self._link(context)
        return self._done(context, self._job.result(event["build"]))

    def on_kill(self) -> None:
        """Cancels what was begun. A deferred task's request is cancelled by its trigger."""
        self._is_killed = True
        if self._id is not None:
            self._job.cancel(self._id)
        elif (spark := self.__dict__.get("_spark")) is not None:
            spark.cancel()
        elif "hook" in self.__dict__:
            self.hook.worker.cancel()

    # --- what `ResumableJobMixin` asks ------------------------------------------------------

    def submit_job(self, context: "Context") -> str:
        """Submits, once for all tries."""
        self._id = self._job.submit(key_of(context))
        self.log.info("%s: submitted %s.", self.table, self._id)
        if self._is_killed:  # while it was submitted
            self._job.cancel(self._id)
        return self._id

    def get_job_status(self, external_id: Any, context: "Context") -> str:
        """See `Job.status`."""
        return self._job.status(external_id)

    def is_job_active(self, status: str) -> bool:
        """Whether it waits or runs."""
        return status == ACTIVE

    def is_job_succeeded(self, status: str) -> bool:
        """Whether it ended well."""
        return status == SUCCEEDED

    def poll_until_complete(self, external_id: Any, context: "Context") -> Any:
        """Waits for the end. The mixin takes this result when it has found an earlier try's job."""
        self._id = external_id
        self._result = self._job.wait(external_id)
        return self._result

    def get_job_result(self, external_id: Any, context: "Context") -> Any:
        """What it counted."""
        found = self.__dict__.get("_result")
        return self._job.wait(external_id) if found is None else found

    # ----------------------------------------------------------------------------------------

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """The table is read, and its index written. None without OpenLineage's provider."""
        try:
            from airflow.providers.common.compat.openlineage.facet import Dataset
            from airflow.providers.openlineage.extractors import OperatorLineage
        except ImportError:
            return None
        if self._uri is None:
            return OperatorLineage()
        table, index = (Dataset(namespace=space, name=name) for space, name in names_of(self._uri))
        return OperatorLineage(inputs=[table], outputs=[index])

    @property
    def _by_service(self) -> bool:
        return self.hook.target.way == SERVICE

    @cached_property
    def _spark(self) -> SparkSubmit | None:
        """What submits it to Spark; None if it runs elsewhere."""
        if self.hook.target.way != SPARK or self._arguments() is None:
            return None
        return self.hook.spark(conf=self.spark_conf, env=self.env_vars)

    @cached_property
    def _job(self) -> Job:
        if self._spark is not None:
            return YarnJob(self._spark, self._name, self._arguments() or ())
        action, body = self._request()
        name = self.hook.service.name_of(self.table)
        return ServiceJob(self.hook.service, name, action, body)

    @property
    def _name(self) -> str:
        return f"{self.dag_id}.{self.task_id}"

    def _defer(self) -> None:
        trigger = HudiIndexRequestTrigger(
            request=self._id or "",
            hudi_index_conn_id=self.hudi_index_conn_id,
            patience=self.patience,
            poll_interval=self.poll_interval,
        )
        self._id = None  # from here on the trigger cancels it
        self.defer(trigger=trigger, method_name="execute_complete")

    def _link(self, context: "Context") -> None:
        service = self.hook.service
        name = service.name_of(self.table)
        self._uri = service.table(name)["uri"]
        link = TablePageLink()
        context["ti"].xcom_push(key=link.xcom_key, value=service.page(name))

    def _done(self, context: "Context", result: dict[str, Any]) -> dict[str, Any]:
        self._id = None
        self._uri = self._uri or self.table
        result = {"table": self.table, **result}
        self.log.info("%s: %s", self.table, result)
        tell(context, self.outlets, result)
        return result


class HudiIndexBuildOperator(HudiIndexOperator):
    """Builds the entries that are due; the next build goes on where one broke off.

    Args:
        strategy: ``incremental``, ``all`` or ``refresh``; ``auto`` for that of the table's keys or
            the fleet's file; a template.
        hoodie_conf: Keys ``hoodie.index.*`` as lines ``key=value``, which override those that the
            table's writers stored; a template. Not for the service, whose fleet file has them.
        partitions: The partitions to build, by path or pattern; None for all; a template. Not for
            the service, which builds whole tables.
        budget: ``files``, ``bytes``, ``minutes``, ``requests_per_second``: the next build goes on
            where this one stopped. Not for the service, whose fleet file has it.
        options: As for `HudiIndexOperator`.

    Returns ``table``, ``build_id``, ``built`` (entries), and what else is known: ``left``,
    ``instant`` (of the snapshot that was covered), ``summary``.
    """

    template_fields: Sequence[str] = (
        *HudiIndexOperator.template_fields,
        "strategy",
        "hoodie_conf",
        "partitions",
    )

    def __init__(
        self,
        *,
        strategy: str = "auto",
        hoodie_conf: str = "",
        partitions: Sequence[str] | str | None = None,
        budget: Mapping[str, float] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.strategy = strategy
        self.hoodie_conf = hoodie_conf
        self.partitions = partitions
        self.budget = budget

    def _request(self) -> tuple[str, dict[str, object]]:
        given = {"hoodie_conf": self.hoodie_conf.strip(), "partitions": self.partitions}
        for name, value in {**given, "budget": self.budget}.items():
            if value:
                raise HudiIndexFailed(
                    "CONFIG_INVALID",
                    f"The service builds as its fleet file says: {name} is not for it.",
                    "Set it there, or name a connection to spark-submit or the worker.",
                )
        return "builds", {} if self.strategy == "auto" else {"strategy": self.strategy}

    def _in_worker(self, worker: Worker) -> dict[str, Any]:
        return worker.build(
            self.table,
            strategy=self.strategy,
            hoodie_conf=self.hoodie_conf,
            partitions=self._partitions or None,
            budget=self.budget or {},
        )

    def _arguments(self) -> list[str]:
        arguments = ["--table", self.table, "--strategy", self.strategy, "--require-index"]
        if self.hoodie_conf.strip():
            arguments += ["--hoodie-conf", self.hoodie_conf]
        for each in self._partitions:
            arguments += ["--partition", each]
        for name, value in (self.budget or {}).items():
            option = name if name == "requests_per_second" else f"max_{name}"
            arguments += [f"--{option.replace('_', '-')}", str(value)]
        return arguments

    @property
    def _partitions(self) -> list[str]:
        given = self.partitions or []
        return [given] if isinstance(given, str) else list(given)


class HudiTableServiceOperator(HudiIndexBuildOperator):
    """Clusters or compacts a table by Hudi's procedure, and then builds what is due, in one job of
    spark-submit.

    Args:
        table_service: ``clustering`` or ``compaction``; a template.
        service_options: Options of Hudi's for it, as ``key=value,…``; a template.
        options: As for `HudiIndexBuildOperator`; `spark_conf` names what Hudi needs.
    """

    template_fields: Sequence[str] = (
        *HudiIndexBuildOperator.template_fields,
        "table_service",
        "service_options",
    )

    def __init__(
        self, *, table_service: str = "clustering", service_options: str = "", **options: Any
    ) -> None:
        super().__init__(**options)
        self.table_service = table_service
        self.service_options = service_options

    def execute(self, context: "Context") -> dict[str, Any]:
        """See `HudiIndexOperator.execute`."""
        if self.hook.target.way != SPARK:
            raise HudiIndexFailed(
                "CONFIG_INVALID",
                f"Hudi's {self.table_service} needs Spark, and the connection "
                f"{self.hudi_index_conn_id} runs by {self.hook.target.way}.",
                "Name a connection to spark-submit.",
            )
        return super().execute(context)

    def _arguments(self) -> list[str]:
        arguments = [*super()._arguments(), "--table-service", self.table_service]
        if self.service_options:
            arguments += ["--service-options", self.service_options]
        return arguments


class HudiIndexCleanOperator(HudiIndexOperator):
    """Removes entries that no snapshot needs.

    Args:
        only_count: Remove nothing; only count.
        options: As for `HudiIndexOperator`; with a connection to Spark it runs in the worker.

    Returns ``removed`` and ``bytes`` (in the worker), or ``build_id`` and ``summary``.
    """

    def __init__(self, *, only_count: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.only_count = only_count

    def _request(self) -> tuple[str, dict[str, object]]:
        return "clean", {"dry_run": self.only_count}

    def _in_worker(self, worker: Worker) -> dict[str, Any]:
        return worker.clean(self.table, dry_run=self.only_count)


class HudiIndexVerifyOperator(HudiIndexOperator):
    """Reads every entry; fails if one is damaged, or is damaged still.

    Args:
        repair: Build damaged entries anew.
        options: As for `HudiIndexOperator`; with a connection to Spark it runs in the worker.

    Returns ``entries`` and ``repaired`` (in the worker), or ``build_id`` and ``summary``.
    """

    def __init__(self, *, repair: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.repair = repair

    def _request(self) -> tuple[str, dict[str, object]]:
        return "verify", {"repair": self.repair}

    def _in_worker(self, worker: Worker) -> dict[str, Any]:
        return worker.verify(self.table, repair=self.repair)
