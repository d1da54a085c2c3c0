"""Settings of the service, from (first wins) arguments, environment, a YAML file, defaults.

Environment variables are ``HUDI_INDEX_<SECTION>__<KEY>``, such as
``HUDI_INDEX_READ__ENABLED=false`` (the kill switch); ``HUDI_INDEX_CONFIG`` names a YAML file with
the same sections (see ``configs/service.yaml``).
"""

import os
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)
from yaml import YAMLError

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.validation_message import first_mistake

_PREFIX = "HUDI_INDEX_"

Positive = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _check_maximum(name: str, first: float, longest: float) -> None:
    if longest < first:
        raise ValueError(f"{name}_max_seconds={longest:g} is less than {name}_seconds={first:g}")


class LuceneSettings(_Section):
    """The Lucene index type.

    heap_mb: Maximum Java heap of PyLucene's virtual machine, in MiB. It must hold a builder's
    `build.memory_mb`. There is one such machine a process, so the process's own settings count, not
    those given to `open_table`.
    """

    heap_mb: Positive = 768


class HBaseSettings(_Section):
    """The HBase index type: where its cells lie, and how long is waited for them.

    host, port: Of HBase's Thrift server (version 1 of its interface).
    namespace, table: Of the one HBase table that holds the cells of all Hudi tables. Entries that
    were stored in another serve no more.
    create_table: Whether a build makes the table if there is none; the namespace has to be there.
    transport, protocol: As the Thrift server was started.
    tls, tls_ca, tls_cert, tls_key, tls_verify: Whether the connection is encrypted; files in PEM:
    the authorities to trust (else the system's), and the certificate and key to show; whether the
    server's certificate is checked.
    kerberos_service, kerberos_host, kerberos_qop: The name of the service (mostly ``hbase``) and
    of the host (else `host`) in the server's principal; the quality of protection. The ticket is
    the one that the process has. None: no Kerberos.
    connect_seconds: Within which a connection has to be there.
    read_seconds: Within which HBase has to answer a look-up, however many requests it takes.
    slow_seconds, slow_requests: After so many requests in a row that each took longer than this,
    HBase counts as away.
    pause_seconds: Once HBase is away, queries scan without asking it for so long.
    cache_mb: What a process keeps of the cells that it read, in MiB; 0 for nothing.
    write_seconds: Within which HBase has to take a batch, or to list or remove what a request
    names.
    batch_rows, batch_kb: HBase rows, and KiB, of a batch at most; a row alone may have more.
    attempts, backoff_seconds, backoff_max_seconds: How often a batch is sent before a build gives
    its base file up; how long it waits before the second time, and twice as long each further time,
    up to the maximum.
    """

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Field(ge=1, le=65535)] = 9090
    namespace: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$")] = "default"
    table: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")] = "hudi_index"
    create_table: bool = True
    transport: Literal["buffered", "framed"] = "buffered"
    protocol: Literal["binary", "compact"] = "binary"
    tls: bool = False
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_verify: bool = True
    kerberos_service: str | None = None
    kerberos_host: str | None = None
    kerberos_qop: Literal["auth", "auth-int", "auth-conf"] = "auth"
    connect_seconds: Seconds = 3.0
    read_seconds: Seconds = 10.0
    slow_seconds: Seconds = 2.0
    slow_requests: Positive = 4
    pause_seconds: Seconds = 30.0
    cache_mb: Annotated[int, Field(ge=0)] = 64
    write_seconds: Seconds = 60.0
    batch_rows: Positive = 500
    batch_kb: Positive = 1024
    attempts: Positive = 6
    backoff_seconds: Seconds = 0.5
    backoff_max_seconds: Seconds = 30.0

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _check_maximum("backoff", self.backoff_seconds, self.backoff_max_seconds)
        given = [name for name in ("tls_ca", "tls_cert", "tls_key") if getattr(self, name)]
        if given and not self.tls:
            raise ValueError(f"{given[0]} is given, and tls is off")
        if self.tls_key and not self.tls_cert:
            raise ValueError("tls_key is given without tls_cert")
        return self


class BuildSettings(_Section):
    """Building.

    memory_mb: What a process's index writers may hold before they write segments, in MiB.
    part_mb: A base file that is larger than what each core has to do is built in parts, each of at
    least so many MiB of it. More parts make larger indexes: each has terms of its own.
    parallelism: Tasks of the local executor that run at once.
    batch_rows: Rows read from a base file at a time, by builds and by scans.
    heartbeat_seconds: How often a running build says that it lives.
    stale_seconds: A build silent for this long counts as dead; one whose process is known to be
    gone, at once.
    on: After what INCREMENTAL builds: ``clustering``, ``compaction``, and ``commit`` for base files
    that plain commits write (upserts, inserts, overwrites).
    retry_seconds, retry_max_seconds: After a failure, wake-ups leave a base file alone for this
    long, twice as long after the next failure in a row, and so on up to the maximum.
    """

    memory_mb: Positive = 384
    part_mb: Positive = 192
    parallelism: Positive = 2
    batch_rows: Positive = 65_536
    heartbeat_seconds: Positive = 10
    stale_seconds: Positive = 120
    on: tuple[Literal["clustering", "compaction", "commit"], ...] = ("clustering", "compaction")
    retry_seconds: Positive = 60
    retry_max_seconds: Positive = 21_600

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.heartbeat_seconds >= self.stale_seconds:
            raise ValueError(
                f"heartbeat_seconds={self.heartbeat_seconds} has to be less than "
                f"stale_seconds={self.stale_seconds}, or living builds count as dead"
            )
        _check_maximum("retry", self.retry_seconds, self.retry_max_seconds)
        return self


class ReadSettings(_Section):
    """Reading.

    enabled: The kill switch: false turns all use of indexes off.
    max_predicate_length: Characters of a where text, at most; longer ones are refused.
    max_in_values: Values of one IN list, at most; longer ones are refused.
    max_predicates: A query with more predicates than this is scanned (RFC-51, RBO example).
    min_table_mb: A query that has to look into fewer MiB of base files is scanned; 0 for none.
    min_coverage: A query is scanned if less than this fraction of the bytes it has to look into is
    in base files that an entry serves; 0 for none.
    scan_fraction: Above this fraction of the columns' bytes, reading a base file whole is cheaper
    than reading its pages one by one, unless fewer than one row in 16 is wanted.
    parallelism: File slices read at once.
    open_mb: Index data that stays open between queries, in MiB; it is mapped, not read. What was
    used longest ago is closed first.
    time_zone: Session time zone for literals without one, when no Spark session is given.
    """

    enabled: bool = True
    max_predicate_length: Positive = 10_000_000
    max_in_values: Positive = 100_000
    max_predicates: Positive = 10
    min_table_mb: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    min_coverage: Annotated[float, Field(ge=0, le=1)] = 0
    scan_fraction: Annotated[float, Field(gt=0, le=1)] = 0.9
    parallelism: Positive = 4
    open_mb: Positive = 8192
    time_zone: str = "UTC"


class CleanSettings(_Section):
    """Cleaning.

    retention: ``file-slice`` keeps an entry while its base file exists; ``instant`` only while its
    instant is also on the active timeline.
    grace_seconds: Superseded generations, entries of dropped indexes and what dead builds left are
    left alone for this long: somebody may be using them. What a living build made stays anyway.
    """

    retention: Literal["file-slice", "instant"] = "file-slice"
    grace_seconds: Annotated[int, Field(ge=0)] = 3600


class HistorySettings(_Section):
    """What is remembered of queries, by which the optimizer corrects itself: never a literal.

    enabled: Whether queries are recorded, and the optimizer goes by those recorded before.
    max_shapes: Shapes of queries (table, columns and operators) that are kept; beyond them, those
    go that were asked longest ago.
    half_life_queries, half_life_days: After so many queries of a shape, and after so long, what was
    seen before counts half.
    """

    enabled: bool = True
    max_shapes: Positive = 2_000
    half_life_queries: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 32
    half_life_days: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 14


class HookSettings(_Section):
    """The commit-callback listener.

    host, port: Where it listens; port 0 takes a free one.
    secret: What callbacks must carry; a random one for each run when empty.
    max_connections: Open at once, at most, and never more than an eighth of the files that the
    process may open. One more takes the place of the one that has waited longest without a whole
    request.
    request_seconds: A connection that sends no whole request within this time is closed; one whose
    build is waited for is not.
    queue: Wake-ups held at most; more are refused (503), and nothing is lost by it: the timeline
    tells what is due.
    parallelism: Tables built at once; one table never is twice.
    backoff_seconds: A table whose build failed is not built again before this time has passed,
    twice as long after each further failure in a row, up to `backoff_max_seconds`. A wake-up in
    the meantime waits until then.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    secret: SecretStr | None = None
    max_connections: Positive = 128
    request_seconds: Seconds = 15.0
    queue: Positive = 1024
    parallelism: Positive = 2
    backoff_seconds: Seconds = 5.0
    backoff_max_seconds: Seconds = 300.0

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _check_maximum("backoff", self.backoff_seconds, self.backoff_max_seconds)
        return self


class WatchSettings(_Section):
    """`hudi-index watch`.

    interval_seconds: How often each timeline is looked at. Failing builds back off as the section
    `hook` says.
    """

    interval_seconds: Seconds = 30.0


class LoggingSettings(_Section):
    """What the command line logs on standard error, one line an event.

    format: ``text``, or ``json`` for an object with time, level, logger and message; then what
    `serve` and `watch` print of themselves is JSON, too.
    """

    format: Literal["text", "json"] = "text"


def _default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hudi-index-service"


def _default_state() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "hudi-index-service"


class Settings(BaseSettings):
    """All settings. See the sections.

    cache_folder: Copies of what can be fetched again.
    cache_max_mb: What copies of remote tables' index data may take there, in MiB; those used
    longest ago go first.
    state_folder: What the service remembers of tables between runs (mode 0700).
    """

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    lucene: LuceneSettings = LuceneSettings()
    hbase: HBaseSettings = HBaseSettings()
    build: BuildSettings = BuildSettings()
    read: ReadSettings = ReadSettings()
    clean: CleanSettings = CleanSettings()
    history: HistorySettings = HistorySettings()
    hook: HookSettings = HookSettings()
    watch: WatchSettings = WatchSettings()
    logging: LoggingSettings = LoggingSettings()
    cache_folder: Path = Field(default_factory=_default_cache)
    cache_max_mb: Positive = 10_240
    state_folder: Path = Field(default_factory=_default_state)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then environment, then the YAML file."""
        yaml_file = os.environ.get("HUDI_INDEX_CONFIG")
        yaml = YamlConfigSettingsSource(settings_cls, yaml_file=yaml_file)
        return init_settings, env_settings, yaml


def load_settings() -> Settings:
    """Reads the settings anew.

    Raises:
        ConfigInvalid: an unknown key, a wrong value, or a file that is not there or not YAML.
    """
    yaml_file = os.environ.get("HUDI_INDEX_CONFIG")
    if yaml_file and not Path(yaml_file).is_file():
        raise ConfigInvalid(f"HUDI_INDEX_CONFIG names {yaml_file}, which is no file.")
    _refuse_unknown_sections()
    try:
        return Settings()
    except ValidationError as error:
        raise ConfigInvalid(f"Setting {first_mistake(error)}.") from error
    except (YAMLError, TypeError, ValueError, OSError) as error:
        raise ConfigInvalid(f"{yaml_file or 'The settings'} cannot be read: {error}.") from error


def _refuse_unknown_sections() -> None:
    """Pydantic passes over variables that name no field, and with them a misspelt kill switch."""
    known = Settings.model_fields
    for name in os.environ:
        if not name.upper().startswith(_PREFIX):
            continue
        setting = name.upper().removeprefix(_PREFIX).lower()
        section, separator, _ = setting.partition("__")
        if separator and section not in known:
            raise ConfigInvalid(f"Setting {name}: there is no section {section}.")
        section, _, key = setting.partition("_")
        if not separator and setting not in known and section in known:
            raise ConfigInvalid(
                f"Setting {name}: section and key are joined by two underscores.",
                remedy=f"Write {_PREFIX}{section.upper()}__{key.upper()}.",
            )


@cache
def settings() -> Settings:
    """The process's settings, read once. `settings.cache_clear()` makes the next call read anew."""
    return load_settings()
