"""Changes that an agent may make: each needs the id of a dry run that the same caller made before,
and that still says what would happen."""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from time import monotonic
from typing import Literal, Protocol

from pydantic import BaseModel

from hudi_index_service.errors import PlanOutdated, PlanUnknown
from hudi_index_service.table import IndexedTable
from hudi_index_service.wording import shortened

Kind = Literal["build", "clean"]
Strategy = Literal["incremental", "all", "refresh"]

MINUTES = 15
"""For which a dry run may be applied."""

_MOST_PLANS = 100


@dataclass(frozen=True, slots=True)
class Wanted:
    """A change of a table's indexes; `strategy` is of builds alone."""

    table: str
    kind: Kind
    strategy: Strategy = "incremental"


class Planned(BaseModel):
    """What a change would do: index so many base files, or delete so many files of entries. `plan`
    applies it, within some minutes."""

    plan: str
    table: str
    change: Kind
    files: int
    bytes: int
    minutes: int = MINUTES


class Begun(BaseModel):
    """A change that was begun; `request` tells what becomes of it."""

    table: str
    request: str


class Outcome(BaseModel):
    """What has become of a change: it is waiting, running, finished, failed, …

    built: Entries that a build has built.
    code, message, remedy: Why it failed.
    """

    request: str
    table: str
    state: str
    built: int = 0
    summary: str = ""
    code: str = ""
    message: str = ""
    remedy: str = ""


class Maker(Protocol):
    """Makes changes for one caller. May be used in any thread."""

    def table(self, name: str) -> tuple[IndexedTable, timedelta]:
        """A table that the caller may change, and the backfill of its builds. Raises TableNotFound,
        AccessDenied, or why it cannot be opened."""

    def begin(self, wanted: Wanted, plan: str) -> str:
        """Begins with a change, and returns the id of a request; `plan` is that of its dry run.
        Raises IndexServiceError if it cannot be begun."""

    def outcome(self, request: str) -> Outcome:
        """What has become of it. Raises RequestUnknown."""


@dataclass(frozen=True, slots=True)
class _Plan:
    wanted: Wanted
    stamp: object
    made: float


class Plans:
    """The dry runs of all callers, in memory. May be used in any thread.

    Args:
        clock: Seconds of a clock that never goes back.
    """

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._of: dict[str, OrderedDict[str, _Plan]] = {}

    def add(self, caller: str, wanted: Wanted, stamp: object) -> str:
        """Keeps what a caller has planned, in place of its oldest plan if there are many.

        Args:
            stamp: Equal as long as the plan says what would happen.
        """
        plan = secrets.token_urlsafe(16)
        with self._lock:
            known = self._of.setdefault(caller, OrderedDict())
            known[plan] = _Plan(wanted, stamp, self._clock())
            if len(known) > _MOST_PLANS:
                known.popitem(last=False)
        return plan

    def take(self, caller: str, table: str, plan: str) -> _Plan:
        """A plan of this caller for this table, which nobody can take again.

        Raises:
            PlanUnknown: there is none.
            PlanOutdated: it is too old.
        """
        with self._lock:
            known = self._of.get(caller, OrderedDict())
            found = known.get(plan)
            if found is None or found.wanted.table != table:
                raise PlanUnknown(f"There is no dry run {shortened(plan)!r} of this table.")
            del known[plan]
        if self._clock() >= found.made + 60 * MINUTES:
            raise PlanOutdated(f"The dry run was made more than {MINUTES} minutes ago.")
        return found


class Changes:
    """Plans and makes the changes of one caller."""

    def __init__(self, maker: Maker, plans: Plans, caller: str = "") -> None:
        self._maker, self._plans, self._caller = maker, plans, caller

    def plan(self, wanted: Wanted) -> Planned:
        """What a change would do. Raises what `Maker.table`, `IndexedTable.build` and
        `IndexedTable.clean` raise."""
        table, backfill = self._maker.table(wanted.table)
        stamp = _stamp(table)  # before the dry run: what is committed meanwhile outdates it
        if wanted.kind == "build":
            build = table.build(
                strategy=wanted.strategy, backfill=backfill, dry_run=True, with_estimate=False
            )
            sizes = {each.base_file.path: each.base_file.size for each in build.due}
            files, size = len(sizes), sum(sizes.values())
        else:
            cleaning = table.clean(dry_run=True)
            files, size = len(cleaning.removals), cleaning.bytes
        plan = self._plans.add(self._caller, wanted, stamp)
        return Planned(plan=plan, table=wanted.table, change=wanted.kind, files=files, bytes=size)

    def apply(self, name: str, plan: str) -> Begun:
        """Begins with a change that was planned, once.

        Raises:
            PlanUnknown: this caller has not planned it for this table, or has applied it already.
            PlanOutdated: it was planned long ago, or the table has changed since.
            IndexServiceError: it cannot be begun; see `Maker`.
        """
        found = self._plans.take(self._caller, name, plan)
        table, _ = self._maker.table(name)
        if _stamp(table) != found.stamp:
            raise PlanOutdated(
                "The table's snapshot or its indexes have changed since the dry run."
            )
        return Begun(table=name, request=self._maker.begin(found.wanted, plan))

    def outcome(self, request: str) -> Outcome:
        """What has become of a change. Raises RequestUnknown."""
        return self._maker.outcome(request)


def _stamp(table: IndexedTable) -> object:
    return tuple(table.hudi_table.completed_instants()), table.indexes()
