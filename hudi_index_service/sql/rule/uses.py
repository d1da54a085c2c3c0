"""How the rule has had the Hudi relations of queries read."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hudi_index_service.optimizer.cost.in_spark import SessionReaders
from hudi_index_service.sql.jvm import session_readers
from hudi_index_service.sql.relations.decision import RelationUse
from hudi_index_service.sql.relations.observed import Observed
from hudi_index_service.sql.rule.reader import Read, RelationReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PlannedQuery:
    """A query, which Spark plans now if it has not yet.

    Args:
        frame: The query.
        extensions: The JVM's `IndexExtensions`.
        reader: Reads its relations.
    """

    def __init__(self, frame: "DataFrame", extensions: Any, reader: RelationReader) -> None:
        self._frame = frame
        self._uses = extensions.uses(frame._jdf)
        self._reader = reader

    @property
    def relations(self) -> tuple[RelationUse, ...]:
        """How its Hudi relations are read, in the order of Spark's optimized plan; complete once
        the query has run."""
        return tuple(relation_use(each, self._reader.read) for each in self._json())

    def explained(self) -> tuple[RelationUse, ...]:
        """The same, with how the index reads each relation, or would.

        Raises:
            IndexServiceError, OSError: a table cannot be opened, planned or looked up.
        """
        return self._explained(self._json())

    def analyzed(self) -> tuple[RelationUse, ...]:
        """The same, with what is read: runs the query. Raises what that raises, too."""
        numbers = [each["number"] for each in self._json()]
        with self._reader.observing(numbers) as observed:
            self._frame._jdf.queryExecution().toRdd().count()
        uses = self._json()
        return tuple(
            replace(relation, observed=observed[use["number"]])
            for use, relation in zip(uses, self._explained(uses), strict=True)
        )

    def _json(self) -> list[dict[str, Any]]:
        uses: list[dict[str, Any]] = json.loads(self._uses.json())
        return uses

    def _explained(self, uses: list[dict[str, Any]]) -> tuple[RelationUse, ...]:
        readers = session_readers(self._frame.sparkSession)
        return tuple(explained_use(each, self._reader, readers) for each in uses)


def explained_use(
    use: dict[str, Any], reader: RelationReader, readers: SessionReaders
) -> RelationUse:
    """A use as `Use.java` writes it, with how the index reads the relation, or would.

    Args:
        reader: Reads the relation, or would.
        readers: What can read for the session.

    Raises:
        IndexServiceError, OSError: the table cannot be opened, planned or looked up.
    """
    relation = relation_use(use, reader.read)
    by = reader.explained(json.dumps(use["request"]), readers) if "request" in use else None
    if by is None:
        return relation
    return replace(relation, plan=by.plan, where=relation.where or by.where, indexes=by.indexes)


def relation_use(use: dict[str, Any], read_of: Callable[[int], Read | None]) -> RelationUse:
    """A use as `Use.java` writes it.

    Args:
        read_of: What has been read for a use, by its number.
    """
    request, decision = use.get("request", {}), use["decision"]
    by_index = use["reader"] in ("driver", "tasks")
    read = read_of(use["number"]) if by_index else None
    observed = use.get("observed")
    return RelationUse(
        table=use["table"],
        by_index=by_index,
        reason=use["reason"],
        where=read.where if read is not None else decision["where"] or None,
        columns=_columns(request) if by_index else (),
        instant=decision["instant"],
        in_tasks=use["reader"] == "tasks",
        rows=use.get("rows"),
        read=None if read is None else read.statistics,
        expected=decision["rows"] if by_index and decision["reader"] != "undecided" else None,
        indexes=tuple(decision["indexes"]),
        observed=None if observed is None else Observed.from_dict(observed),
    )


def _columns(request: dict[str, Any]) -> tuple[str, ...]:
    """The columns that are read for a request; conditions alone need none if rows are counted."""
    if counts := request.get("counts"):
        return (counts["group"],) if "group" in counts else ()
    return tuple(each["name"] for each in request["columns"])
