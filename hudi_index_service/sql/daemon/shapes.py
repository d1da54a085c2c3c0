"""The shapes of a session's questions: fields and their types, before anything reads them.

`Request.java`, `Conditions.java` and `FullTextCall.java` describe what the fields mean. Fields that
are not known here come from a newer jar, and are left out.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from hudi_index_service.errors import RequestRefused

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
_OF_MANY = ("and", "or", "in", "is null", "is not null", "is true", "awaited", "search")

Names = Annotated[list[str], Field(min_length=1)]


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True)


class _Call(_Shape):
    function: str
    text: str | None
    edits: str | int | None = None
    analyzer: str = ""


class _Condition(_Shape):
    op: str
    of: "list[_Condition] | None" = None
    column: Names | None = None
    type: str | None = None
    values: list[str | int | float | bool | None] | None = None
    escape: str | None = None
    call: _Call | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> "_Condition":
        for name in _NEEDED.get(self.op, ()):
            value = getattr(self, name)
            is_single = name in ("of", "values") and self.op not in _OF_MANY
            if value is None or (is_single and len(value) != 1):
                raise ValueError(f"{name} is missing, or of another number")
        return self


class _Bound(_Shape):
    call: dict[str, Any]
    of: Names


class _Column(_Shape):
    name: str
    type: str | dict[str, Any] = ""
    computed: _Bound | None = None


class _Key(_Shape):
    column: str
    most: int


class _Counts(_Shape):
    names: list[str]
    group: str | None = None
    of: list[list[_Condition]]
    most: int | None = None
    all: bool = False


class _Best(_Shape):
    rows: int
    score: _Bound


class _Request(_Shape):
    version: int
    table: str
    instants: list[str]
    options: dict[str, str]
    columns: list[_Column]
    where: list[_Condition]
    key: _Key | None = None
    counts: _Counts | None = None
    best: _Best | None = None


class _Place(_Shape):
    table: str
    names: Names


class _Search(_Call):
    function: Literal["match", "match_any", "match_phrase", "match_prefix", "match_fuzzy"]
    columns: Annotated[list[_Place], Field(min_length=1)]


class _Scored(_Call):
    column: str


class _Score(_Shape):
    function: Literal["score"]
    search: _Scored
    relation: _Request


class _Decision(_Shape):
    reader: str
    where: str | None
    instant: str | None
    rows: int | None
    indexes: list[str]


class _Use(_Shape):
    number: int
    table: str
    reader: str
    reason: str
    decision: _Decision
    rows: int | None = None
    request: _Request | None = None


class _Explained(_Shape):
    uses: list[_Use] = Field(default_factory=list)


_REQUEST: TypeAdapter[Any] = TypeAdapter(_Request)
_SHAPES: dict[str, TypeAdapter[Any]] = {
    "decide": _REQUEST,
    "rows": _REQUEST,
    "bind": TypeAdapter(_Search | _Score),
    "explain": TypeAdapter(_Explained),
}


def check_shape(question: str, body: str) -> None:
    """Checks the fields of a question's body, and their types. Statements check their own.

    Raises:
        RequestRefused: one is missing, or of another type.
    """
    shape = _SHAPES.get(question)
    if shape is None:
        return
    try:
        shape.validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise RequestRefused(f"The body is no such question: {where}: {first['msg']}.") from error
