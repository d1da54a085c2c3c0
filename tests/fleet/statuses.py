"""Forty tables as a service may see them, and what an operator should be told, written by hand.

`EXPECTED` is in the order in which they should be shown: those that need attention, the worst
first; then those that are well, then those that are paused. Times are minutes before `NOW`. Unless
a table says otherwise, its policy allows an hour of lag, demands 90 % of coverage, allows 1 GiB of
orphans, and ends a build after 30 minutes without progress.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.fleet.observation import EndedBuild, Observation, Refusal, RunningBuild
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.index.metadata.build_records import BuildRecord, BuildState
from hudi_index_service.index.metadata.definitions import Column, IndexDefinition, SeenTimeline
from hudi_index_service.maintain.status import IndexStatus, Outliving, TableStatus

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
GIB = 1 << 30


def ago(minutes: float) -> datetime:
    """That many minutes before `NOW`."""
    return NOW - timedelta(minutes=minutes)


@dataclass(frozen=True)
class Expected:
    """A table and the reasons that it should give, each a code, since when (minutes before `NOW`),
    value and limit."""

    observation: Observation
    reasons: Sequence[tuple[str, float, float | None, float | None]] = ()

    @property
    def name(self) -> str:
        """The table's name."""
        return self.observation.policy.name


def policy(
    name: str,
    *,
    priority: int = 0,
    enabled: bool = True,
    strategy: Strategy = Strategy.INCREMENTAL,
    max_lag: float | None = 60,
    min_coverage: float | None = 0.9,
    max_orphaned: int | None = GIB,
) -> TablePolicy:
    """The policy of a table; `max_lag` is in minutes."""
    return TablePolicy(
        name=name,
        uri=f"s3://lake/{name}",
        priority=priority,
        enabled=enabled,
        strategy=strategy,
        max_lag=None if max_lag is None else timedelta(minutes=max_lag),
        min_coverage=min_coverage,
        max_orphaned=max_orphaned,
        build_timeout=timedelta(minutes=30),
    )


def index(
    files: int,
    covered: int,
    *,
    due: int = 0,
    late: float = 0,
    outdated: int = 0,
    newer: int = 0,
    damaged: int = 0,
    name: str = "by_id",
) -> IndexStatus:
    """An index of so many base files; the oldest due one was written `late` minutes before."""
    definition = IndexDefinition(
        name=name,
        version=1,
        index_types=("btree",),
        columns=(Column(name="id"),),
        seen=SeenTimeline(start="20260101000000000", instants=()),
        created="2026-01-01T00:00:00+00:00",
    )
    return IndexStatus(
        definition=definition,
        index_type="btree",
        base_files=files,
        covered=covered,
        index_bytes=covered * 1000,
        due=due,
        lag_instants=due,
        lag_seconds=late * 60,
        outdated=outdated,
        newer=newer,
        damaged=damaged,
    )


def status(*indexes: IndexStatus, at: float = 0, builds: Sequence[BuildRecord] = ()) -> TableStatus:
    """A status made `at` minutes before `NOW`."""
    return TableStatus(
        uri="s3://lake/table",
        at=ago(at).isoformat(timespec="milliseconds"),
        instant="20260302115500000",
        indexes=indexes,
        builds=tuple(builds),
        failing=(),
        outliving=Outliving(0, 0),
    )


def running(started: float, advanced: float) -> RunningBuild:
    """A build that runs here."""
    return RunningBuild("r-1", "poll", ago(started), ago(advanced))


def ended(outcome: str, minutes: float, *, code: str | None = None, took: float = 1) -> EndedBuild:
    """A build that ended here so many minutes before `NOW`."""
    error = None if code is None else Refusal(code, "It failed.", "See the log.")
    return EndedBuild("r-0", "poll", ago(minutes + took), ago(minutes), outcome, error=error)


def record(number: int, state: BuildState, started: float, finished: float | None) -> BuildRecord:
    """A build in the table's records, by whatever process."""
    return BuildRecord(
        number,
        state,
        {"started": ago(started).isoformat()},
        None if finished is None else {"finished": ago(finished).isoformat()},
    )


WELL = status(index(100, 100))
GONE = Refusal("STORAGE_FAILED", "The store does not answer.", "Check the network.")
LOST = Refusal("TABLE_NOT_FOUND", "Nothing is at s3://lake/vanished.", "Check the path.")
BAD = Refusal("COLUMN_NOT_FOUND", "There is no column idd.", "Did you mean id?")
THEIRS = Refusal("INDEX_EXISTS", "Index by_id was made by hand.", "Rename one of them.")

_FORTY = [
    # --- severity 1: the highest priority first, then the longest trouble -----------------------
    # Its store has not answered for three polls. What the last look found late is told as well.
    Expected(
        Observation(
            policy("payments", priority=9),
            at=ago(0),
            status=status(index(100, 99, due=1, late=90), at=3),
            unreachable_polls=3,
            unreachable_since=ago(2),
            error=GONE,
        ),
        [("unreachable", 2, 3, 3), ("lag", 33, 93 * 60, 3600)],
    ),
    # It has been gone for a day. No look ever succeeded since the service began.
    Expected(
        Observation(
            policy("vanished"),
            at=ago(0),
            unreachable_polls=1440,
            unreachable_since=ago(1440),
            error=LOST,
        ),
        [("unreachable", 1440, 1440, 3)],
    ),
    # Damaged entries: no build repairs them, so that they are told even while one runs.
    Expected(
        Observation(
            policy("ledger"),
            at=ago(0),
            status=status(index(100, 98, damaged=2)),
            running=running(5, 1),
        ),
        [("damaged_entries", 0, 2, 0)],
    ),
    # The same, as old as the one before: by name. One of its two indexes is damaged.
    Expected(
        Observation(
            policy("ledger_eu"),
            at=ago(0),
            status=status(index(100, 100), index(100, 97, damaged=3, name="by_day")),
        ),
        [("damaged_entries", 0, 3, 0)],
    ),
    # --- severity 2 -----------------------------------------------------------------------------
    # Two failed builds in a row; the trouble began when the first of them ended.
    Expected(
        Observation(
            policy("orders", priority=5),
            at=ago(0),
            status=WELL,
            ended=[ended("failed", 5, code="STORAGE_FAILED"), ended("died", 20)],
        ),
        [("failed_builds", 20, 2, 2)],
    ),
    # An older trouble of a lower priority. A cancelled build neither counts as failed nor ends the
    # row.
    Expected(
        Observation(
            policy("clicks"),
            at=ago(0),
            status=WELL,
            ended=[
                ended("out_of_memory", 10),
                ended("cancelled", 100),
                ended("failed", 300),
                ended("failed", 600),
                ended("finished", 900),
            ],
        ),
        [("failed_builds", 600, 3, 2)],
    ),
    # The service was restarted: of the row it has seen one build, the table's records the other.
    Expected(
        Observation(
            policy("returns"),
            at=ago(0),
            status=status(
                index(100, 100),
                builds=[
                    record(8, BuildState.FAILED, 31, 30),
                    record(7, BuildState.DEAD, 500, None),
                    record(6, BuildState.FINISHED, 700, 690),
                ],
            ),
            ended=[ended("failed", 30)],
        ),
        [("failed_builds", 500, 2, 2)],
    ),
    # A retry runs and advances, and the two failures are still the last that ended.
    Expected(
        Observation(
            policy("refunds"),
            at=ago(0),
            status=status(index(100, 50, due=50, late=500)),
            running=running(4, 1),
            ended=[ended("failed", 60), ended("failed", 120)],
        ),
        [("failed_builds", 120, 2, 2)],
    ),
    # A build that runs has made no progress for 90 minutes, and 30 are allowed. So it holds back
    # neither lag nor coverage.
    Expected(
        Observation(
            policy("sessions"),
            at=ago(0),
            status=status(index(100, 60, due=40, late=110)),
            running=running(120, 90),
        ),
        [
            ("hung_build", 60, 90 * 60, 1800),
            ("lag", 50, 110 * 60, 3600),
            ("low_coverage", 0, 0.6, 0.9),
        ],
    ),
    # The last build was ended because it hung, and none has run since.
    Expected(
        Observation(
            policy("carts"),
            at=ago(0),
            status=WELL,
            ended=[ended("hung", 40, took=60), ended("finished", 200)],
        ),
        [("hung_build", 40, None, 1800)],
    ),
    # A definition of the file names a column that the table lacks.
    Expected(
        Observation(policy("users"), at=ago(0), status=WELL, invalid_definition=BAD),
        [("invalid_definition", 0, None, None)],
    ),
    # Somebody else's index has the name of one of the file's.
    Expected(
        Observation(policy("users_eu"), at=ago(0), status=WELL, clash=THEIRS),
        [("owner_clash", 0, None, None)],
    ),
    # --- severity 3 -----------------------------------------------------------------------------
    # The oldest due file waits for 61 minutes, one more than allowed. The next one's trouble is
    # older, but this one has the higher priority.
    Expected(
        Observation(
            policy("trades", priority=2), at=ago(0), status=status(index(100, 99, due=1, late=61))
        ),
        [("lag", 1, 61 * 60, 3600)],
    ),
    # Of several indexes the one furthest behind counts.
    Expected(
        Observation(
            policy("quotes"),
            at=ago(0),
            status=status(
                index(100, 99, due=1, late=10), index(100, 95, due=5, late=240, name="by_day")
            ),
        ),
        [("lag", 180, 240 * 60, 3600)],
    ),
    # The wait goes on between two looks: late by 55 minutes at a look 10 minutes before.
    Expected(
        Observation(
            policy("events"), at=ago(10), status=status(index(100, 99, due=1, late=55), at=10)
        ),
        [("lag", 5, 65 * 60, 3600)],
    ),
    # Too little is covered, nothing builds and nothing waits.
    Expected(
        Observation(policy("audit"), at=ago(0), status=status(index(100, 80, due=20, late=5))),
        [("low_coverage", 0, 0.8, 0.9)],
    ),
    # The strategy demands all files, so that those which a table service did not write count.
    Expected(
        Observation(
            policy("history", strategy=Strategy.ALL), at=ago(0), status=status(index(100, 10))
        ),
        [("low_coverage", 0, 0.1, 0.9)],
    ),
    # Its entries are of an earlier form of the index: a refresh is needed, which no build does.
    Expected(
        Observation(policy("prices"), at=ago(0), status=status(index(100, 40, outdated=60))),
        [("low_coverage", 0, 0.4, 0.9)],
    ),
    # Both: the lag gives the age, of a minute ...
    Expected(
        Observation(
            policy("stock", priority=-1),
            at=ago(0),
            status=status(index(100, 50, due=50, late=61)),
        ),
        [("lag", 1, 61 * 60, 3600), ("low_coverage", 0, 0.5, 0.9)],
    ),
    # ... and this has the lower priority, although it is older and even less is covered.
    Expected(
        Observation(
            policy("stock_old", priority=-2),
            at=ago(0),
            status=status(index(100, 5, due=95, late=1000)),
        ),
        [("lag", 940, 1000 * 60, 3600), ("low_coverage", 0, 0.05, 0.9)],
    ),
    # --- severity 4 -----------------------------------------------------------------------------
    # Orphans of 3 GiB.
    Expected(
        Observation(policy("logs", priority=1), at=ago(0), status=WELL, orphaned_bytes=3 * GIB),
        [("orphaned_bytes", 0, 3 * GIB, GIB)],
    ),
    # Entries still hold values that were erased from the table.
    Expected(
        Observation(policy("customers"), at=ago(0), status=WELL, erased=7),
        [("erased_values", 0, 7, 0)],
    ),
    # Its indexes differ from the file's.
    Expected(
        Observation(policy("devices"), at=ago(0), status=WELL, drift=["by_id", "by_day"]),
        [("drift", 0, 2, 0)],
    ),
    # The same as before, in all but the name.
    Expected(
        Observation(policy("devices_eu"), at=ago(0), status=WELL, drift=["by_id"]),
        [("drift", 0, 1, 0)],
    ),
    # --- never ill, by priority and name --------------------------------------------------------
    # The wait is as long as is allowed, and not longer; coverage and orphans are at their limits.
    Expected(
        Observation(
            policy("at_its_limits", priority=3),
            at=ago(0),
            status=status(index(100, 90, due=10, late=60)),
            orphaned_bytes=GIB,
        )
    ),
    # The service has just started, and has not looked yet.
    Expected(Observation(policy("a_new_one"))),
    # Two polls failed: perhaps the third will not.
    Expected(
        Observation(
            policy("blinked"),
            at=ago(0),
            status=WELL,
            unreachable_polls=2,
            unreachable_since=ago(1),
            error=GONE,
        )
    ),
    # A build that runs for ten hours, and advances: neither the lag nor the coverage is ill.
    Expected(
        Observation(
            policy("builds_long"),
            at=ago(0),
            status=status(index(1000, 100, due=900, late=700)),
            running=running(600, 2),
        )
    ),
    # Another process builds it, as its records say.
    Expected(
        Observation(
            policy("built_elsewhere"),
            at=ago(0),
            status=status(
                index(100, 10, due=90, late=300),
                builds=[record(3, BuildState.RUNNING, 200, None)],
            ),
        )
    ),
    # The clock was set back by an hour after the look: nothing is older for it, nothing younger.
    Expected(
        Observation(
            policy("clock_set_back"),
            at=ago(-60),
            status=status(index(100, 99, due=1, late=30), at=-60),
            running=running(-60, -59),
        )
    ),
    # No base files: a table without rows.
    Expected(Observation(policy("empty"), at=ago(0), status=status(index(0, 0)))),
    # One build failed, the one before did not.
    Expected(
        Observation(
            policy("failed_once"),
            at=ago(0),
            status=WELL,
            ended=[ended("failed", 5), ended("finished", 60), ended("failed", 90)],
        )
    ),
    # It hung once, and the next build finished.
    Expected(
        Observation(
            policy("hung_before"),
            at=ago(0),
            status=WELL,
            ended=[ended("finished", 5), ended("hung", 60)],
        )
    ),
    # Neither an index nor a file that asks for one.
    Expected(Observation(policy("no_index"), at=ago(0), status=status())),
    # Its policy states no limits.
    Expected(
        Observation(
            policy("no_limits", max_lag=None, min_coverage=None, max_orphaned=None),
            at=ago(0),
            status=status(index(100, 1, due=99, late=9999)),
            orphaned_bytes=999 * GIB,
        )
    ),
    # Most of its files are older than the index, and the strategy does not build them: not due.
    Expected(Observation(policy("not_due"), at=ago(0), status=status(index(100, 5)))),
    # Little is covered, and the build waits in the queue. If it waits too long, the lag will tell.
    Expected(
        Observation(
            policy("queued"),
            at=ago(0),
            status=status(index(100, 20, due=80, late=20)),
            queued=ago(15),
        )
    ),
    # Another service built it, and was there first twice: this one's builds were refused.
    Expected(
        Observation(
            policy("two_services"),
            at=ago(0),
            status=WELL,
            ended=[
                ended("failed", 5, code="BUILD_IN_PROGRESS"),
                ended("failed", 9, code="BUILD_IN_PROGRESS"),
            ],
        )
    ),
    # --- paused: seen, and not ill --------------------------------------------------------------
    # As badly off as one can be, and of the highest priority.
    Expected(
        Observation(
            policy("paused_and_broken", priority=99, enabled=False),
            at=ago(0),
            status=status(index(100, 10, due=90, late=9000, damaged=1), at=9),
            unreachable_polls=9,
            unreachable_since=ago(9),
            error=GONE,
            ended=[ended("failed", 50), ended("failed", 60)],
            erased=9,
        )
    ),
    # All is well, and it is paused.
    Expected(Observation(policy("paused", enabled=False), at=ago(0), status=WELL)),
]

EXPECTED: Sequence[Expected] = tuple(_FORTY)
