"""Settings of the service, from (first wins) arguments, environment, a YAML file, defaults.

Environment variables are named ``HUDI_INDEX_<SECTION>__<KEY>``, such as
``HUDI_INDEX_READ__ENABLED=false`` (the kill switch); ``HUDI_INDEX_CONFIG`` names a YAML file with
the same sections (see ``configs/service.yaml``).
"""

import logging
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.wording import did_you_mean, first_mistake, one_line

log = logging.getLogger(__name__)

_PREFIX = "HUDI_INDEX_"

# Named elsewhere: for Hudi's bundle, for building the native parts, and for `hudi-index fleet`.
_OTHER_VARIABLES = frozenset({"CONFIG", "HUDI_JAR", "CACHE", "SPARK_JARS", "TOKEN", "URL"})

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
    `build.memory_mb`. Each process has one JVM, so the process's own settings apply, not those
    passed to `open_table`.
    """

    heap_mb: Positive = 768


class HBaseSettings(_Section):
    """The HBase index type: where its cells are stored, and its timeouts.

    host, port: Address of HBase's Thrift server (version 1 of its interface).
    namespace, table: The one HBase table that holds the cells of all Hudi tables. Entries stored in
    another table no longer serve queries.
    create_table: Whether a build creates the table if it is missing; the namespace has to exist.
    transport, protocol: The Thrift server's own settings.
    tls, tls_ca, tls_cert, tls_key, tls_verify: Whether the connection is encrypted; PEM files with
    the trusted authorities (default: the system's) and with the client's certificate and key;
    whether the server's certificate is checked.
    kerberos_service, kerberos_host, kerberos_qop: The service name (mostly ``hbase``) and host name
    (default: `host`) in the server's principal; the quality of protection. The ticket is the
    process's own (kinit). Without a service name, Kerberos is off. Needs the extra
    ``hbase-kerberos``.
    connect_seconds: Timeout for a connection.
    read_seconds: Timeout for a look-up, over all its requests.
    slow_seconds, slow_requests: After this many requests in a row that each took longer than
    `slow_seconds`, or after one that failed, HBase counts as unavailable.
    pause_seconds: How long queries scan without calling HBase once it is unavailable.
    cache_mb: MiB of cells read that a process caches; 0 for none.
    write_seconds: Timeout for a request that writes a batch, lists or removes.
    batch_rows, batch_kb: Maximum HBase rows and KiB of a batch; a single row may be larger.
    attempts, backoff_seconds, backoff_max_seconds: How often a batch is sent before a build gives
    up its base file; the wait before the second attempt, doubled before each further one up to the
    maximum.
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
        tls_files = [name for name in ("tls_ca", "tls_cert", "tls_key") if getattr(self, name)]
        if tls_files and not self.tls:
            raise ValueError(f"{tls_files[0]} is given, and tls is off")
        if self.tls_key and not self.tls_cert:
            raise ValueError("tls_key is given without tls_cert")
        return self


class BuildSettings(_Section):
    """Building.

    memory_mb: MiB that a process's index writers may buffer before they write segments.
    part_mb: A base file larger than one core's share of the work is built in parts of at least this
    many MiB. More parts make larger indexes, because each part has its own terms.
    parallelism: Tasks that the local executor runs at once.
    batch_rows: Rows that builds and scans read from a base file at a time.
    heartbeat_seconds: How often a running build writes a heartbeat.
    stale_seconds: A build without a heartbeat for this long counts as dead. A build whose process
    is known to have ended counts as dead at once.
    on: The actions after which INCREMENTAL builds: ``clustering``, ``compaction``, and ``commit``
    for base files that plain commits write (upserts, inserts, overwrites). In YAML, quote the key:
    a bare on is true.
    retry_seconds, retry_max_seconds: After a failure, wake-ups skip a base file for this long. The
    wait doubles with each further failure in a row, up to the maximum.
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
                f"stale_seconds={self.stale_seconds}, or running builds count as dead"
            )
        _check_maximum("retry", self.retry_seconds, self.retry_max_seconds)
        return self


class ReadSettings(_Section):
    """Reading.

    enabled: The kill switch: false turns off all use of indexes.
    max_predicate_length: Maximum characters of a where text; longer ones are refused.
    max_in_values: Maximum values of one IN list; longer ones are refused.
    max_predicates: A query with more predicates than this scans (RFC-51, RBO example).
    min_table_mb: A query over fewer MiB of base files than this scans; 0 for no limit.
    min_coverage: A query scans if less than this fraction of its bytes is in base files that an
    entry serves; 0 for no limit.
    scan_fraction: Above this fraction of the columns' bytes, reading a base file whole is cheaper
    than reading its pages one by one, unless fewer than one row in 16 is wanted.
    parallelism: File slices read at once. Four times as many wait for a remote store at once, for
    their entries or for single pages.
    open_mb: MiB of index data that stays open between queries; it is mapped, not read. The least
    recently used data is closed first.
    log_rows_mb: MiB of merged rows of log files that are kept for later queries.
    page_cache_mb: MiB of decompressed pages of local base files that a process keeps for later
    queries; 0 for none. By default 256, or a sixteenth of the memory that the process may use if
    that is less. A Spark task keeps a tenth. Each process has one such cache, so the process's own
    settings apply, not those passed to `open_table`.
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
    log_rows_mb: Positive = 256
    page_cache_mb: Annotated[int, Field(ge=0)] | None = None
    time_zone: str = "UTC"


RetentionPolicy = Literal["file-slice", "instant"]


class CleanSettings(_Section):
    """Cleaning.

    retention: ``file-slice`` keeps an entry while its base file exists; ``instant`` only while its
    instant is also on the active timeline.
    grace_seconds: How long superseded generations, entries of dropped indexes and leftovers of dead
    builds are kept, because they may be in use. The output of a running build is always kept.
    """

    retention: RetentionPolicy = "file-slice"
    grace_seconds: Annotated[int, Field(ge=0)] = 3600


class HistorySettings(_Section):
    """The query history, from which the optimizer corrects its estimates; it holds no literals.

    enabled: Whether queries are recorded and the optimizer uses the records.
    max_shapes: Query shapes (table, columns and operators) kept; beyond that, the least recently
    queried are dropped.
    half_life_queries, half_life_days: After this many queries of a shape, or this many days, older
    observations count half.
    """

    enabled: bool = True
    max_shapes: Positive = 2_000
    half_life_queries: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 32
    half_life_days: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 14


class HookSettings(_Section):
    """The commit-callback listener.

    host, port: Address to listen on; port 0 takes a free one. It serves plain HTTP: leave it on the
    loopback interface, or put it behind a proxy that encrypts.
    secret: Secret that callbacks must carry; if empty, a random one for each run, which
    `hudi-index serve` keeps in a file in the state folder. Set it in ``HUDI_INDEX_HOOK__SECRET``
    rather than in a file.
    max_connections: Maximum open connections, and never more than an eighth of the process's limit
    of open files. A further connection replaces the one that has waited longest without a whole
    request.
    request_seconds: A connection that sends no whole request within this time is closed; one that
    waits for its build is not.
    queue: Maximum tables that wait. Callbacks for more are refused (503), which loses nothing: the
    timeline shows what is due.
    parallelism: Tables built at once; one table is never built twice at once.
    backoff_seconds, backoff_max_seconds: A table whose build failed is not built again before the
    first time has passed. It doubles with each further failure in a row, up to the second. A
    wake-up in the meantime waits until then.
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

    interval_seconds: How often each timeline is checked. Failing builds back off as set in the
    section `hook`.
    """

    interval_seconds: Seconds = 30.0


class AnswerSettings(_Section):
    """`hudi-index serve-spark`. Its connections are limited as set in the section `hook`.

    host, port: Address to listen on; port 0 takes a free one. It serves plain HTTP: leave it on the
    loopback interface, or put it behind a proxy that encrypts.
    token: Token that Spark sessions must send; if empty, a random one for each run, which
    `hudi-index serve-spark` keeps in a file in the state folder. Set it in
    ``HUDI_INDEX_ANSWER__TOKEN`` rather than in a file. If set, a fleet's service takes it, too.
    allow_changes: Whether their index statements may change indexes, and build entries in the
        daemon's process: CREATE, ALTER, DROP and REFRESH INDEX, OPTIMIZE TABLE, CANCEL INDEXING.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 7051
    token: SecretStr | None = None
    allow_changes: bool = False


class WebSettings(_Section):
    """The pages, the API and the metrics of a fleet. A whole request must arrive within
    `hook.request_seconds`; callbacks may carry `hook.secret` in place of a token.

    host, port: Address to listen on; port 0 takes a free one.
    tokens: File of the tokens: on each line a name, a role (``notify``, ``read``, ``operate`` or
    ``metrics``), the token's SHA-256, and the patterns of the tables that it is for, all of them if
    there is none. It is read again when it changes. Others than this user and its group must not be
    able to read it. Without it, nobody can sign in.
    tls_cert, tls_key: PEM files of the certificate, with its chain, and of its key; without them,
    plain HTTP is served.
    origins: Further origins of the pages, such as ``https://indexes.example.com`` behind a proxy
    that encrypts.
    max_connections: Maximum open connections, as `hook.max_connections`.
    max_streams: Maximum open pages that are kept up to date, and never more than half of the
    connections.
    session_seconds: How long a browser stays signed in.
    most_tables: Maximum tables with series of their own in the metrics; those that need attention
    most have them.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 7052
    tokens: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    origins: tuple[str, ...] = ()
    max_connections: Positive = 256
    max_streams: Positive = 32
    session_seconds: Seconds = 43_200.0
    most_tables: Positive = 1000

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            given, absent = ("cert", "key") if self.tls_cert else ("key", "cert")
            raise ValueError(f"tls_{given} is given without tls_{absent}")
        for origin in self.origins:
            if not re.fullmatch(r"https?://[^/?#\s]+", origin):
                raise ValueError("an origin is a scheme and a host, such as https://example.com")
        return self


class LoggingSettings(_Section):
    """The command line's log on standard error, one line per event.

    format: ``text``, or ``json`` for an object with time (ISO 8601, UTC), level, logger, message
    and, for an error, exception; the output of `serve` and `watch` is then JSON, too. The level is
    an option: `hudi-index --log-level info`.
    """

    format: Literal["text", "json"] = "text"


def _own_folder(variable: str, in_home: str) -> Path:
    """The service's folder, in the one that a variable names, or else in one in the user's own."""
    return Path(os.environ.get(variable) or Path.home() / in_home, "hudi-index-service")


class Settings(BaseSettings):
    """All settings, by section.

    cache_folder: Folder for copies of data that can be fetched again; by default in
    ``$XDG_CACHE_HOME``, or in ``~/.cache``.
    cache_max_mb: Maximum MiB of remote tables' index data there; the least recently used copies are
    deleted first.
    state_folder: Folder for the service's own state between runs (mode 0700), by default in
    ``$XDG_STATE_HOME``, or in ``~/.local/state``: the names and columns of tables' definitions, to
    report an overwritten table, the query history, and the secret of a running daemon.
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
    answer: AnswerSettings = AnswerSettings()
    web: WebSettings = WebSettings()
    logging: LoggingSettings = LoggingSettings()
    cache_folder: Path = Field(default_factory=lambda: _own_folder("XDG_CACHE_HOME", ".cache"))
    cache_max_mb: Positive = 10_240
    state_folder: Path = Field(
        default_factory=lambda: _own_folder("XDG_STATE_HOME", ".local/state")
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Orders the sources: arguments, then environment, then the YAML file."""
        yaml_file = os.environ.get("HUDI_INDEX_CONFIG")
        if not yaml_file:
            return init_settings, env_settings
        yaml = YamlConfigSettingsSource(settings_cls, yaml_file=yaml_file)
        return init_settings, env_settings, yaml


def load_settings() -> Settings:
    """Reads the settings without the cache.

    Raises:
        ConfigInvalid: an unknown key, a wrong value, or a file that is missing or not YAML.
    """
    yaml_file = os.environ.get("HUDI_INDEX_CONFIG")
    if yaml_file and not Path(yaml_file).is_file():
        raise ConfigInvalid(
            f"HUDI_INDEX_CONFIG names {yaml_file}, which is not a file.",
            remedy="Name a YAML file of settings, or unset HUDI_INDEX_CONFIG.",
        )
    _refuse_unknown_sections()
    unreadable: tuple[type[Exception], ...] = (TypeError, ValueError, OSError)
    if yaml_file:
        from yaml import YAMLError

        unreadable += (YAMLError,)
    try:
        return Settings()
    except ValidationError as error:
        raise _invalid(error) from error
    except unreadable as error:
        raise ConfigInvalid(
            f"{yaml_file or 'The settings'} cannot be read: {one_line(error).rstrip('.')}.",
            remedy="Correct the file: sections, with `key: value` in each, as YAML.",
        ) from error


def _invalid(error: ValidationError) -> ConfigInvalid:
    mistake = error.errors(include_url=False, include_input=False)[0]
    if mistake["type"] != "extra_forbidden":
        return ConfigInvalid(
            f"Setting {first_mistake(error)}.", remedy="Correct its value, or leave it out."
        )
    *sections, key = map(str, mistake["loc"])
    fields: Mapping[str, FieldInfo] = Settings.model_fields
    for section in sections:
        kind = fields[section].annotation
        assert isinstance(kind, type), "settings are in sections"
        assert issubclass(kind, BaseModel), "sections hold settings"
        fields = kind.model_fields
    where = f"the section {'.'.join(sections)}" if sections else "the settings"
    return ConfigInvalid(
        f"There is no setting {'.'.join([*sections, key])}.",
        remedy=f"{did_you_mean(key, fields)}Known in {where}: {', '.join(fields)}.",
    )


def _refuse_unknown_sections() -> None:
    """Refuses variables that pydantic would ignore, such as a misspelt kill switch."""
    fields = Settings.model_fields
    for name in os.environ:
        if not name.upper().startswith(_PREFIX):
            continue
        setting = name.upper().removeprefix(_PREFIX).lower()
        section, separator, _ = setting.partition("__")
        if separator and section not in fields:
            raise ConfigInvalid(
                f"Setting {name}: there is no section {section}.",
                remedy=f"{did_you_mean(section, fields)}Use a section that exists, or unset "
                f"{name}.",
            )
        section, _, key = setting.partition("_")
        if not separator and setting not in fields and section in fields:
            raise ConfigInvalid(
                f"Setting {name}: two underscores join section and key.",
                remedy=f"Write {_PREFIX}{section.upper()}__{key.upper()}.",
            )


@cache
def warn_of_unknown_variables() -> None:
    """Logs, once per process, the environment variables that begin like settings and are none. They
    are not refused, since Kubernetes names variables by services: ``HUDI_INDEX_PORT``."""
    fields = Settings.model_fields
    for name in sorted(os.environ):
        setting = name.upper().removeprefix(_PREFIX)
        is_ours = name.upper().startswith(_PREFIX) and "__" not in setting
        if is_ours and setting not in _OTHER_VARIABLES and setting.lower() not in fields:
            hint = did_you_mean(setting.lower(), fields)
            log.warning("%s", f"{name} is no setting, and is ignored. {hint}".rstrip())


def effective(given: Settings | None) -> Settings:
    """The settings given, or else the process's own; see also `warn_of_unknown_variables`.

    Raises:
        ConfigInvalid: as `load_settings`; or something else is given.
    """
    warn_of_unknown_variables()
    if given is None:
        return settings()
    if not isinstance(given, Settings):
        raise ConfigInvalid(
            f"settings is {type(given).__name__}, not Settings.",
            remedy='Write settings=Settings(read={"enabled": False}), from '
            "hudi_index_service.config.",
        )
    return given


@cache
def settings() -> Settings:
    """The process's settings, read once; after `settings.cache_clear()` they are read again."""
    return load_settings()
