"""The one base error of the service, and its named kinds.

Every error that leaves the service says what is wrong (``message``), carries a stable ``code`` that
programs can test, and tells what to do about it (``remedy``). Nothing below this package's façade
raises anything else on purpose; library errors are wrapped at the edge where they arise, with the
original as ``__cause__``.
"""

from typing import ClassVar


class IndexServiceError(Exception):
    """Base of all errors of the service.

    Args:
        message: What is wrong, naming the table, column, file or setting concerned.
        remedy: What the reader can do about it. Each kind has a general one; pass a better one
            where the place of the error knows more.
    """

    code: ClassVar[str] = "INDEX_SERVICE_ERROR"
    default_remedy: ClassVar[str] = "Run again with --log-level debug and report what it prints."

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        if message.endswith("..") and not message.endswith("..."):
            message = message[:-1]  # it ends with what a library said, full stop included
        self.message = _printable(message)
        self.remedy = _printable(remedy if remedy is not None else self.default_remedy)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.code}: {self.message} {self.remedy}".rstrip()

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (Spark tasks); the keyword-only remedy has to survive.
        return (_rebuild, (type(self), self.message, self.remedy))


def _printable(text: str) -> str:
    """The text with halves of surrogate pairs, which names and literals may hold, as escapes: no
    terminal, log file or JSON document takes them."""
    return text.encode("utf-8", "backslashreplace").decode()


def _rebuild(kind: type[IndexServiceError], message: str, remedy: str) -> IndexServiceError:
    return kind(message, remedy=remedy)


# --- storage ---------------------------------------------------------------------------------


class StorageUnsupported(IndexServiceError):
    """The URI's scheme, or an operation that building needs, is not supported."""

    code = "STORAGE_UNSUPPORTED"
    default_remedy = "Use a local folder, s3://, gs:// or az:// location."


class StorageFailed(IndexServiceError):
    """The store answered with an error that is not covered by a more precise kind."""

    code = "STORAGE_FAILED"
    default_remedy = "Check the location, its credentials and the network, then try again."


class IndexServerUnavailable(StorageFailed):
    """The server in which an index type keeps its data does not answer, or not in time."""

    code = "INDEX_SERVER_UNAVAILABLE"
    default_remedy = (
        "Queries go on by scanning, builds are tried again. See that the server runs, and that the "
        "settings name it."
    )


class PermissionDenied(IndexServiceError):
    """The store refused the operation for lack of rights."""

    code = "PERMISSION_DENIED"
    default_remedy = (
        "Give this user write access to the table's folder .hoodie/.index, where indexes are "
        "defined, built and cleaned."
    )


# --- table -----------------------------------------------------------------------------------


class TableNotFound(IndexServiceError):
    """Nothing exists at the table's location."""

    code = "TABLE_NOT_FOUND"
    default_remedy = "Check the path: it is the folder that holds .hoodie."


class NotAHudiTable(IndexServiceError):
    """The location exists, but holds no .hoodie/hoodie.properties."""

    code = "NOT_A_HUDI_TABLE"
    default_remedy = "Give the base path of a Hudi table: the folder that holds .hoodie."


class TableFeatureUnsupported(IndexServiceError):
    """The table uses a feature that cannot be read right without Spark (design, rule 2)."""

    code = "TABLE_FEATURE_UNSUPPORTED"
    default_remedy = (
        "Pass spark=<session with Hudi> to open_table: Spark's own Hudi reader serves its queries "
        "then, without index."
    )


class NeedsSpark(TableFeatureUnsupported):
    """The table can be read here, but not these files of it: their log files, or a column as they
    hold it, only Spark's own reader reads right."""

    code = "NEEDS_SPARK"


class TableOverwritten(IndexServiceError):
    """The table was written anew (``mode("overwrite")``): its .hoodie folder went, and the index
    with it."""

    code = "TABLE_OVERWRITTEN"
    default_remedy = (
        "Create its indexes again, or put the hoodie.index.* keys into the write config: they "
        "bring the index back by themselves."
    )


class SnapshotChanged(IndexServiceError):
    """A file of the planned snapshot was taken away while it was read, twice in a row."""

    code = "SNAPSHOT_CHANGED"
    default_remedy = (
        "Run the query again; if it recurs, let Hudi's cleaner retain more commits "
        "(hoodie.clean.commits.retained)."
    )


class SnapshotUnavailable(IndexServiceError):
    """The table's state at the asked moment is not settled yet: a write that began before it is
    in flight."""

    code = "SNAPSHOT_UNAVAILABLE"
    default_remedy = "Ask for an earlier moment, or wait until that write has ended."


# --- definitions and queries -----------------------------------------------------------------


class ColumnNotFound(IndexServiceError):
    """A named column is not in the table's schema."""

    code = "COLUMN_NOT_FOUND"
    default_remedy = "Check the name against the table's schema; names are case-insensitive."


class ColumnAmbiguous(IndexServiceError):
    """Several columns of the table differ from the name in case only."""

    code = "COLUMN_AMBIGUOUS"
    default_remedy = "Spell it exactly as the schema does."


class ColumnNotIndexable(IndexServiceError):
    """The column's type, or its options, cannot be held by the index type."""

    code = "COLUMN_NOT_INDEXABLE"
    default_remedy = "Index another column, or another index type that can hold it."


class IndexTypeUnknown(IndexServiceError):
    """No index type of that name is installed."""

    code = "INDEX_TYPE_UNKNOWN"
    default_remedy = "Use one of the installed index types."


class IndexTypeBroken(IndexTypeUnknown):
    """An index type is installed under that name, but it cannot be loaded, or does not fulfil the
    contract. Where an unknown one is passed over, it is as well."""

    code = "INDEX_TYPE_BROKEN"
    default_remedy = "Repair, upgrade or uninstall the package that provides it."


class IndexExists(IndexServiceError):
    """An index of that name exists on the table."""

    code = "INDEX_EXISTS"
    default_remedy = "Choose another name, drop the index first, or pass if_not_exists=True."


class IndexChanged(IndexServiceError):
    """Somebody else changed or dropped the index between reading and changing it."""

    code = "INDEX_CHANGED"
    default_remedy = "Look at the table's indexes and try again."


class IndexNotFound(IndexServiceError):
    """No index of that name exists on the table."""

    code = "INDEX_NOT_FOUND"
    default_remedy = "List the table's indexes with `hudi-index show <table>`."


class IndexDefinitionInvalid(IndexServiceError):
    """A definition's name, columns or options are not acceptable."""

    code = "INDEX_DEFINITION_INVALID"
    default_remedy = "Correct the definition."


class PredicateInvalid(IndexServiceError):
    """The where text does not parse, or means nothing for the table's types."""

    code = "PREDICATE_INVALID"
    default_remedy = "Correct the predicate; it is Spark SQL."


class PredicateUnsupported(IndexServiceError):
    """The predicate is fine for Spark, but not (yet) answered here with Spark's semantics."""

    code = "PREDICATE_UNSUPPORTED"
    default_remedy = "Rewrite it with the supported operators, or run it through Spark."


class IndexRequired(IndexServiceError):
    """The query asked for use_index="require", and some slice would have to be scanned."""

    code = "INDEX_REQUIRED"
    default_remedy = "Build the index for every base file (strategy all), or allow a scan."


class ScoreUnavailable(IndexServiceError):
    """A query calls score() where no score can be given."""

    code = "SCORE_UNAVAILABLE"
    default_remedy = (
        "Call it in the SELECT, or its ORDER BY, whose WHERE has the one match; or use "
        "IndexedTable.search."
    )


class RowIdsUnavailable(IndexServiceError):
    """Row ids were asked for, and some slice has rows outside its base file."""

    code = "ROW_IDS_UNAVAILABLE"
    default_remedy = "Compact the table first: row ids are positions in base files."


# --- building and keeping --------------------------------------------------------------------


class BuildInProgress(IndexServiceError):
    """Another builder that is alive, as far as can be told, works on this table."""

    code = "BUILD_IN_PROGRESS"
    default_remedy = "Wait for it to end: `hudi-index status <table>` shows it."


class BuildNotFound(IndexServiceError):
    """The table has no record of a build of that number."""

    code = "BUILD_NOT_FOUND"
    default_remedy = "SHOW INDEXING of the table, or `hudi-index status`, lists the last builds."


class BuildFailed(IndexServiceError):
    """Some base files could not be indexed; the others were."""

    code = "BUILD_FAILED"
    default_remedy = "See the causes named; the next build tries these base files again."


class WorkerMemoryTooSmall(IndexServiceError):
    """A process that is to build has a memory limit in which it could not."""

    code = "WORKER_MEMORY_TOO_SMALL"
    default_remedy = "Give the workers more memory, or set lucene.heap_mb lower."


class EntryInvalid(IndexServiceError):
    """An index entry is missing, damaged, stale or of a newer format: its slice is scanned."""

    code = "ENTRY_INVALID"
    default_remedy = (
        "Answers stay right by scanning. `hudi-index build` makes a missing entry anew, "
        "`hudi-index verify --repair` a damaged one."
    )


class NativeModuleMissing(IndexServiceError):
    """What an index type runs on, such as PyLucene, cannot be loaded or used."""

    code = "NATIVE_MODULE_MISSING"
    default_remedy = "Install what is named, wherever indexes are built or read."


# --- doors -----------------------------------------------------------------------------------


class ConfigInvalid(IndexServiceError):
    """A settings file, environment variable or argument has an unknown key or a wrong value."""

    code = "CONFIG_INVALID"
    default_remedy = "Correct the setting named."


class HistoryUnavailable(IndexServiceError):
    """The history of queries cannot be changed. Queries go on without it."""

    code = "HISTORY_UNAVAILABLE"
    default_remedy = "Delete the folder history/ in the state folder by hand, and try again."


class CallbackRefused(IndexServiceError):
    """A callback lacks the secret, names a table not on the allow-list, or is malformed."""

    code = "CALLBACK_REFUSED"
    default_remedy = "Use the options of IndexHook.write_options(table) for the table's writes."


class StatementFailed(IndexServiceError):
    """Spark, or Hudi within it, refused or broke off a statement of `hudi-index sql`."""

    code = "STATEMENT_FAILED"
    default_remedy = "That is Spark's message; --conf spark.log.level=WARN makes it say more."


class StatementInvalid(IndexServiceError):
    """An index statement does not parse; the message names line, column and what is expected."""

    code = "STATEMENT_INVALID"
    default_remedy = "Correct the statement; names with other characters than a-z, 0-9, _ need `…`."
