"""The base error of the service and its subclasses.

Every error that leaves the service states what is wrong (``message``), carries a stable ``code``
for programs to test, and states what to do about it (``remedy``). The code below this package's
façade raises nothing else on purpose. Library errors are wrapped where they arise, with the
original as ``__cause__``.
"""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Self


def _printable(text: str) -> str:
    """Escapes lone surrogates, which names and literals may hold: no terminal, log file or JSON
    document accepts them."""
    return text.encode("utf-8", "backslashreplace").decode()


class Remedy:
    """What to do about an error, in the terms of each interface: the one that prints the error
    chooses the form.

    Args:
        python: For callers of the Python API, and for logs.
        command: On the command line; None for the form of `python`.
        sql: In SQL; None for the form of `python`.
    """

    def __init__(self, python: str, *, command: str | None = None, sql: str | None = None) -> None:
        self.python = _printable(python)
        self.command = self.python if command is None else _printable(command)
        self.sql = self.python if sql is None else _printable(sql)

    def __radd__(self, before: str) -> "Remedy":
        """The remedy after some words that are the same in each form."""
        return Remedy(before + self.python, command=before + self.command, sql=before + self.sql)

    def __add__(self, more: "Remedy | str") -> "Remedy":
        """Both remedies, one after the other, in each form."""
        if isinstance(more, str):
            more = Remedy(more)
        return Remedy(
            f"{self.python} {more.python}",
            command=f"{self.command} {more.command}",
            sql=f"{self.sql} {more.sql}",
        )


class IndexServiceError(Exception):
    """Base of all errors of the service.

    Args:
        message: What is wrong, with the name of the table, column, file or setting.
        remedy: What the reader can do about it; a text if it reads the same in every interface.
            Each class has a general remedy; pass a better one where the error's context allows it.

    Attributes:
        remedies: The remedy in all its forms.
    """

    code: ClassVar[str] = "INDEX_SERVICE_ERROR"
    default_remedy: ClassVar[Remedy] = Remedy(
        "Run it again with the log at level DEBUG, and report the log.",
        command="Run it again as `hudi-index --log-level debug ...`, and report what it prints.",
        sql="Run it again with the service's log at level DEBUG, and report the log.",
    )

    def __init__(self, message: str, *, remedy: Remedy | str | None = None) -> None:
        if message.endswith("..") and not message.endswith("..."):
            message = message[:-1]  # it ends with a library's message, full stop included
        self.message = _printable(message)
        if remedy is None:
            remedy = self.default_remedy
        self.remedies = Remedy(remedy) if isinstance(remedy, str) else remedy
        super().__init__(self.message)

    @property
    def remedy(self) -> str:
        """What to do, for callers of the Python API."""
        return self.remedies.python

    @property
    def for_command(self) -> str:
        """Code, message and remedy, in terms of the command line."""
        return f"{self.code}: {self.message} {self.remedies.command}".rstrip()

    def reworded(self, message: str) -> Self:
        """The same error with another message."""
        return type(self)(message, remedy=self.remedies)

    def __str__(self) -> str:
        return f"{self.code}: {self.message} {self.remedy}".rstrip()

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process boundaries (Spark tasks); the keyword-only remedy has to survive.
        return partial(type(self), remedy=self.remedies), (self.message,)


def error_class(code: str) -> type[IndexServiceError] | None:
    """The class of errors with this code; None for one of another release."""
    kinds = [IndexServiceError]
    for kind in kinds:
        if kind.code == code:
            return kind
        kinds.extend(kind.__subclasses__())
    return None


class EntryUnusable(IndexServiceError):
    """Base of the errors after which a query reads on without an entry, or what is stored beside
    it: it is invalid, it cannot be read, or its index type cannot work here."""


# --- storage ---------------------------------------------------------------------------------


class StorageUnsupported(IndexServiceError):
    """The URI's scheme, or an operation that building needs, is not supported."""

    code = "STORAGE_UNSUPPORTED"
    default_remedy = Remedy("Use a local folder or an s3://, gs://, az:// or hdfs:// location.")


class StorageFailed(EntryUnusable):
    """The store returned an error that no more precise class covers."""

    code = "STORAGE_FAILED"
    default_remedy = Remedy("Check the location, its credentials and the network, then try again.")


class IndexServerUnavailable(StorageFailed):
    """The server that holds an index type's data does not answer, or not in time."""

    code = "INDEX_SERVER_UNAVAILABLE"
    default_remedy = Remedy(
        "Until it answers, queries scan and builds are retried. Check that the server is running "
        "and that the settings name it."
    )


class PermissionDenied(EntryUnusable):
    """The store refused the operation because the user lacks the rights."""

    code = "PERMISSION_DENIED"
    default_remedy = Remedy(
        "Give this user write access to the table's folder .hoodie/.index, which holds the index "
        "definitions and data."
    )


# --- table -----------------------------------------------------------------------------------


class TableNotFound(IndexServiceError):
    """Nothing exists at the table's location."""

    code = "TABLE_NOT_FOUND"
    default_remedy = Remedy("Check the path: it is the folder that holds .hoodie.")


class NotAHudiTable(IndexServiceError):
    """The location exists but holds no .hoodie/hoodie.properties."""

    code = "NOT_A_HUDI_TABLE"
    default_remedy = Remedy("Give the base path of a Hudi table: the folder that holds .hoodie.")


class TableAmbiguous(IndexServiceError):
    """A text names both a local folder and a table in Spark's catalog."""

    code = "TABLE_AMBIGUOUS"
    default_remedy = Remedy("Give the path of the table that you mean.")


class CatalogFailed(IndexServiceError):
    """The catalog that a table's name is looked up in does not answer, or not as expected."""

    code = "CATALOG_FAILED"
    default_remedy = Remedy(
        "Check the catalog's address, its credentials and the network, or give the table's path."
    )


class TableFeatureUnsupported(IndexServiceError):
    """The table uses a feature that only Spark reads correctly (design, rule 2)."""

    code = "TABLE_FEATURE_UNSUPPORTED"
    default_remedy = Remedy(
        "Pass spark=<session with Hudi> to open_table: Spark's own Hudi reader then answers the "
        "queries, without an index.",
        command="`hudi-index sql` queries it with Spark's own Hudi reader, without an index.",
        sql="Spark answers queries on it as it would without the service; the feature named "
        "prevents an index.",
    )


class NeedsSpark(TableFeatureUnsupported):
    """The table can be read here, but some of its files cannot: only Spark's own reader reads their
    log files, or a column as they store it, correctly."""

    code = "NEEDS_SPARK"


class TableOverwritten(IndexServiceError):
    """The table was overwritten (``mode("overwrite")``): its .hoodie folder was deleted, and the
    index with it."""

    code = "TABLE_OVERWRITTEN"
    default_remedy = Remedy(
        "Create its indexes again, or put the hoodie.index.* keys into the write config, which "
        "restore the indexes automatically.",
        sql="Create its indexes again with CREATE INDEX.",
    )


class SnapshotChanged(IndexServiceError):
    """A file of the planned snapshot was deleted while it was read, twice in a row; or completed
    instants are missing from the timeline, as while Hudi upgrades or removes a table."""

    code = "SNAPSHOT_CHANGED"
    default_remedy = Remedy(
        "Run the query again. If the error recurs, let Hudi's cleaner retain more commits "
        "(hoodie.clean.commits.retained)."
    )


class SnapshotUnavailable(IndexServiceError):
    """The table's state as of the requested time is not final yet: a write that began before it is
    in flight."""

    code = "SNAPSHOT_UNAVAILABLE"
    default_remedy = Remedy("Query an earlier time, or wait until that write has ended.")


# --- definitions and queries -----------------------------------------------------------------


class ColumnNotFound(IndexServiceError):
    """A named column is not in the table's schema."""

    code = "COLUMN_NOT_FOUND"
    default_remedy = Remedy(
        "Check the name against the table's schema; names are case-insensitive."
    )


class ColumnAmbiguous(IndexServiceError):
    """Several columns of the table differ from the name only in case."""

    code = "COLUMN_AMBIGUOUS"
    default_remedy = Remedy("Spell the name exactly as in the schema.")


class ColumnNotIndexable(IndexServiceError):
    """The index type does not support the column's type or its options."""

    code = "COLUMN_NOT_INDEXABLE"
    default_remedy = Remedy("Index another column, or use an index type that supports this one.")


class IndexTypeUnknown(IndexServiceError):
    """No index type with that name is installed."""

    code = "INDEX_TYPE_UNKNOWN"
    default_remedy = Remedy("Use one of the installed index types.")


class IndexTypeBroken(IndexTypeUnknown):
    """The installed index type with that name cannot be loaded or does not fulfil the contract. It
    is skipped wherever an unknown one is."""

    code = "INDEX_TYPE_BROKEN"
    default_remedy = Remedy("Repair, upgrade or uninstall the package that provides it.")


class IndexExists(IndexServiceError):
    """The table already has an index with that name."""

    code = "INDEX_EXISTS"
    default_remedy = Remedy(
        "Choose another name, drop the index first, or pass if_not_exists=True.",
        command="Choose another name, drop the index first, or give --if-not-exists.",
        sql="Choose another name, DROP INDEX the existing one first, or add IF NOT EXISTS.",
    )


class IndexChanged(IndexServiceError):
    """The index was changed or dropped concurrently, between reading and changing it."""

    code = "INDEX_CHANGED"
    default_remedy = Remedy("Check the table's indexes and try again.")


class IndexNotFound(IndexServiceError):
    """The table has no index with that name."""

    code = "INDEX_NOT_FOUND"
    default_remedy = Remedy(
        "IndexedTable.indexes lists the table's indexes.",
        command="List the table's indexes with `hudi-index show <table>`.",
        sql="SHOW INDEXES FROM the table lists them.",
    )


class IndexDefinitionInvalid(IndexServiceError):
    """A definition's name, columns or options are invalid."""

    code = "INDEX_DEFINITION_INVALID"
    default_remedy = Remedy("Correct the definition.")


class PredicateInvalid(IndexServiceError):
    """The where text does not parse, or does not fit the table's types."""

    code = "PREDICATE_INVALID"
    default_remedy = Remedy("Correct the predicate; its language is Spark SQL.")


class PredicateUnsupported(IndexServiceError):
    """The predicate is valid in Spark, but cannot (yet) be answered here with Spark's semantics."""

    code = "PREDICATE_UNSUPPORTED"
    default_remedy = Remedy(
        "Rewrite it with the supported operators, or run it through Spark.",
        command="Rewrite it with the supported operators.",
    )


class IndexRequired(IndexServiceError):
    """The query set use_index="require", but some slice would have to be scanned."""

    code = "INDEX_REQUIRED"
    default_remedy = Remedy(
        'Build the index for every base file (strategy="all"), or allow a scan: use_index="auto".',
        command="Build the index for every base file: `hudi-index build <table> --strategy all`; "
        "or leave out --use-index.",
        sql="OPTIMIZE TABLE … STRATEGY ALL builds the index for every base file.",
    )


class NotCovered(IndexServiceError):
    """The query asked for an answer only if indexes cover the table up to an instant, and they do
    not, or the table has no such instant yet."""

    code = "NOT_COVERED"
    default_remedy = Remedy(
        "Build the index, or wait for its build (wait=seconds), or ask for an earlier instant."
    )


class DatasetUnsupported(IndexServiceError, NotImplementedError):
    """A dataset of Arrow on a table does not do this."""

    code = "DATASET_UNSUPPORTED"
    default_remedy = Remedy("Go on from the rows of to_table(columns=…, filter=…).")


class QueryCancelled(IndexServiceError):
    """Nobody waits for a query any more, or it has taken too long; see `Cancellation`."""

    code = "QUERY_CANCELLED"
    default_remedy = Remedy(
        "Run it again if its result is wanted after all, or allow it more time."
    )


class ScoreUnavailable(IndexServiceError):
    """A query calls score() where no score is available."""

    code = "SCORE_UNAVAILABLE"
    default_remedy = Remedy(
        "Call score() in the SELECT whose WHERE holds the one match, or in its ORDER BY, or use "
        "IndexedTable.search.",
        command="Call it in the SELECT, or its ORDER BY, whose WHERE has the one match; or use "
        "`hudi-index search`.",
        sql="Call it in the SELECT, or its ORDER BY, whose WHERE has the one match.",
    )


class RowIdsUnavailable(IndexServiceError):
    """Row ids were requested, but some slice has rows outside its base file."""

    code = "ROW_IDS_UNAVAILABLE"
    default_remedy = Remedy("Compact the table first: row ids are positions in base files.")


# --- building and keeping --------------------------------------------------------------------


class BuildInProgress(IndexServiceError):
    """Another build of this table is running, as far as can be determined."""

    code = "BUILD_IN_PROGRESS"
    default_remedy = Remedy(
        "Wait for that build to end: IndexedTable.status shows it, IndexedTable.cancel stops it.",
        command="Wait for that build to end: `hudi-index status <table>` shows it, `hudi-index "
        "cancel <table>` stops it.",
        sql="Wait for it to end: SHOW INDEXING of the table shows it, CANCEL INDEXING stops it.",
    )


class BuildNotFound(IndexServiceError):
    """The table has no record of a build with that number."""

    code = "BUILD_NOT_FOUND"
    default_remedy = Remedy(
        "IndexedTable.builds lists the last builds.",
        command="List the last builds with `hudi-index status <table>`.",
        sql="SHOW INDEXING of the table lists the last builds.",
    )


class BuildFailed(IndexServiceError):
    """Some base files could not be indexed; the others were."""

    code = "BUILD_FAILED"
    default_remedy = Remedy("Fix the causes named; the next build retries these base files.")


class BuildDied(IndexServiceError):
    """The process of a build ended by itself: it was killed, or crashed."""

    code = "BUILD_DIED"
    default_remedy = Remedy(
        "The service builds the table again after a rest, and continues with what is left. If it "
        "recurs, the service's log and the system's say more."
    )


class BuildHung(IndexServiceError):
    """A build made no progress for so long that its process was ended."""

    code = "BUILD_HUNG"
    default_remedy = Remedy(
        "The service builds the table again after a rest. If it recurs, check its store, or allow "
        "its builds more time without progress."
    )


class BuildOutOfMemory(IndexServiceError):
    """The process of a build took more memory than it may, or than there is."""

    code = "BUILD_OUT_OF_MEMORY"
    default_remedy = Remedy(
        "Give each build more memory, lower build.parallelism and build.memory_mb, or build the "
        "table by spark-submit."
    )


class WorkerMemoryTooSmall(IndexServiceError):
    """A worker's memory limit is too low to build."""

    code = "WORKER_MEMORY_TOO_SMALL"
    default_remedy = Remedy("Give the workers more memory, or lower lucene.heap_mb.")


class EntryInvalid(EntryUnusable):
    """An index entry is missing, damaged, stale or of a newer format, so its slice is scanned."""

    code = "ENTRY_INVALID"
    default_remedy = Remedy(
        "Answers stay correct, because the slice is scanned. Rebuild a missing entry with "
        "IndexedTable.build, a damaged one with IndexedTable.verify(repair=True).",
        command="Answers stay correct, because the slice is scanned. Rebuild a missing entry with "
        "`hudi-index build`, a damaged one with `hudi-index verify --repair`.",
        sql="Queries scan instead and stay correct. OPTIMIZE TABLE … STRATEGY ALL rebuilds a "
        "missing entry; repair a damaged one on the command line.",
    )


class NativeModuleMissing(EntryUnusable):
    """A dependency of an index type, such as PyLucene, cannot be loaded or used; or this process
    was forked from one that uses it, or hudi-rs."""

    code = "NATIVE_MODULE_MISSING"
    default_remedy = Remedy("Install the dependency named, wherever indexes are built or read.")


# --- interfaces ------------------------------------------------------------------------------


class SparkUnsupported(IndexServiceError):
    """The session's Spark is not the one that the jar for its queries was made for."""

    code = "SPARK_UNSUPPORTED"
    default_remedy = Remedy("Use a session of PySpark 3.5, or table.scan(…).to_spark(spark).")


class CombinationUntested(IndexServiceError):
    """These versions were not tested together. It is logged once in a process, and never raised:
    they are used all the same."""

    code = "COMBINATION_UNTESTED"
    default_remedy = Remedy("They are used. If something fails, try the tested versions.")


class UsageInvalid(IndexServiceError):
    """A command line names an unknown command or option, or lacks or has a wrong argument."""

    code = "USAGE_INVALID"
    default_remedy = Remedy("`hudi-index --help` lists the commands.")


class ConfigInvalid(IndexServiceError):
    """A settings file, environment variable or argument has an unknown key or a wrong value."""

    code = "CONFIG_INVALID"
    default_remedy = Remedy("Correct the setting named.")


class FleetFileInvalid(ConfigInvalid):
    """The fleet file has mistakes: keys that do not exist, wrong values, or no YAML.

    Attributes:
        mistakes: All of them, each with its line and field.
    """

    code = "FLEET_FILE_INVALID"
    default_remedy = Remedy(
        "Correct the file: `hudi-index fleet check FILE` prints each mistake with its line. A "
        "running service goes on with the file as it was before."
    )

    def __init__(
        self, message: str, *, remedy: Remedy | str | None = None, mistakes: Sequence[str] = ()
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.mistakes = tuple(map(_printable, mistakes))


class HistoryUnavailable(IndexServiceError):
    """The query history cannot be changed. Queries run without it."""

    code = "HISTORY_UNAVAILABLE"
    default_remedy = Remedy(
        "Delete the folder history/ in the state folder by hand, and try again."
    )


class AccessRefused(IndexServiceError):
    """A request to a fleet's service carries no token, a wrong one, or too many wrong ones came."""

    code = "ACCESS_REFUSED"
    default_remedy = Remedy(
        "Send a token of the service's file of tokens, as `Authorization: Bearer <token>`."
    )


class AccessDenied(IndexServiceError):
    """The role of a token does not allow what is asked, or the request comes from another page."""

    code = "ACCESS_DENIED"
    default_remedy = Remedy("Ask an operator of the service for a token whose role allows it.")


class RequestInvalid(IndexServiceError):
    """A request to a fleet's service is malformed, or asks for something that does not exist."""

    code = "REQUEST_INVALID"
    default_remedy = Remedy("The service describes its requests at /api/v1/openapi.json.")


class CallbackRefused(IndexServiceError):
    """A callback lacks the secret, names a table not on the allow-list, or is malformed."""

    code = "CALLBACK_REFUSED"
    default_remedy = Remedy("Write the table with the options from IndexHook.write_options(table).")


class RequestRefused(IndexServiceError):
    """A request of a Spark session to `hudi-index serve-spark` lacks the token, names a table that
    the daemon may not read, comes from another release, or is malformed."""

    code = "REQUEST_REFUSED"
    default_remedy = Remedy(
        "Start the session with the settings that hudi-index serve-spark prints."
    )


class TableNotInFleet(IndexServiceError):
    """The fleet has no table of that name, or the token is not for it."""

    code = "TABLE_NOT_IN_FLEET"
    default_remedy = Remedy("Check the name against the fleet's list of tables.")


class RequestUnknown(IndexServiceError):
    """The service knows no request with that id: it has begun anew since, or forgotten it."""

    code = "REQUEST_UNKNOWN"
    default_remedy = Remedy("The table's page shows its last builds; ask for another one.")


class PlanUnknown(IndexServiceError):
    """An agent has made no dry run with that id for this table, or has applied it already."""

    code = "PLAN_UNKNOWN"
    default_remedy = Remedy("Make a dry run first, and apply the id that it returns, once.")


class PlanOutdated(IndexServiceError):
    """A dry run of an agent no longer says what would happen: it is old, or the table has
    changed."""

    code = "PLAN_OUTDATED"
    default_remedy = Remedy("Make another dry run, and apply that one. Nothing was changed.")


class StatementFailed(IndexServiceError):
    """Spark, or Hudi within it, rejected or aborted a statement of `hudi-index sql`."""

    code = "STATEMENT_FAILED"
    default_remedy = Remedy(
        "This is Spark's message; --conf spark.log.level=WARN shows more detail."
    )


class StatementInvalid(IndexServiceError):
    """An index statement does not parse; the message names line, column and what is expected."""

    code = "STATEMENT_INVALID"
    default_remedy = Remedy(
        "Correct the statement; quote names with characters beyond a-z, 0-9, _ as `…`."
    )
