"""Errors as Airflow takes them: those that a retry may mend, and those that fail a task at once."""

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

MAY_PASS = frozenset(
    {
        "BUILD_DIED",
        "BUILD_FAILED",
        "BUILD_HUNG",
        "BUILD_IN_PROGRESS",
        "CALLBACK_REFUSED",
        "CATALOG_FAILED",
        "INDEX_CHANGED",
        "INDEX_SERVER_UNAVAILABLE",
        "SNAPSHOT_CHANGED",
        "SNAPSHOT_UNAVAILABLE",
        "STORAGE_FAILED",
    }
)
"""Codes of hudi-index-service's errors that a retry may resolve."""


class HudiIndexError(AirflowException):
    """What failed may pass: Airflow's retries apply.

    Args:
        code: Stable, for programs.
        message: One sentence.
        remedy: What to do about it; "" for nothing more.
    """

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        super().__init__(f"{code}: {message} {remedy}".rstrip())
        self.code, self.message = code, message


class HudiIndexFailed(HudiIndexError, AirflowFailException):
    """A retry would not help: the task fails at once."""


class RequestForgotten(HudiIndexError):
    """The service does not know a request, or no longer: it is to be asked again."""


class TableMissing(HudiIndexFailed):
    """There is no such table, or not yet."""


def error_of(code: str, message: str, remedy: str = "") -> HudiIndexError:
    """The error of a code."""
    if code == "REQUEST_UNKNOWN":
        return RequestForgotten(code, message, remedy)
    if code in ("TABLE_NOT_FOUND", "TABLE_NOT_IN_FLEET", "NOT_A_HUDI_TABLE"):
        return TableMissing(code, message, remedy)
    kind = HudiIndexError if code in MAY_PASS else HudiIndexFailed
    return kind(code, message, remedy)


def no_index(table: str) -> HudiIndexFailed:
    """A table without a definition: to wait would not help."""
    return HudiIndexFailed(
        "INDEX_NOT_FOUND",
        f"The table {table} has no index.",
        f"Define one: `hudi-index create {table} NAME COLUMN...`, by the keys hoodie.index.* of "
        "its writers, or in the fleet's file.",
    )
