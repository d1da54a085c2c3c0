"""The keys ``hoodie.index.*`` of a Hudi write config, by which an index is defined and built.

    hoodie.index.enabled=true                        false: wake-ups leave the table alone
    hoodie.index.types=lucene                        one or several, separated by commas
    hoodie.index.columns=msg:analyzer=standard;city  columns, separated by ;
    hoodie.index.strategy=incremental                or all
    hoodie.index.wait=0                              seconds a write may wait for its entries

Hudi has keys of its own under the same prefix (``hoodie.index.type`` above all), which are passed
over. With ``hoodie.datasource.write.commitmeta.key.prefix=hoodie.index.`` Hudi stores all of them
with each commit, so that the timeline tells everybody what the writer wants (design, rule 6).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.definitions import Column
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.table.properties import parse_properties
from hudi_index_service.validation_message import first_mistake

PREFIX = "hoodie.index."

METADATA_PREFIX_OPTION = "hoodie.datasource.write.commitmeta.key.prefix"
"""Hudi stores the write options that begin with this option's value with each commit."""

MAX_WAIT_SECONDS = 24 * 3600.0

# Of Hudi 0.15 to 1.2 (HoodieIndexConfig, HoodieIndexingConfig, HoodieHBaseIndexConfig, …), and the
# table's switch for reading.
_NOT_OURS = frozenset({"type", "class", "name", "function", "read.enabled"})
_GROUPS_NOT_OURS = ("bloom.", "bucket.", "hbase.", "simple.", "record.", "global.", "state.")


class WriteKeys(BaseModel):
    """What the keys ask for.

    Attributes:
        enabled: False: wake-ups define and build nothing.
        types: Index types.
        columns: Empty: the keys define no index, and say only how to build.
        strategy: Instead of the door's own; see `IndexedTable.build`.
        wait: Seconds by which a write may be delayed so that its entries exist when it returns.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    types: Annotated[tuple[str, ...], Field(min_length=1)] = ("lucene",)
    columns: tuple[Column, ...] = ()
    strategy: Strategy | None = None
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT_SECONDS, allow_inf_nan=False)] | None = None

    @field_validator("types", mode="before")
    @classmethod
    def _types(cls, value: Any) -> Any:
        return tuple(_split(value, ",")) if isinstance(value, str) else value

    @field_validator("columns", mode="before")
    @classmethod
    def _columns(cls, value: Any) -> Any:
        return parse_columns(value) if isinstance(value, str) else value

    @field_validator("strategy", mode="before")
    @classmethod
    def _strategy(cls, value: Any) -> Any:
        return value.strip().lower() if isinstance(value, str) else value


def read_write_keys(options: Mapping[str, str]) -> WriteKeys | None:
    """The keys among write options; None if there are none of the service's.

    Raises:
        ConfigInvalid: a key that neither the service nor Hudi knows, or a wrong value.
    """
    ours = {key: str(value) for key, value in options.items() if _is_ours(key)}
    if not ours:
        return None
    try:
        return WriteKeys.model_validate({key.removeprefix(PREFIX): ours[key] for key in ours})
    except ValidationError as error:
        first = error.errors()[0]
        key = f"{PREFIX}{first['loc'][0]}"
        if first["type"] == "extra_forbidden":
            known = ", ".join(f"{PREFIX}{name}" for name in WriteKeys.model_fields)
            raise ConfigInvalid(
                f"There is no key {key} of the index service, nor of Hudi.",
                remedy=f"The service's keys are {known}.",
            ) from error
        said = first_mistake(error).partition(": ")[2]
        raise ConfigInvalid(f"Write config {key}={ours.get(key, '')}: {said}.") from error


def index_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options below `PREFIX`, Hudi's own among them. The others, among which secrets can be,
    are nobody's business here."""
    return {key: str(value) for key, value in options.items() if key.startswith(PREFIX)}


def holds_write_keys(options: Mapping[str, str]) -> bool:
    """Whether any of the options is a key of the service."""
    return any(_is_ours(key) for key in options)


def read_write_config(lines: Sequence[str] = (), file: str | Path | None = None) -> dict[str, str]:
    """Write options as Hudi's own tools take them: by ``--props`` and ``--hoodie-conf``.

    Args:
        lines: Each ``key=value``, or several of them on lines of their own; they win.
        file: A properties file, such as ``configs/hudi-write.properties``.

    Raises:
        ConfigInvalid: the file cannot be read, or a line is no ``key=value``.
    """
    options: dict[str, str] = {}
    if file is not None:
        try:
            options.update(parse_properties(Path(file).read_bytes()))
        except (OSError, ValueError) as error:
            raise ConfigInvalid(f"The properties file {file} cannot be read: {error}.") from error
    for line in (line.strip() for text in lines for line in text.splitlines()):
        key, separator, value = line.partition("=")
        if not line:
            continue
        if not separator or not key.strip():
            raise ConfigInvalid(f"{line!r} is no key=value.")
        options[key.strip()] = value.strip()
    return options


def parse_columns(text: str) -> tuple[Column, ...]:
    """Columns as in ``msg:analyzer=standard,keyword=true;city``; without options, commas separate
    them as well: ``msg,city``.

    Raises:
        ValueError: naming the part that does not fit.
    """
    columns: list[Column] = []
    for part in _split(text, ";"):
        name, colon, options = part.partition(":")
        names = _split(name, ",")
        if colon and len(names) != 1:
            raise ValueError(f"{part!r}: columns with options are separated by ';'")
        pairs = [option.partition("=") for option in _split(options, ",")]
        for key, equals, value in pairs:
            if not equals or not key.strip() or not value.strip():
                raise ValueError(f"{part!r}: an option is key=value")
        given = {key.strip(): value.strip() for key, _, value in pairs}
        columns += [Column(name=each, options=given) for each in names]
    return tuple(columns)


def _split(text: str, separator: str) -> list[str]:
    return [part.strip() for part in text.split(separator) if part.strip()]


def _is_ours(key: str) -> bool:
    if not key.startswith(PREFIX):
        return False
    name = key.removeprefix(PREFIX)
    return name not in _NOT_OURS and not name.startswith(_GROUPS_NOT_OURS)
