"""Hudi write options: the service's keys ``hoodie.index.*``, which define an index and how to build
it, and the options that make a write call back.

    hoodie.index.enabled=true                        false: wake-ups do nothing
    hoodie.index.types=lucene                        one or several, separated by commas
    hoodie.index.columns=msg:analyzer=standard;city  columns, separated by ;
    hoodie.index.strategy=incremental                or all
    hoodie.index.wait=0                              seconds a write may wait for its entries
    hoodie.index.retention=file-slice                or instant: how long entries are kept

Hudi has keys of its own with the same prefix (such as ``hoodie.index.type``), which are ignored.
With ``hoodie.datasource.write.commitmeta.key.prefix=hoodie.index.`` Hudi stores all of them with
each commit, so that every process can read them from the timeline (design, rule 6).

Hudi's commit callback is the only hook that plain write options can set from Python
(`HoodieWriteCommitCallbackConfig`, the same keys since 0.6). It posts once per data commit, after
the inline table services of that write have committed. Hudi only logs a status of 300 or above and
a timeout: the commit stands.
"""

import logging
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import RetentionPolicy
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hudi.properties import parse_properties
from hudi_index_service.index.metadata.definitions import Column
from hudi_index_service.wording import did_you_mean, first_mistake, reason

log = logging.getLogger(__name__)

SECRET_HEADER = "HUDI-CALLBACK-KEY"
"""The header in which Hudi sends the value of `SECRET_OPTION`."""

SECRET_OPTION = "hoodie.write.commit.callback.http.api.key"

CALLBACK_PATH = "/hudi/commit"
"""Where callbacks are taken."""

WAIT_PARAMETER = "wait"
"""The URL parameter by which one write sets the seconds to hold its answer."""

# The listener answers after `wait`. Hudi's own timeout handles a listener that is gone or stuck, so
# it must be somewhat longer.
TIMEOUT_MARGIN_SECONDS = 5


PREFIX = "hoodie.index."

METADATA_PREFIX_OPTION = "hoodie.datasource.write.commitmeta.key.prefix"
"""With each commit, Hudi stores the write options that begin with this option's value."""

MAX_WAIT_SECONDS = 24 * 3600.0

# Keys of Hudi 0.15 to 1.2 (HoodieIndexConfig, HoodieIndexingConfig, HoodieHBaseIndexConfig, …), and
# the table's switch for reading.
_NOT_OURS = frozenset({"type", "class", "name", "function", "read.enabled"})
_GROUPS_NOT_OURS = ("bloom.", "bucket.", "hbase.", "simple.", "record.", "global.", "state.")


class WriteKeys(BaseModel):
    """The parsed keys.

    Attributes:
        enabled: Whether wake-ups define and build anything.
        types: Index types.
        columns: Indexed columns; if empty, the keys define no index and only set how to build.
        strategy: Overrides the trigger's strategy; see `IndexedTable.build`.
        retention: Overrides the setting ``clean.retention``.
        wait: Seconds by which a write may be delayed so that its entries exist when it returns.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    types: Annotated[tuple[str, ...], Field(min_length=1)] = ("lucene",)
    columns: tuple[Column, ...] = ()
    strategy: Strategy | None = None
    retention: RetentionPolicy | None = None
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT_SECONDS, allow_inf_nan=False)] | None = None

    @field_validator("types", mode="before")
    @classmethod
    def _types(cls, value: Any) -> Any:
        return tuple(_split(value, ",")) if isinstance(value, str) else value

    @field_validator("columns", mode="before")
    @classmethod
    def _columns(cls, value: Any) -> Any:
        return parse_columns(value) if isinstance(value, str) else value

    @field_validator("strategy", "retention", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return value.strip().lower() if isinstance(value, str) else value


def read_write_keys(options: Mapping[str, str]) -> WriteKeys | None:
    """The service's keys among write options; None if there are none.

    Raises:
        ConfigInvalid: a key that is neither the service's nor Hudi's, or a wrong value.
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
            keys = [f"{PREFIX}{name}" for name in WriteKeys.model_fields]
            raise ConfigInvalid(
                f"{key} is neither a key of the index service nor of Hudi.",
                remedy=f"{did_you_mean(key, keys)}The service's keys are {', '.join(keys)}.",
            ) from error
        mistake = first_mistake(error).partition(": ")[2]
        raise ConfigInvalid(
            f"Write config {key}={ours.get(key, '')}: {mistake}.",
            remedy=f"Correct or remove the key {key}.",
        ) from error


def index_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options below `PREFIX`, including Hudi's own. The others can include secrets and are
    dropped."""
    return {key: str(value) for key, value in options.items() if key.startswith(PREFIX)}


def holds_write_keys(options: Mapping[str, str]) -> bool:
    """Whether any of the options is a key of the service."""
    return any(_is_ours(key) for key in options)


def read_write_config(lines: Sequence[str] = (), file: str | Path | None = None) -> dict[str, str]:
    """Write options from ``--props`` and ``--hoodie-conf``, as in Hudi's own tools.

    Args:
        lines: Each ``key=value``, or several of them on separate lines; they override the file. A
            key that does not begin with ``hoodie.`` is logged.
        file: A properties file, such as ``configs/hudi-write.properties``.

    Raises:
        ConfigInvalid: the file cannot be read, or a line is not ``key=value``.
    """
    options: dict[str, str] = {}
    if file is not None:
        try:
            options.update(parse_properties(Path(file).read_bytes()))
        except (OSError, ValueError) as error:
            raise ConfigInvalid(
                f"The properties file {file} cannot be read: {reason(error)}.",
                remedy="Name a properties file that this user may read.",
            ) from error
    for line in (line.strip() for text in lines for line in text.splitlines()):
        key, separator, value = line.partition("=")
        if not line:
            continue
        if not separator or not key.strip():
            raise ConfigInvalid(
                f"{line!r} is not of the form key=value.", remedy="Write key=value on each line."
            )
        if not key.strip().startswith("hoodie."):
            log.warning(
                "%s is no key of Hudi, and is ignored. Write whole keys, such as %scolumns.",
                *(key.strip(), PREFIX),
            )
        options[key.strip()] = value.strip()
    return options


def parse_columns(text: str) -> tuple[Column, ...]:
    """Parses columns such as ``msg:analyzer=standard,keyword=true;city``. Commas may also separate
    columns without options: ``msg,city``.

    Raises:
        ValueError: a part that cannot be parsed; the message names it.
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
        column_options = {key.strip(): value.strip() for key, _, value in pairs}
        columns += [Column(name=each, options=column_options) for each in names]
    return tuple(columns)


def _split(text: str, separator: str) -> list[str]:
    return [part.strip() for part in text.split(separator) if part.strip()]


def _is_ours(key: str) -> bool:
    if not key.startswith(PREFIX):
        return False
    name = key.removeprefix(PREFIX)
    return name not in _NOT_OURS and not name.startswith(_GROUPS_NOT_OURS)


def callback_options(
    url: str, secret: str, *, wait: float, usual_wait: float | None = None
) -> dict[str, str]:
    """Write options that post each data commit to `url`.

    Args:
        secret: Value of the `SECRET_HEADER`.
        wait: Seconds that the listener may hold its answer.
        usual_wait: The listener's default for `wait`.
    """
    query = "" if usual_wait is None or wait == usual_wait else f"?{WAIT_PARAMETER}={wait:g}"
    return {
        "hoodie.write.commit.callback.on": "true",
        "hoodie.write.commit.callback.http.url": f"{url}{query}",
        SECRET_OPTION: secret,
        "hoodie.write.commit.callback.http.timeout.seconds": str(
            ceil(wait) + TIMEOUT_MARGIN_SECONDS
        ),
    }


def requested_wait(parameter: str | None, usual: float) -> float:
    """The seconds to hold an answer, by the URL's parameter; `usual` if that is none or invalid."""
    try:
        wait = float(parameter or "")
    except ValueError:
        return usual
    return wait if 0 <= wait <= MAX_WAIT_SECONDS else usual


def checked_wait(wait: float) -> float:
    """The seconds to hold an answer. Raises ConfigInvalid for more than a day."""
    if not 0 <= wait <= MAX_WAIT_SECONDS:
        raise ConfigInvalid(
            f"wait={wait} is not a number of seconds up to a day.",
            remedy="Use a number from 0 to 86400.",
        )
    return wait


def with_keys_in_commits(options: Mapping[str, str]) -> dict[str, str]:
    """The options, plus the one that makes Hudi store their ``hoodie.index.*`` keys with each
    commit. A prefix that the user set is kept; the keys then apply to this process only."""
    if not holds_write_keys(options):
        return dict(options)
    prefix = options.get(METADATA_PREFIX_OPTION, PREFIX)
    if not PREFIX.startswith(prefix):
        log.warning(
            "%s=%s: the hoodie.index.* keys are not stored with the commits, so no other process "
            "can read them.",
            METADATA_PREFIX_OPTION,
            prefix,
        )
    return {**options, METADATA_PREFIX_OPTION: prefix}
