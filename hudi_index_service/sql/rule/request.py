"""The optimizer rule's requests: JSON that `Request.java` describes."""

import json
from dataclasses import dataclass, field
from typing import Any

from hudi_index_service.errors import SparkUnsupported
from hudi_index_service.read.planner import QueryType
from hudi_index_service.sql.relations.snapshot import snapshot_query

VERSION = 1
"""That of requests, which the jar and this package have in common."""


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
class Computed:
    """A column with the values of a full-text call.

    Attributes:
        call: See `FullTextCalls`.
        of: The names of the table's column with the texts, from the outermost struct in.
        name: The column's name.
        place: Its place among the columns wanted. Columns of the same call are equal.
    """

    call: dict[str, Any]
    of: tuple[str, ...]
    name: str = field(default="", compare=False)
    place: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class Best:
    """The rows with the highest scores.

    Attributes:
        rows: How many.
        score: The score.
    """

    rows: int
    score: Computed


@dataclass(frozen=True, slots=True)
class Request:
    """What a query wants of one Hudi table.

    Attributes:
        uri: The table's base path, as `open_table` takes it.
        query_type: ``snapshot`` or ``read_optimized``.
        as_of: The instant of a time travel query, as written; None for the latest snapshot.
        instants: The requested times of the completed commits that Spark's own reader sees.
        names: The table's columns wanted.
        types: Their types, as Spark has them in JSON; a struct has only the fields needed.
        computed: Other columns wanted, among these.
        where: Conditions that all wanted rows fulfill, see `Conditions.java`.
        key: Restricts the rows further, once the query runs; None if nothing does.
        counts: What is counted of these rows; None if they are wanted themselves.
        best: Only these of the rows are wanted; None if all are.
    """

    uri: str
    query_type: QueryType
    as_of: str | None
    instants: frozenset[str]
    names: list[str]
    types: list[Any]
    computed: list[Computed]
    where: list[dict[str, Any]]
    key: Key | None
    counts: Counts | None
    best: Best | None


def read_request(text: str) -> Request | str:
    """A request, or the reason why Spark has to read the relation.

    Raises:
        SparkUnsupported: it comes from the jar of another release.
    """
    fields = json.loads(text)
    if fields["version"] != VERSION:
        raise SparkUnsupported(
            f"The session's jar asks in version {fields['version']}, not {VERSION}.",
            remedy="Install hudi-index-spark and hudi-index-service of one release.",
        )
    query = snapshot_query(fields["options"])
    if isinstance(query, str):
        return query
    columns = [each for each in fields["columns"] if "computed" not in each]
    return Request(
        uri=fields["table"],
        query_type=query.query_type,
        as_of=query.as_of,
        instants=frozenset(fields["instants"]),
        names=[each["name"] for each in columns],
        types=[each["type"] for each in columns],
        computed=[
            _computed(each["computed"], each["name"], place)
            for place, each in enumerate(fields["columns"])
            if "computed" in each
        ],
        where=fields["where"],
        key=_key(fields),
        counts=_counts(fields["counts"]) if "counts" in fields else None,
        best=_best(fields["best"]) if "best" in fields else None,
    )


def searches(where: list[dict[str, Any]]) -> list[Computed]:
    """The conditions among some that are full-text searches, as columns."""
    return [_computed({**each, "of": each["column"]}) for each in where if each["op"] == "search"]


def _computed(fields: dict[str, Any], name: str = "", place: int = -1) -> Computed:
    return Computed(fields["call"], tuple(fields["of"]), name, place)


def _best(fields: dict[str, Any]) -> Best:
    return Best(fields["rows"], _computed(fields["score"]))


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
