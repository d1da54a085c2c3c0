"""Statements about indexes: CREATE, ALTER, DROP, SHOW and REFRESH.

Hudi has statements with some of the same words, about indexes of its own: those are left to Hudi.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime

from hudi_index_service.errors import (
    IndexNotFound,
    NotAHudiTable,
    StorageUnsupported,
    TableNotFound,
)
from hudi_index_service.hudi.properties import HUDI_PREFIXES, OwnIndex, own_indexes
from hudi_index_service.index.metadata.definitions import Column, IndexDefinition
from hudi_index_service.index.metadata.requirements import names_by_use
from hudi_index_service.maintain.drop import Dropped
from hudi_index_service.sql.build_statements import ENTRIES, entries_result
from hudi_index_service.sql.grammar import Parser, TableName, TablePath, TableReference, either
from hudi_index_service.sql.statement import LeftToHudi, Open, Result, TableStatement
from hudi_index_service.table import IndexedTable
from hudi_index_service.wording import did_you_mean

HUDI_INDEX_TYPES = frozenset({"bloom_filters", "column_stats", "record_index", "secondary_index"})
"""The types of Hudi's own indexes, up to Hudi 1.2 (CreateIndexCommand): left to Hudi."""

INDEXES = """
    index_name STRING NOT NULL, index_type STRING NOT NULL, col_name STRING NOT NULL,
    options MAP<STRING, MAP<STRING, STRING>>, created TIMESTAMP, managed_by STRING NOT NULL
"""
"""CREATE and ALTER INDEX (one row) and SHOW INDEXES. The first three columns are those of Hudi's
own SHOW INDEXES; `index_type` and `col_name` join several values by commas. `options`: column → its
options, only for columns with options; a column that is only stored is there alone, with
``stored`` = ``only``. `managed_by` is ``index service`` or, without a creation
time, ``hudi``."""

DROPPED = """
    index_name STRING NOT NULL, dropped BOOLEAN NOT NULL,
    not_purged ARRAY<STRUCT<entry: STRING, columns: ARRAY<STRING>, reason: STRING>>
"""
"""DROP INDEX: one row for the index, or for each that had one of the columns. `dropped` is false if
IF EXISTS found no index, and for an index that only lost columns. `not_purged`: with PURGE, the
table's entries that still contain dropped columns, and the reasons; another PURGE removes them."""

NOTHING = ""
"""DROP and REFRESH INDEX of Hudi's own indexes."""


@dataclass(frozen=True, slots=True)
class CreateIndex(TableStatement):
    """``CREATE INDEX [IF NOT EXISTS] name ON [TABLE] t
    USING type [, type, …] (column [OPTIONS(key = 'value', …)], …) [INCLUDE (column, …)]
    [OPTIONS(…)]``

    The statement's options apply to every column before INCLUDE; a column's own options override
    them.
    """

    first_words = ("CREATE", "INDEX")
    result = INDEXES

    name: str
    table: TableReference
    using: tuple[str, ...]
    columns: tuple[Column, ...]
    include: tuple[str, ...] = ()
    if_not_exists: bool = False

    @classmethod
    def parsed(cls, text: Parser) -> "CreateIndex | None":
        if_not_exists = text.condition("NOT", "EXISTS")
        name, table = text.index_of_table(
            "index name" if if_not_exists else "IF NOT EXISTS or index name"
        )
        if isinstance(table, TableName) and text.is_next("("):
            return None
        if not text.accept("USING"):
            text.fail("USING or (" if isinstance(table, TableName) else "USING")
        using = [text.name("index type")]
        if using[0].lower() in HUDI_INDEX_TYPES:
            return None
        while text.accept(","):
            using.append(text.name("index type"))
        columns = text.in_parentheses(text.column, "OPTIONS", first=", or (")
        include: list[str] = []
        if text.accept("INCLUDE"):
            include = text.in_parentheses(text.column_name)
        options = text.options()
        text.end_of_statement(
            "" if include or options else "INCLUDE", "OPTIONS" if not options else ""
        )
        return cls(
            name=name,
            table=table,
            using=tuple(using),
            columns=tuple(
                column.model_copy(update={"options": {**options, **column.options}})
                for column in columns
            ),
            include=tuple(include),
            if_not_exists=if_not_exists,
        )

    def run(self, open: Open) -> Result:
        with open(self.table) as table:
            definition = table.create_index(
                self.name,
                self.columns,
                include=self.include,
                using=self.using,
                if_not_exists=self.if_not_exists,
            )
        return indexes_result([definition])


@dataclass(frozen=True, slots=True)
class AlterIndex(TableStatement):
    """``ALTER INDEX name ON [TABLE] t [ADD (column [OPTIONS(…)], …)] [DROP (column, …)]
    [SET {(column [OPTIONS(…)], …) | OPTIONS(…)}] [RENAME TO name]``

    SET with columns replaces their options; SET OPTIONS adds options to every column. For a new
    column of ADD, SET OPTIONS works like the options of CREATE INDEX: the column's own options
    override them. At least one of the four clauses is required.
    """

    first_words = ("ALTER", "INDEX")
    result = INDEXES

    name: str
    table: TableReference
    add: tuple[Column, ...] = ()
    drop: tuple[str, ...] = ()
    set: tuple[Column, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    rename_to: str | None = None

    @classmethod
    def parsed(cls, text: Parser) -> "AlterIndex":
        name, table = text.index_of_table("index name")
        clauses = ["ADD", "DROP", "SET", "RENAME TO"]
        add, drop, rename_to = [], [], None
        set_columns: list[Column] = []
        options: dict[str, str] = {}
        if text.accept("ADD"):
            add, clauses = text.in_parentheses(text.column, "OPTIONS"), clauses[1:]
        if text.accept("DROP"):
            drop, clauses = text.in_parentheses(text.column_name), clauses[-2:]
        if text.accept("SET"):
            if text.is_next("OPTIONS"):
                options = text.options()
            else:
                set_columns = text.in_parentheses(text.column, "OPTIONS", first="OPTIONS or (")
            clauses = clauses[-1:]
        if text.accept("RENAME"):
            text.expect("TO")
            rename_to, clauses = text.name("new name"), []
        if len(clauses) == 4:
            text.fail(either(clauses))
        text.end_of_statement(*clauses)
        return cls(name, table, tuple(add), tuple(drop), tuple(set_columns), options, rename_to)

    def run(self, open: Open) -> Result:
        with open(self.table) as table:
            definition = table.alter_index(
                self.name,
                add=self.add,
                drop=self.drop,
                options={column.name: column.options for column in self.set},
                options_for_all=self.options,
                rename_to=self.rename_to,
            )
        return indexes_result([definition])


@dataclass(frozen=True, slots=True)
class ShowIndexes(TableStatement):
    """``SHOW INDEXES {FROM|IN} [TABLE] t``"""

    first_words = ("SHOW", "INDEXES")
    result = INDEXES
    changes_something = False

    table: TableReference

    @classmethod
    def parsed(cls, text: Parser) -> "ShowIndexes":
        if not (text.accept("FROM") or text.accept("IN")):
            text.fail("FROM or IN")
        table = text.table()
        text.end_of_statement()
        return cls(table)

    def result_columns(self, open: Open) -> str | None:
        with _opened(open, self.table) as table:
            return None if table is None else INDEXES

    def run(self, open: Open) -> Result | LeftToHudi:
        # Hudi's statement accepts no paths and no names in three parts, so its indexes are read
        # from the table.
        with _opened(open, self.table) as table:
            if table is None:
                return LeftToHudi()
            return indexes_result(table.indexes(), own_indexes(table.hudi_table.storage))


class NamedIndex(TableStatement):
    """A statement about an index by its name, which may be one of Hudi's own.

    Attributes:
        name: The name.
    """

    name: str

    @property
    def may_be_hudis(self) -> bool:
        """Whether Hudi accepts such a statement: it takes no path."""
        return isinstance(self.table, TableName)

    @property
    @abstractmethod
    def columns_without(self) -> str | None:
        """The columns of the result if neither knows the index."""

    def result_columns(self, open: Open) -> str | None:
        if not self.may_be_hudis:
            return self.result
        with _opened(open, self.table) as table:
            if table is None:
                return None
            if self.is_ours(table):
                return self.result
            return None if self.is_hudis(table) else self.columns_without

    def opened(self, open: Open) -> AbstractContextManager[IndexedTable | None]:
        """The table; None if it is left to Spark."""
        return _opened(open, self.table) if self.may_be_hudis else open(self.table)

    def is_ours(self, table: IndexedTable) -> bool:
        """Whether the service has an index of this name."""
        return any(definition.name == self.name for definition in table.indexes())

    def is_hudis(self, table: IndexedTable) -> bool:
        """Whether Hudi has an index of this name, as created or as shown by SHOW INDEXES."""
        name = self.name.lower()
        names = {each.name.lower() for each in own_indexes(table.hudi_table.storage)}
        return not names.isdisjoint(f"{prefix}{name}" for prefix in ("", *HUDI_PREFIXES))

    def no_index(self, table: IndexedTable | None) -> IndexNotFound:
        """The error if neither knows the index."""
        names = () if table is None else [each.name for each in table.indexes()]
        near = did_you_mean(self.name, names)
        lists = (
            "SHOW INDEXES FROM the table lists them; drop Hudi's own by the table's name."
            if isinstance(self.table, TablePath)
            else f"SHOW INDEXES FROM {self.table} lists them, including Hudi's own."
        )
        return IndexNotFound(
            f"{self.table} has no index named {self.name}.", remedy=f"{near}{lists}"
        )


@dataclass(frozen=True, slots=True)
class DropIndex(NamedIndex):
    """``DROP INDEX [IF EXISTS] name ON [TABLE] t [PURGE]``"""

    first_words = ("DROP", "INDEX")
    result = DROPPED
    removes_files = True

    name: str
    table: TableReference
    if_exists: bool = False
    purge: bool = False

    @classmethod
    def parsed(cls, text: Parser) -> "DropIndex | DropColumns":
        if text.accept("ON"):
            return DropColumns.parsed(text)
        if_exists = text.condition("EXISTS")
        name, table = text.index_of_table(
            "index name" if if_exists else "IF EXISTS, ON or index name"
        )
        purge = text.accept("PURGE")
        text.end_of_statement("" if purge else "PURGE")
        return cls(name, table, if_exists, purge)

    @property
    def may_be_hudis(self) -> bool:
        return isinstance(self.table, TableName) and not self.purge

    @property
    def columns_without(self) -> str | None:
        # Hudi's index may be incomplete.
        return None if self.if_exists else NOTHING

    def run(self, open: Open) -> Result | LeftToHudi:
        with self.opened(open) as table:
            if table is not None and self.is_ours(table):
                return _dropped_result(table.drop_index(self.name, purge=self.purge))
            if self.may_be_hudis:
                known = table is None or self.is_hudis(table)
                return LeftToHudi(None if known else self.no_index(table))
        if self.if_exists:
            return Result(DROPPED, [{"index_name": self.name, "dropped": False}])
        raise self.no_index(table)


@dataclass(frozen=True, slots=True)
class DropColumns(TableStatement):
    """``DROP INDEX ON [TABLE] t (column, …) [PURGE]``: from every index of the table."""

    first_words = ("DROP", "INDEX")
    result = DROPPED
    removes_files = True

    table: TableReference
    columns: tuple[str, ...]
    purge: bool = False

    @classmethod
    def parsed(cls, text: Parser) -> "DropColumns":
        table = text.table()
        columns = tuple(text.in_parentheses(text.column_name))
        purge = text.accept("PURGE")
        text.end_of_statement("" if purge else "PURGE")
        return cls(table, columns, purge)

    def run(self, open: Open) -> Result:
        with open(self.table) as table:
            return _dropped_result(table.drop_index(columns=self.columns, purge=self.purge))


@dataclass(frozen=True, slots=True)
class RefreshIndex(NamedIndex):
    """``REFRESH INDEX name ON [TABLE] t``: updates its entries to its definition, and builds what
    the strategy INCREMENTAL would. For base files older than the index that have no entry, use
    OPTIMIZE TABLE with STRATEGY ALL."""

    first_words = ("REFRESH", "INDEX")
    result = ENTRIES
    columns_without = ENTRIES

    name: str
    table: TableReference

    @classmethod
    def parsed(cls, text: Parser) -> "RefreshIndex":
        name, table = text.index_of_table("index name")
        text.end_of_statement()
        return cls(name, table)

    def run(self, open: Open) -> Result | LeftToHudi:
        with self.opened(open) as table:
            if table is not None and self.is_ours(table):
                return entries_result(table.refresh(self.name))
            # Hudi's statement does nothing, whether or not the index exists.
            if self.may_be_hudis and (table is None or self.is_hudis(table)):
                return LeftToHudi()
        raise self.no_index(table)


def indexes_result(
    definitions: Iterable[IndexDefinition], hudis_own: Iterable[OwnIndex] = ()
) -> Result:
    """`INDEXES`: the definitions, then Hudi's own."""
    ours = [
        {
            "index_name": definition.name,
            "index_type": ",".join(definition.index_types),
            "col_name": ",".join(names_by_use(definition)[0]),
            "options": {
                column.name: dict(column.options) for column in definition.columns if column.options
            },
            "created": datetime.fromisoformat(definition.created),
            "managed_by": "index service",
        }
        for definition in definitions
    ]
    theirs = [
        {
            "index_name": each.name,
            "index_type": each.type,
            "col_name": ",".join(each.columns),
            "options": {column: dict(each.options) for column in each.columns if each.options},
            "managed_by": "hudi",
        }
        for each in hudis_own
    ]
    return Result(INDEXES, [*ours, *theirs])


def _dropped_result(dropped: Dropped) -> Result:
    """`DROPPED`"""
    remaining = None
    if dropped.purge is not None:
        remaining = [
            {"entry": each.folder, "columns": list(each.columns), "reason": each.reason}
            for each in dropped.purge.remaining
        ]
    rows = [(definition.name, True) for definition in dropped.indexes]
    rows += [(definition.name, False) for definition in dropped.narrowed]
    return Result(
        DROPPED,
        [{"index_name": name, "dropped": gone, "not_purged": remaining} for name, gone in rows],
    )


def _opened(open: Open, table: TableReference) -> AbstractContextManager[IndexedTable | None]:
    """The table; None for a name of one that cannot have an index of the service, and is left to
    Spark."""
    try:
        return open(table)
    except (TableNotFound, NotAHudiTable, StorageUnsupported):
        if isinstance(table, TablePath):
            raise
        return nullcontext()
