"""Work that outlives the worker: a request to the service, or an application on YARN. Each has an
id, by which a later try finds it."""

import hashlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from hudi_index_airflow.errors import (
    HudiIndexError,
    HudiIndexFailed,
    RequestForgotten,
    no_index,
)
from hudi_index_airflow.service import (
    WAIT_SECONDS,
    ServiceClient,
    is_active,
    raise_for_end,
)
from hudi_index_airflow.spark import SparkSubmit

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

ACTIVE, SUCCEEDED, OVER = "active", "succeeded", "over"
"""What a job's status comes to."""

_PAUSE_SECONDS = 1.0
_SECONDS_UNTIL_SEEN = 60.0


class Job(ABC):
    """Work that has been, or is to be, submitted."""

    @abstractmethod
    def submit(self, key: str) -> str:
        """Starts it and returns its id; with the same key it starts once."""

    @abstractmethod
    def status(self, id: str) -> str:
        """`ACTIVE`, `SUCCEEDED` or `OVER`."""

    @abstractmethod
    def wait(self, id: str) -> dict[str, Any]:
        """Waits for its end. Returns what it counted, or raises HudiIndexError."""

    @abstractmethod
    def cancel(self, id: str) -> None:
        """Cancels it, if it has not ended; may be called in a signal's handler."""


class ServiceJob(Job):
    """A request to the service.

    Args:
        name: The table's name in the fleet.
        action: ``builds``, ``clean`` or ``verify``.
    """

    def __init__(
        self, client: ServiceClient, name: str, action: str, body: dict[str, object]
    ) -> None:
        self._client, self._name, self._action, self._body = client, name, action, body

    def submit(self, key: str) -> str:
        return self._client.submit(self._name, self._action, self._body, key)

    def status(self, id: str) -> str:
        try:
            state = self._client.request(id)["state"]
        except RequestForgotten:
            return OVER
        return ACTIVE if is_active(state) else SUCCEEDED if state == "finished" else OVER

    def wait(self, id: str) -> dict[str, Any]:
        while True:
            asked = monotonic()
            build = self._client.request(id, wait=WAIT_SECONDS)
            if not is_active(build["state"]):
                return self.result(build)
            if monotonic() < asked + _PAUSE_SECONDS:  # too many wait: it has answered at once
                sleep(_PAUSE_SECONDS)

    def result(self, build: dict[str, Any]) -> dict[str, Any]:
        """What an ended request counted.

        Raises:
            HudiIndexError: it has not succeeded; or nothing was built, for the table has no index.
        """
        raise_for_end(build)
        result = {"build_id": build["id"], "summary": build["summary"]}
        if self._action != "builds":
            return result
        seen = self._seen_after(build["ended"]) if not build["built"] else self._table()
        status = seen["status"] or {}
        if not build["built"] and status.get("indexes") == []:
            raise no_index(self._name)
        return {**result, "built": build["built"], "instant": status.get("instant")}

    def cancel(self, id: str) -> None:
        self._client.another().cancel(id)

    def _table(self) -> dict[str, Any]:
        return self._client.table(self._name)

    def _seen_after(self, ended: str) -> dict[str, Any]:
        """The table, as the service has looked at it after the build, which may have defined its
        index; as it is known if no look follows."""
        until = monotonic() + _SECONDS_UNTIL_SEEN
        while True:
            table = self._table()
            at = datetime.fromisoformat(table["at"] or ended)
            if (table["status"] or {}).get("indexes") or at > datetime.fromisoformat(ended):
                return table
            if monotonic() >= until:
                return {**table, "status": None}
            sleep(_PAUSE_SECONDS)


class YarnJob(Job):
    """An application that YARN runs.

    Args:
        name: Of the application.
        arguments: Those of submit/spark.py.
        poll: The seconds between two looks at it.
    """

    def __init__(
        self, spark: SparkSubmit, name: str, arguments: Sequence[str], *, poll: float = 10.0
    ) -> None:
        self._spark, self._name, self._arguments, self._poll = spark, name, arguments, poll

    def submit(self, key: str) -> str:
        return self._spark.submit(self._name, self._arguments, f"hudi-index-{key}")

    def status(self, id: str) -> str:
        state, _ = self._spark.state(id)
        return {"RUNNING": ACTIVE, "SUCCEEDED": SUCCEEDED}.get(state, OVER)

    def wait(self, id: str) -> dict[str, Any]:
        while True:
            state, words = self._spark.state(id)
            if state == "SUCCEEDED":
                return {"build_id": id}
            if state == "KILLED":
                raise HudiIndexFailed("CANCELLED", f"{id} was killed.")
            if state != "RUNNING":
                message = f"{id} ended: {state}. {words}".strip()
                raise HudiIndexError("BUILD_FAILED", message, f"`yarn logs -applicationId {id}`")
            sleep(self._poll)

    def cancel(self, id: str) -> None:
        self._spark.kill(id)


def key_of(context: "Context") -> str:
    """The idempotency key of a task instance: alike for all its tries, other after it was cleared,
    when it is to run anew."""
    instance = context["ti"]
    names = (instance.dag_id, instance.run_id, instance.task_id, str(instance.map_index))
    return hashlib.sha256("\n".join((*names, round_of(context))).encode()).hexdigest()


def round_of(context: "Context") -> str:
    """What all tries of a task instance have in common until it is cleared: that gives it more
    tries."""
    return str(context["ti"].max_tries)
