"""The objects in a fleet file that hold for tables: parts of `Rules`."""

from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from hudi_index_service.columns import column_path
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.fleet.policies.file_values import Duration, Size, is_secret
from hudi_index_service.fleet.policies.policy import DesiredIndex, Prewarm
from hudi_index_service.fleet.policies.windows import Window, check_time_zone
from hudi_index_service.hook.table_keys import INDEX_NAME
from hudi_index_service.index.metadata.definitions import Column, check_index_name

Positive = Annotated[int, Field(gt=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]


STRICT = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
"""The configuration of all objects in a fleet file."""


class _Model(BaseModel):
    model_config = STRICT


class ColumnInFile(_Model):
    """A column of an index; a text is one without options."""

    name: Annotated[str, Field(min_length=1)]
    """The column's name; of a field in a struct, with dots."""
    options: dict[str, str] = {}
    """Options of the index types, such as `analyzer: standard`."""


def _column(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


_AnyColumn = Annotated[
    ColumnInFile, BeforeValidator(_column, json_schema_input_type=str | ColumnInFile)
]


class Definition(_Model):
    """An index that the fleet defines on each table of a group, and owns."""

    name: str
    """Letters, digits and _."""
    columns: Annotated[list[_AnyColumn], Field(min_length=1)]
    """Names, or objects with `name` and `options`."""
    types: Annotated[list[str], Field(min_length=1)] = ["lucene"]
    """Index types; each builds entries of its own with all columns."""
    options: dict[str, str] = {}
    """Options of every column that does not state its own."""

    @field_validator("name")
    @classmethod
    def _names_an_index(cls, name: str) -> str:
        try:
            check_index_name(name)
        except IndexServiceError as error:
            raise ValueError(f"{error.message} {error.remedy}") from error
        if name == INDEX_NAME:
            raise ValueError(f"{name} is the index of the keys hoodie.index.* of writers")
        return name

    def desired(self) -> DesiredIndex:
        """The index, with the options for all columns in each of them."""
        columns = (
            Column(name=each.name, options={**self.options, **each.options})
            for each in self.columns
        )
        return DesiredIndex(self.name, tuple(columns), tuple(self.types))


class SparkRules(_Model):
    """Builds by spark-submit."""

    above: Size
    """Bytes of due base files; of builds that are smaller, the service's machine does the work."""
    submit: Annotated[list[str], Field(min_length=1)] = ["spark-submit"]
    """The command, and options for it, without an application. In client mode; no secret, since
    processes of others see it."""

    @field_validator("submit")
    @classmethod
    def _is_open(cls, words: list[str]) -> list[str]:
        if any(is_secret(word.partition("=")[0], word) for word in words if "=" in word):
            raise ValueError("a secret is not in a command: name it in Spark's own configuration")
        return words


class BuildRules(_Model):
    """A build's process."""

    timeout: Duration = timedelta(minutes=30)
    """How long a build may make no progress before it is ended."""
    spark: SparkRules | None = None
    """Which builds spark-submit runs; null for none."""


class VerifyRules(_Model):
    """Verification."""

    sample: Fraction = 0.01
    """The fraction of the entries that is verified each week; 0 for none."""


class BudgetRules(_Model):
    """Limits of one build; the next one goes on with the rest."""

    files: Positive | None = None
    """Entries to build."""
    bytes: Annotated[Size, Field(gt=0)] | None = None
    """Bytes of base files to read."""
    minutes: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """The time after which nothing more is begun."""
    requests_per_second: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Requests to the table's store."""


class WindowRules(_Model):
    """When builds may begin. One that runs is not ended with its window."""

    time_zone: str = "UTC"
    """An IANA name, such as `Europe/Berlin`."""
    times: Annotated[list[str], Field(min_length=1)]
    """Texts such as `22:00-06:00` or `mon-fri 22:00-06:00`."""

    @field_validator("time_zone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            return check_time_zone(name)
        except IndexServiceError as error:
            raise ValueError(f"{error.message} {error.remedy}") from error

    @field_validator("times")
    @classmethod
    def _are_windows(cls, texts: list[str]) -> list[str]:
        for text in texts:
            Window.parse(text)
        return texts


class PrewarmRules(_Model):
    """What is ready before the first query asks for it, in the process that answers by HTTP."""

    columns: list[Annotated[str, Field(min_length=1)]] = []
    """Columns whose pages are kept in memory, as far as there is room."""
    partitions: Annotated[list[str], Field(min_length=1)] | None = None
    """Paths of partitions, or patterns such as `dt=2026-*`; null for all."""

    @field_validator("columns")
    @classmethod
    def _are_names(cls, names: list[str]) -> list[str]:
        for name in names:
            try:
                column_path(name)
            except IndexServiceError as error:
                raise ValueError(f"{error.message} {error.remedy}") from error
        if len({name.lower() for name in names}) < len(names):
            raise ValueError("a column is named twice")
        return names

    def wanted(self) -> Prewarm:
        """The same as a policy has it."""
        partitions = None if self.partitions is None else tuple(self.partitions)
        return Prewarm(tuple(self.columns), partitions)
