"""The tables that an agent may ask and change: those of its token, as the fleet's file says."""

from datetime import timedelta

from hudi_index_service.build.strategy import Strategy
from hudi_index_service.errors import AccessDenied, TableNotInFleet
from hudi_index_service.fleet.observation import EndedBuild, RunningBuild
from hudi_index_service.fleet.policies.policy import TablePolicy
from hudi_index_service.fleet.reads.tables import ReadTables
from hudi_index_service.fleet.task import Task
from hudi_index_service.fleet.web.access import Action
from hudi_index_service.fleet.web.exchange import Refused
from hudi_index_service.fleet.web.requests import Caller, Requests
from hudi_index_service.mcp.answers import TableName, no_table
from hudi_index_service.mcp.changes import Outcome, Wanted
from hudi_index_service.table import IndexedTable


class CallersTables:
    """The tables of a caller, as `Tables` wants them. One that it may not ask is as if there were
    none of that name."""

    def __init__(self, caller: Caller, requests: Requests, tables: ReadTables) -> None:
        self.caller, self.requests = caller, requests
        self._tables = tables

    @property
    def may_change_any(self) -> bool:
        """Whether agents may change any of them."""
        return any(each.agents == "change" for each in self._policies())

    def names(self) -> list[TableName]:
        """See `Tables.names`."""
        return [TableName(name=each.name, uri=each.uri) for each in self._policies()]

    def named(self, name: str) -> IndexedTable:
        """See `Tables.named`."""
        return self.opened(self.policy(name))

    def policy(self, name: str) -> TablePolicy:
        """What holds for a table that the caller may ask. Raises TableNotFound."""
        try:
            policy = self.requests.readable(self.caller, name)
        except (TableNotInFleet, Refused) as error:
            raise no_table(name) from error
        if policy.agents == "none":
            raise no_table(name)
        return policy

    def opened(self, policy: TablePolicy) -> IndexedTable:
        """The table of a policy. Raises what `ReadTables.table` raises."""
        return self._tables.table(policy)

    def _policies(self) -> list[TablePolicy]:
        policies = self.requests.policies(self.caller)
        return [each for each in policies if each.reads and each.agents != "none"]


class CallersChanges:
    """A `Maker`: the fleet's own builds and cleans, in its processes, in the caller's name."""

    def __init__(self, tables: CallersTables) -> None:
        self._tables, self._caller = tables, tables.caller
        self._requests = tables.requests

    def table(self, name: str) -> tuple[IndexedTable, timedelta]:
        """See `Maker.table`."""
        self._caller.require(Action.OPERATE)
        policy = self._tables.policy(name)
        if policy.agents != "change":
            raise AccessDenied(
                f"Agents may not change the table {name}.",
                remedy="Write `agents: change` for it in the fleet's file.",
            )
        return self._tables.opened(policy), policy.backfill

    def begin(self, wanted: Wanted, plan: str) -> str:
        """See `Maker.begin`."""
        caller, name = self._caller, wanted.table
        try:
            task = Task("clean")
            if wanted.kind != "clean":
                task = Task("build", Strategy(wanted.strategy))
            return self._requests.ask(caller, name, task, key=plan).id
        except Refused as refusal:
            raise refusal.error from refusal

    def outcome(self, request: str) -> Outcome:
        """See `Maker.outcome`."""
        table, build = self._requests.build_of(self._caller, request)
        outcome = Outcome(request=request, table=table or "", state="waiting")
        if isinstance(build, RunningBuild):
            outcome.state = "running"
        elif isinstance(build, EndedBuild):
            outcome.state, outcome.built, outcome.summary = (
                build.outcome,
                build.built,
                build.summary,
            )
            if build.error is not None:
                outcome.code, outcome.message = build.error.code, build.error.message
                outcome.remedy = build.error.remedy
        return outcome
