"""A table's indexes as the fleet file has them: what differs, what a change would cost, and the
change. Only the fleet's own definitions are ever changed; another owner's is left, and named."""

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from hudi_index_service import config
from hudi_index_service.build.executor import LocalExecutor
from hudi_index_service.build.run import run_build
from hudi_index_service.build.strategy import Strategy
from hudi_index_service.config import Settings
from hudi_index_service.errors import (
    IndexChanged,
    IndexExists,
    IndexServiceError,
)
from hudi_index_service.fleet.observation import Refusal
from hudi_index_service.fleet.policies.policy import DesiredIndex, TablePolicy, settings_for
from hudi_index_service.hook.table_keys import options_by_name
from hudi_index_service.index.metadata.definitions import (
    FLEET,
    Column,
    Definitions,
    DefinitionStore,
    IndexDefinition,
)
from hudi_index_service.index.metadata.requirements import is_in_key
from hudi_index_service.maintain.define import undefined_index
from hudi_index_service.table import IndexedTable
from hudi_index_service.wording import counted

log = logging.getLogger(__name__)

_GROWTH = 1.1
"""Of a backfill, between its plan and the approval: meanwhile the table is written."""

ChangeKind = Literal["create", "alter", "recreate", "drop"]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one definition.

    Attributes:
        kind: ``recreate`` drops the index and creates it again, since index types cannot be
            altered.
        before: The live definition; None if there is none.
        after: As the file has it; None if it leaves.
    """

    kind: ChangeKind
    name: str
    before: IndexDefinition | None = None
    after: DesiredIndex | None = None

    def __str__(self) -> str:
        if self.after is None:
            return f"Drop index {self.name}, which is no longer in the fleet file."
        columns = ", ".join(each.argument for each in self.after.columns)
        what = f"{', '.join(self.after.index_types)} on {columns}"
        verb = {"create": "Create", "alter": "Change", "recreate": "Create anew"}[self.kind]
        return f"{verb} index {self.name}: {what}."


@dataclass(frozen=True, slots=True)
class Clash:
    """An index of another owner, with a name that the file has for another one."""

    name: str
    owner: str

    def __str__(self) -> str:
        return (
            f"Index {self.name} is of the owner {self.owner}, and differs from that of the fleet "
            "file: rename one of the two, or drop the index."
        )


@dataclass(frozen=True, slots=True)
class Differences:
    """How a table's definitions differ from the file.

    Attributes:
        changes: What would make them equal, of the fleet's own ones.
        clashes: Definitions of others that are in the way.
        left: Names of the fleet's own definitions that left the file, and are kept.
    """

    changes: tuple[Change, ...] = ()
    clashes: tuple[Clash, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def drift(self) -> tuple[str, ...]:
        """Names of the fleet's definitions that are not as in the file."""
        return tuple(sorted({*(each.name for each in self.changes), *self.left}))

    @property
    def clash(self) -> Refusal | None:
        """The first clash, as it is shown; None if there is none."""
        if not self.clashes:
            return None
        remedy = "Rename one of the two, or drop the index."
        return Refusal(IndexExists.code, str(self.clashes[0]), remedy)


@dataclass(frozen=True, slots=True)
class DefinitionPlan:
    """The changes of a table's definitions, and what the backfill of base files would cost.

    Attributes:
        differences: All of them; `changes` are those that can be made.
        invalid: Name → why the table cannot have the index.
        files: Number of base files to index.
        bytes: Their total length.
        minutes: The estimated time; None if it is unknown.
    """

    differences: Differences
    changes: tuple[Change, ...] = ()
    invalid: Mapping[str, IndexServiceError] = field(default_factory=dict)
    files: int = 0
    bytes: int = 0
    minutes: float | None = 0.0

    @property
    def sentences(self) -> tuple[str, ...]:
        """What would be done, for an operator; empty if nothing would."""
        if not self.changes:
            return ()
        if not self.files:
            return *map(str, self.changes), "No base file is indexed by that at once."
        time = (
            "an unknown time"
            if self.minutes is None
            else f"about {counted(max(1, round(self.minutes)), 'minute')}"
        )
        cost = f"{counted(self.files, 'base file')} of {self.bytes:,} bytes"
        return *map(str, self.changes), f"Then {cost} are indexed, in {time}."

    @property
    def id(self) -> str:
        """The same for the same changes, whatever their backfill costs; "" without any."""
        if not self.changes:
            return ""
        return hashlib.sha256("\n".join(map(str, self.changes)).encode()).hexdigest()[:16]

    def why_not_as_approved(self, plan_id: str, plan_bytes: int) -> str:
        """Why this is more than an operator has approved, in one sentence; "" if it is not.

        Args:
            plan_id, plan_bytes: The `id` and the `bytes` of the plan that was shown.
        """
        if not self.changes:
            return ""
        if self.id != plan_id:
            return "The approved plan was another one, and was not carried out."
        if self.bytes > _GROWTH * plan_bytes:
            return (
                f"The backfill reads {self.bytes:,} bytes, and {plan_bytes:,} were approved: "
                "nothing was changed."
            )
        return ""

    def may_apply_unasked(self, policy: TablePolicy) -> bool:
        """Whether the policy lets the changes be made without an operator."""
        return (
            bool(self.changes)
            and policy.enabled
            and policy.apply == "auto"
            and self.bytes <= policy.max_backfill_bytes
        )


def differences(live: Iterable[IndexDefinition], policy: TablePolicy) -> Differences:
    """Compares a table's live definitions with the file. Nothing is read.

    Another owner's index that is as in the file is none: there is nothing to do.
    """
    if policy.definitions is None:
        return Differences()
    present = {each.name: each for each in live}
    changes: list[Change] = []
    clashes: list[Clash] = []
    for desired in policy.definitions:
        before = present.pop(desired.name, None)
        if before is None:
            changes.append(Change("create", desired.name, None, desired))
        elif not _is(before, desired):
            if before.owner == FLEET:
                same_types = set(before.index_types) == set(desired.index_types)
                kind: ChangeKind = "alter" if same_types else "recreate"
                changes.append(Change(kind, desired.name, before, desired))
            else:
                clashes.append(Clash(desired.name, before.owner))
    removed = [each for each in present.values() if each.owner == FLEET]
    if policy.on_removed == "drop":
        changes += [Change("drop", each.name, each) for each in removed]
        removed = []
    return Differences(tuple(changes), tuple(clashes), tuple(each.name for each in removed))


def plan_of(
    table: IndexedTable, policy: TablePolicy, *, settings: Settings | None = None
) -> DefinitionPlan:
    """What the fleet would change of a table's definitions, and what it would cost. It changes
    nothing.

    What no earlier build tells of the cost is measured by indexing some rows in a temporary folder,
    which may start Java: call it in a process for builds, once `differences` has found any.

    Args:
        settings: Those of the service; None for the process's own.

    Raises:
        IndexServiceError: the table cannot be read.
    """
    hudi_table = table.hudi_table
    definitions = DefinitionStore(hudi_table.storage).read()
    found = differences(definitions.live, policy)
    if not found.changes:
        return DefinitionPlan(found)
    invalid: dict[str, IndexServiceError] = {}
    changes: list[Change] = []
    after = {each.name: each for each in definitions.live}
    for change in found.changes:
        try:
            _change(after, change, table)
        except IndexServiceError as error:
            invalid[change.name] = error
        else:
            changes.append(change)
    own = settings_for(policy, config.effective(settings))
    built = [each.name for each in changes if each.after is not None]
    plan = DefinitionPlan(found, tuple(changes), invalid)
    if not built:
        return plan
    build = run_build(
        hudi_table,
        Definitions(tuple(after.values()), definitions.complete),
        strategy=Strategy.INCREMENTAL,
        executor=LocalExecutor(own.build.parallelism),
        settings=own,
        indexes=built,
        backfill=policy.backfill,
        dry_run=True,
    )
    cost = build.estimate
    if cost is None:  # nothing is due
        return plan
    return replace(
        plan,
        files=len({each.base_file.path for each in build.due}),
        bytes=cost.table_bytes,
        minutes=None if cost.seconds is None else cost.seconds / 60,
    )


def apply(
    table: IndexedTable, policy: TablePolicy, plan: DefinitionPlan
) -> Mapping[str, IndexServiceError]:
    """Makes the changes of a plan; builds nothing. One that fails holds up no other, and is logged.

    Returns:
        Name → why an index stays as it is.

    Raises:
        IndexChanged: the definitions or the file are no longer those of the plan; nothing was done.
        IndexServiceError: the table cannot be read.
    """
    now = differences(table.indexes(), policy)
    if now != plan.differences:
        raise IndexChanged(
            f"The definitions of {policy.name}, or the fleet file, have changed since the plan was "
            "made.",
            remedy="Approve the new plan.",
        )
    failed: dict[str, IndexServiceError] = {}
    for change in plan.changes:
        try:
            _make(table, change)
        except IndexServiceError as error:
            log.error("%s: index %s stays as it is: %s", policy.name, change.name, error)
            failed[change.name] = error
        else:
            log.info("%s: %s", policy.name, change)
    return failed


def _make(table: IndexedTable, change: Change) -> None:
    before, after = change.before, change.after
    store = DefinitionStore(table.hudi_table.storage, table.hudi_table.latest_instant)
    # By the version that was compared: one that another user has stored since is left as it is.
    if before is not None:
        columns = _checked(table, after).columns if after and change.kind == "alter" else ()
        store.change(before, columns)
    if after is None or change.kind == "alter":
        return
    try:
        table.create_index(after.name, after.columns, using=after.index_types, owner=FLEET)
    except IndexExists:
        # Another service with the same file was faster, or another owner has taken the name.
        live = next((each for each in table.indexes() if each.name == after.name), None)
        if live is None or live.owner != FLEET or not _is(live, after):
            raise


def _checked(table: IndexedTable, desired: DesiredIndex) -> IndexDefinition:
    """The index as the table would have it. Raises IndexServiceError if it cannot."""
    return undefined_index(
        table.hudi_table, desired.name, desired.columns, using=desired.index_types
    )


def _change(after: dict[str, IndexDefinition], change: Change, table: IndexedTable) -> None:
    """Makes a change to definitions in memory. Raises IndexServiceError if the table cannot have
    the index."""
    desired = change.after
    if desired is None:
        del after[change.name]
        return
    new = _checked(table, desired).model_copy(update={"owner": FLEET})
    if change.kind == "alter" and change.before is not None:
        new = change.before.model_copy(update={"columns": new.columns})
    after[change.name] = new


def _is(definition: IndexDefinition, desired: DesiredIndex) -> bool:
    return (
        set(definition.index_types) == set(desired.index_types)
        and options_by_name(definition.columns) == options_by_name(desired.columns)
        and _keys(definition.columns, desired) == _keys(desired.columns, desired)
    )


def _keys(columns: Sequence[Column], desired: DesiredIndex) -> list[list[str]]:
    """The columns of the composite key of each index type, in order, which matters."""
    return [
        [each.name.lower() for each in columns if is_in_key(each.options_of(name))]
        for name in sorted(desired.index_types)
    ]
