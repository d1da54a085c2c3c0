"""What holds for one table of the fleet: the outcome of the fleet file's groups and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from hudi_index_service.build.strategy import NO_BACKFILL, UNLIMITED, Budget, Strategy
from hudi_index_service.config import RetentionPolicy, Settings
from hudi_index_service.fleet.policies.references import Reference
from hudi_index_service.fleet.policies.windows import Windows
from hudi_index_service.index.metadata.definitions import Column

BuildAction = Literal["clustering", "compaction", "commit"]
"""What builds of the strategy incremental follow: see the setting `build.on`."""


AgentsMay = Literal["none", "read", "change"]
"""What agents may do with a table, by the Model Context Protocol."""


@dataclass(frozen=True, slots=True)
class DesiredIndex:
    """An index that the fleet defines on a table.

    Attributes:
        columns: Each with its options.
    """

    name: str
    columns: tuple[Column, ...]
    index_types: tuple[str, ...] = ("lucene",)


@dataclass(frozen=True, slots=True)
class Prewarm:
    """What the service makes ready for its queries on a table: the arguments of
    `IndexedTable.prewarm`."""

    columns: tuple[str, ...] = ()
    partitions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TablePolicy:
    """What the fleet does for a table, and what it expects of it: the rules of its group, see
    `policies.file.Rules`, and beside them what is said here.

    Attributes:
        name: The table's name in the fleet, unique: the catalog's, or the last parts of its path.
        uri: Its base path.
        catalog, database, table: Where a catalog has it, and as what; "" for a path.
        group: The group of the file that it belongs to.
        build_timeout: How long a build may make no progress.
        spark_above: The bytes of due base files above which spark-submit runs the build; None for
            never.
        spark_submit: The command for that, with its options.
        definitions: The indexes that the fleet defines; None if it leaves definitions as they are.
        verify_sample: The fraction of the entries, from 0 to 1, that is verified each week; 0 for
            no verification.
        storage: Options of the store; see `hudi_index_service.fleet.policies.references.resolved`.
        clean: Whether each build is followed by a clean.
        write_config: Keys ``hoodie.index.*`` that override those of the table's commits.
        woken_by: What has it built. A fleet file has no word for it: its tables are woken by
            callbacks and by polls.
    """

    name: str
    uri: str
    catalog: str = ""
    database: str = ""
    group: str = ""
    enabled: bool = True
    owner: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    strategy: Strategy = Strategy.INCREMENTAL
    poll: timedelta = timedelta(minutes=1)
    max_lag: timedelta | None = None
    min_coverage: float | None = None
    max_orphaned: int | None = None
    build_timeout: timedelta = timedelta(minutes=30)
    table: str = ""
    on: tuple[BuildAction, ...] = ("clustering", "compaction")
    retention: RetentionPolicy | None = None
    definitions: tuple[DesiredIndex, ...] | None = ()
    apply: Literal["plan", "auto"] = "plan"
    max_backfill_bytes: int = 10 * 2**30
    backfill: timedelta = NO_BACKFILL
    on_removed: Literal["keep", "drop"] = "keep"
    windows: Windows = field(default_factory=Windows)
    budget: Budget = UNLIMITED
    verify_sample: float = 0.01
    storage: Mapping[str, Reference] = field(default_factory=dict)
    reads: bool = True
    agents: AgentsMay = "read"
    prewarm: Prewarm | None = None
    clean: bool = True
    write_config: Mapping[str, str] = field(default_factory=dict)
    spark_above: int | None = None
    spark_submit: tuple[str, ...] = ()
    woken_by: Literal["any", "callback", "poll"] = "any"


def settings_for(policy: TablePolicy, settings: Settings) -> Settings:
    """The service's settings with what the policy says of builds and cleaning, for `open_table`."""
    build = settings.build.model_copy(update={"on": policy.on})
    retention = policy.retention or settings.clean.retention
    clean = settings.clean.model_copy(update={"retention": retention})
    return settings.model_copy(update={"build": build, "clean": clean})
