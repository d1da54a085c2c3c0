"""Tables that a process opens with the rights of its user, and changes in a thread of its own."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta

from hudi_index_service.build.strategy import NO_BACKFILL
from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError, RequestUnknown, UsageInvalid
from hudi_index_service.mcp.answers import TableName, no_table
from hudi_index_service.mcp.changes import Outcome, Wanted
from hudi_index_service.table import IndexedTable, open_table
from hudi_index_service.wording import counted, shortened


class OwnTables:
    """Tables by their names.

    Args:
        uris: Their locations.

    Raises:
        UsageInvalid: two tables have the same name.
        TableNotFound, NotAHudiTable, StorageFailed: one cannot be opened.
    """

    def __init__(self, uris: Sequence[str], *, settings: Settings | None = None) -> None:
        self._tables: dict[str, IndexedTable] = {}
        for uri in uris:
            table = open_table(uri, settings=settings)
            if table.name in self._tables:
                raise UsageInvalid(
                    f"Two tables have the name {shortened(table.name)!r}.",
                    remedy="Run a server for each of them.",
                )
            self._tables[table.name] = table

    def close(self) -> None:
        """Closes them."""
        for table in self._tables.values():
            table.close()

    def names(self) -> list[TableName]:
        """See `Tables.names`."""
        return [TableName(name=name, uri=each.uri) for name, each in self._tables.items()]

    def named(self, name: str) -> IndexedTable:
        """See `Tables.named`."""
        found = self._tables.get(name)
        if found is None:
            raise no_table(name)
        return found


class OwnChanges:
    """A `Maker` that makes one change after the other, in this process."""

    def __init__(self, tables: OwnTables) -> None:
        self._tables = tables
        self._executor = ThreadPoolExecutor(1, "hudi-index-change")
        self._begun: dict[str, tuple[Wanted, Future[Outcome]]] = {}

    def close(self) -> None:
        """Ends the change that is being made, and makes no further one. What a build has built
        stays."""
        for wanted, future in self._begun.values():
            if not future.cancel() and not future.done() and wanted.kind == "build":
                self._tables.named(wanted.table).cancel()
        self._executor.shutdown()

    def table(self, name: str) -> tuple[IndexedTable, timedelta]:
        """See `Maker.table`."""
        return self._tables.named(name), NO_BACKFILL

    def begin(self, wanted: Wanted, plan: str) -> str:
        """See `Maker.begin`."""
        self._begun[plan] = wanted, self._executor.submit(self._made, wanted, plan)
        return plan

    def outcome(self, request: str) -> Outcome:
        """See `Maker.outcome`."""
        if request not in self._begun:
            raise RequestUnknown(f"There is no request {shortened(request)!r}.")
        wanted, future = self._begun[request]
        if future.done():
            return future.result()
        state = "running" if future.running() else "waiting"
        return Outcome(request=request, table=wanted.table, state=state)

    def _made(self, wanted: Wanted, request: str) -> Outcome:
        table = self._tables.named(wanted.table)
        outcome = Outcome(request=request, table=wanted.table, state="finished")
        try:
            if wanted.kind == "clean":
                done = f"{counted(len(table.clean().removals), 'file')} deleted."
                return outcome.model_copy(update={"summary": done})
            build = table.build(strategy=wanted.strategy)
            outcome.built = len(build.built)
            build.raise_for_failures()
        except IndexServiceError as error:
            outcome.state, outcome.code = "failed", error.code
            outcome.message, outcome.remedy = error.message, error.remedy
        return outcome
