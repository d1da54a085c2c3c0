"""What to do about an error, in the words of SQL: the errors' own remedies serve every surface."""

from collections.abc import Iterator
from contextlib import contextmanager

from hudi_index_service.errors import (
    BuildInProgress,
    BuildNotFound,
    EntryInvalid,
    IndexExists,
    IndexNotFound,
    IndexRequired,
    IndexServiceError,
    NeedsSpark,
    ScoreUnavailable,
    TableFeatureUnsupported,
    TableOverwritten,
)

_LEFT_TO_SPARK = (
    "Spark answers queries on it as it would without the service; what is named keeps it from "
    "having an index."
)
_REMEDIES: dict[type[IndexServiceError], str] = {
    BuildInProgress: "Wait for it to end: SHOW INDEXING of the table shows it, CANCEL INDEXING "
    "asks it to give up.",
    BuildNotFound: "SHOW INDEXING of the table lists the last builds.",
    EntryInvalid: "Answers stay right by scanning. OPTIMIZE TABLE … STRATEGY ALL makes a missing "
    "entry anew; a damaged one is repaired on the command line.",
    IndexExists: "Choose another name, DROP INDEX the one that is there first, or add "
    "IF NOT EXISTS.",
    IndexNotFound: "SHOW INDEXES FROM the table lists them.",
    IndexRequired: "OPTIMIZE TABLE … STRATEGY ALL builds the index for every base file.",
    IndexServiceError: "Run it again with the service's log at level DEBUG, and report that.",
    NeedsSpark: _LEFT_TO_SPARK,
    ScoreUnavailable: "Call it in the SELECT, or its ORDER BY, whose WHERE has the one match.",
    TableFeatureUnsupported: _LEFT_TO_SPARK,
    TableOverwritten: "Create its indexes again, by CREATE INDEX.",
}


@contextmanager
def remedies_in_sql() -> Iterator[None]:
    """Raises the service's errors with remedies for somebody who writes SQL. A remedy of its own,
    which the place of the error has given it, stays."""
    try:
        yield
    except IndexServiceError as error:
        if error.remedy == error.default_remedy:
            error.remedy = _REMEDIES.get(type(error), error.remedy)
        raise
