"""What holds for one table of the fleet: the outcome of the fleet file's groups and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from hudi_index_service.build.strategy import Strategy


@dataclass(frozen=True, slots=True)
class TablePolicy:
    """What the fleet does for a table, and what it expects of it.

    Attributes:
        name: The table's name in the fleet, unique: the catalog's, or the last parts of its path.
        uri: Its base path.
        catalog, database: Where a catalog has it; "" for a path.
        group: The group of the file that it belongs to.
        enabled: False for a table that is paused: seen, never built.
        owner: Who answers for it.
        labels: Further labels.
        priority: The higher, the sooner it is built and shown; 0 by default.
        strategy: Which base files builds cover.
        poll: The time between two looks at its timeline.
        max_lag: How long a due base file may wait; None for no limit.
        min_coverage: The fraction of base files, from 0 to 1, that each index should cover.
        max_orphaned: How many bytes may lie in entries that no snapshot needs.
        build_timeout: How long a build may make no progress.
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
    on: Literal["any", "callback", "poll"] = "any"
