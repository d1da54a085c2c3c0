"""The optimizer rule's requests: JSON that `Request.java`, `Conditions.java` and
`FullTextCall.java` describe.

Each field is declared here once, with its type, and is checked before anything reads it. Fields
that are not known here come from a newer jar, and are left out.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from hudi_index_service.errors import RequestRefused, SparkUnsupported
from hudi_index_service.read.execution import Execution
from hudi_index_service.read.planner import QueryType
from hudi_index_service.read.query import Where
from hudi_index_service.table import IndexedTable
from hudi_index_service.wording import first_mistake

VERSION = 1
"""That of requests, which the jar and this package have in common. The one before is answered, too:
services and sessions are not upgraded at one moment."""

T = TypeVar("T")

_QUERY_TYPE = "hoodie.datasource.query.type"
_QUERY_TYPES: dict[str, QueryType] = {each: each for each in get_args(QueryType)}
_AS_OF = "as.of.instant"

# Options that change no row of a snapshot; with any other, the relation is left to Spark.
_OPTIONS = {
    *(_QUERY_TYPE, _AS_OF, "path", "hoodie.enable.data.skipping", "hoodie.populate.meta.fields"),
    *("type", "primarykey", "precombinefield", "orderingfields", "provider", "table", "comment"),
    "serialization.format",
}
_WRITE_OPTIONS = (
    *("hoodie.datasource.write.", "hoodie.datasource.hive_sync.", "hoodie.datasource.meta.sync."),
    *("hoodie.write.", "hoodie.metadata.", "hoodie.compact.", "hoodie.clustering.", "hoodie.clean"),
    *("hoodie.index.", "hoodie.insert.", "hoodie.upsert.", "hoodie.bulkinsert.", "hoodie.delete."),
    *("hoodie.parquet.", "hoodie.table.", "hoodie.database.", "hoodie.bucket.", "hoodie.bloom."),
    *("hoodie.embed.", "hoodie.archive", "hoodie.keep.", "hoodie.simple.", "hoodie.rollback."),
)

_COMPARED = ("column", "type", "values")
_NEEDED = {
    **dict.fromkeys(("and", "or", "not"), ("of",)),
    **dict.fromkeys(("=", "<=>", "<", "<=", ">", ">=", "in", "array contains"), _COMPARED),
    **dict.fromkeys(("starts with", "ends with", "contains", "rlike"), _COMPARED),
    "like": (*_COMPARED, "escape"),
    **dict.fromkeys(("is null", "is not null", "is true", "awaited"), ("column",)),
    "search": ("column", "call"),
}
"""The fields that a condition needs, by its `op`."""
_OF_MANY = ("and", "or", "in")


def answered_versions() -> range:
    """The versions of requests that are answered: this one, and the one before, if there is one."""
    return range(max(1, VERSION - 1), VERSION + 1)


def _answered(version: int) -> int:
    if version not in answered_versions():
        raise SparkUnsupported(
            f"The session's jar asks in version {version}, not {VERSION}.",
            remedy="Install hudi-index-spark and hudi-index-service of one release.",
        )
    return version


def _whole(condition: "_Fields") -> "_Fields":
    op = condition.get("op", "")
    for name in ("op", *_NEEDED.get(op, ())):
        value: Any = condition.get(name)
        is_single = name in ("of", "values") and op not in _OF_MANY
        if value is None or (is_single and len(value) != 1):
            raise ValueError(f"{name} is missing, or of another number")
    return condition


Names = Annotated[list[str], Field(min_length=1)]
"""The names of a column, from the outermost struct in."""


class Call(TypedDict, total=False):
    """A bound call. A condition has `function`, `text`, `edits`, the `analyzer`, and the `table`
    and `column` that it was bound for. A score has the condition's function and text as `mode` and
    `text`, and the `instant` and `query_type` of the snapshot whose texts it compares."""

    function: str
    text: str
    edits: str | int | None
    analyzer: str
    table: str
    column: str
    mode: str
    instant: str
    query_type: QueryType


class _Fields(TypedDict, total=False):
    op: str
    of: "list[Condition]"
    column: Names
    type: str
    values: list[str | int | float | bool | None]
    escape: str
    call: Call


Condition = Annotated[_Fields, AfterValidator(_whole)]
"""A condition as `Conditions.java` describes it."""


class Message(BaseModel):
    """Fields of a message of the jar."""

    model_config = ConfigDict(strict=True, frozen=True)


class Counts(Message):
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
    group: str | None = None
    of: list[list[Condition]]
    most: int | None = None
    all: bool = False


class Key(Message):
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
    """The values of a full-text call.

    Attributes:
        call: The bound call.
        of: The names of the table's column with the texts, from the outermost struct in.
    """

    call: Call
    of: Names


class _Column(Message):
    name: str
    type: str | dict[str, Any] = ""
    computed: Computed | None = None


class Best(Message):
    """The rows with the highest scores.

    Attributes:
        rows: How many.
        score: The score.
    """

    rows: int
    score: Computed


class Request(Message):
    """What a query wants of one Hudi table.

    Attributes:
        version: `VERSION`.
        uri: The table's base path, as `open_table` takes it.
        instants: The requested times of the completed commits that Spark's own reader sees.
        options: The read options of Spark's relation.
        columns: The columns wanted.
        where: Conditions that all wanted rows fulfill.
        key: Restricts the rows further, once the query runs; None if nothing does.
        counts: What is counted of these rows; None if they are wanted themselves.
        best: Only these of the rows are wanted; None if all are.
    """

    version: Annotated[int, AfterValidator(_answered)]
    uri: str = Field(alias="table")
    instants: frozenset[str]
    options: dict[str, str]
    columns: list[_Column]
    where: list[Condition]
    key: Key | None = None
    counts: Counts | None = None
    best: Best | None = None

    @cached_property
    def names(self) -> list[str]:
        """The table's columns wanted."""
        return [each.name for each in self.columns if each.computed is None]

    @cached_property
    def types(self) -> list[Any]:
        """Their types, as Spark has them in JSON; a struct has only the fields needed."""
        return [each.type for each in self.columns if each.computed is None]

    @cached_property
    def computed(self) -> list[Computed]:
        """The values of the other columns wanted."""
        return [each.computed for each in self.columns if each.computed is not None]

    @property
    def query_type(self) -> QueryType:
        """``snapshot`` or ``read_optimized``."""
        return _QUERY_TYPES[self._options.get(_QUERY_TYPE, "snapshot")]

    @property
    def as_of(self) -> str | None:
        """The instant of a time travel query, as written; None for the latest snapshot."""
        return self._options.get(_AS_OF)

    def why_not(self) -> str | None:
        """The reason why Spark has to read the relation; None if its options change no row of a
        snapshot."""
        unknown = sorted(each for each in self.options if not _changes_no_row(each.lower()))
        if unknown:
            return f"the service does not know the option {unknown[0]}"
        known = self._options.get(_QUERY_TYPE, "snapshot") in _QUERY_TYPES
        return None if known else "not a snapshot query"

    @cached_property
    def _options(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.options.items()}


_REQUEST = TypeAdapter(Request)


def read_message(kind: TypeAdapter[T], text: str) -> T:
    """A message of the jar.

    Raises:
        RequestRefused: a field is missing, or of another type.
    """
    try:
        return kind.validate_json(text, strict=True)
    except ValidationError as error:
        raise RequestRefused(f"Invalid request body: {first_mistake(error)}.") from error


def read_request(text: str) -> Request | str:
    """A request, or the reason why Spark has to read the relation.

    Raises:
        SparkUnsupported: it comes from the jar of another release.
        RequestRefused: a field is missing, or of another type.
    """
    request = read_message(_REQUEST, text)
    return request.why_not() or request


def searches(where: list[Condition]) -> list[Computed]:
    """The conditions among some that are full-text searches, as values."""
    return [Computed(each["call"], each["column"]) for each in where if each["op"] == "search"]


def pinned(
    table: IndexedTable, relation: Request, where: Where, columns: list[str]
) -> Execution | str:
    """The query on the snapshot that Spark's own reader would read, so that all relations of a
    query agree whoever reads them; or the reason why that snapshot is unavailable."""
    scan = partial(table.scan, where, columns=columns, query_type=relation.query_type)
    if relation.as_of is not None:
        return scan(as_of=relation.as_of).planned()
    spark_instants = relation.instants
    if not spark_instants:
        return "the table has no commit"
    newest = max(spark_instants)
    run = scan().planned()
    # Read after planning, so that the plan's timeline lies between Spark's and this one.
    table_instants = {each.requested for each in table.hudi_table.completed_instants()}
    if table_instants == spark_instants:
        return run
    if {each for each in table_instants if each <= newest} != spark_instants:
        return "Spark has read an older timeline of the table"
    return scan(as_of=newest).planned()


def _changes_no_row(option: str) -> bool:
    if "merge" in option or "payload" in option:  # how log files are merged
        return False
    return option in _OPTIONS or option.startswith(_WRITE_OPTIONS)
