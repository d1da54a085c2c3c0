"""The optimizer rule's requests: JSON that `Request.java` describes."""

import json
from dataclasses import dataclass
from typing import Any

from hudi_index_service.errors import SparkUnsupported
from hudi_index_service.read.planner import QueryType
from hudi_index_service.sql.catalyst.relation import snapshot_query

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of rows that a query wants instead of the rows.

    Attributes:
        names: The names of the result's columns.
        group: The text column for each of whose values there is a row of the result, with the value
            in its first column; None for one row.
        of: For each column that follows, the conditions on the rows that are counted, beside those
            of the request.
        most: The query wants as many rows as there are, but no more than this; None if it wants
            counts.
        all: It wants all rows, but by Spark if there are more than `most`.
    """

    names: list[str]
    group: str | None
    of: list[list[dict[str, Any]]]
    most: int | None
    all: bool


@dataclass(frozen=True, slots=True)
class Key:
    """A column of which only rows with one of some values are needed: the keys of a join, which are
    not known yet.

    Attributes:
        column: Its name.
        most: The most values that are expected.
    """

    column: str
    most: int


@dataclass(frozen=True, slots=True)
class Request:
    """What a query wants of one Hudi table.

    Attributes:
        uri: The table's base path, as `open_table` takes it.
        query_type: ``snapshot`` or ``read_optimized``.
        as_of: The instant of a time travel query, as written; None for the latest snapshot.
        instants: The requested times of the completed commits that Spark's own reader sees.
        names: The columns wanted.
        types: Their types, as Spark writes them in JSON; a struct has only the fields needed.
        where: Conditions that all wanted rows fulfill, see `Conditions.java`.
        key: Restricts the rows further, once the query runs; None if nothing does.
        counts: What is counted of these rows; None if they are wanted themselves.
    """

    uri: str
    query_type: QueryType
    as_of: str | None
    instants: frozenset[str]
    names: list[str]
    types: list[str]
    where: list[dict[str, Any]]
    key: Key | None
    counts: Counts | None


def read_request(text: str) -> Request | str:
    """A request, or the reason why Spark has to read the relation.

    Raises:
        SparkUnsupported: it comes from the jar of another release.
    """
    fields = json.loads(text)
    if fields["version"] != _VERSION:
        raise SparkUnsupported(
            f"The session's jar asks in version {fields['version']}, not {_VERSION}.",
            remedy="Install hudi-index-spark and hudi-index-service of one release.",
        )
    query = snapshot_query(fields["options"])
    if isinstance(query, str):
        return query
    return Request(
        uri=fields["table"],
        query_type=query.query_type,
        as_of=query.as_of,
        instants=frozenset(fields["instants"]),
        names=[each["name"] for each in fields["columns"]],
        types=[json.dumps(each["type"]) for each in fields["columns"]],
        where=fields["where"],
        key=_key(fields),
        counts=_counts(fields["counts"]) if "counts" in fields else None,
    )


def _counts(fields: dict[str, Any]) -> Counts:
    return Counts(
        names=fields["names"],
        group=fields.get("group"),
        of=fields["of"],
        most=fields.get("most"),
        all=fields.get("all", False),
    )


def _key(fields: dict[str, Any]) -> Key | None:
    key = fields.get("key")
    return None if key is None else Key(key["column"], key["most"])
