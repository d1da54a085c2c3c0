"""A table's index definitions: create, change, list. A change is checked against the table and the
index types before anything is stored."""

import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from hudi_index_service.columns import column_path, find_column, require_list, require_name
from hudi_index_service.errors import (
    ColumnNotFound,
    ConfigInvalid,
    IndexDefinitionInvalid,
    IndexExists,
    TableFeatureUnsupported,
)
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.hudi.timeline import instant_of
from hudi_index_service.index.contract import IndexType
from hudi_index_service.index.factory import index_types
from hudi_index_service.index.metadata.definitions import (
    MANUAL,
    Column,
    Definitions,
    DefinitionStore,
    IndexDefinition,
    SeenTimeline,
    check_index_name,
)
from hudi_index_service.index.metadata.documents import utc_now
from hudi_index_service.index.metadata.requirements import (
    column_fields,
    including,
    is_in_key,
    is_indexed,
    key_of,
)
from hudi_index_service.index.stored_column import refuse_special
from hudi_index_service.maintain.overwrite import OverwriteWatch
from hudi_index_service.process import awaited_methods

_INSTANT = re.compile("[0-9]{14}([0-9]{3})?")


@awaited_methods
class DefinedIndexes:
    """The index definitions of a Hudi table, as the façade shows them: create, alter, list, and the
    switch for all readers. It needs no entry."""

    def __init__(self, table: HudiTable) -> None:
        self._table = table
        self._definitions = DefinitionStore(table.storage, table.latest_instant)
        self._overwrites = OverwriteWatch(table)

    def create_index(
        self,
        name: str,
        columns: Sequence[str | Column],
        *,
        include: Sequence[str | Column] = (),
        using: str | Sequence[str] = "lucene",
        if_not_exists: bool = False,
        since: str | None = None,
        owner: str = MANUAL,
    ) -> IndexDefinition:
        """Defines an index (RFC-51: createIndex). Builds nothing: entries are built after the next
        clustering or compaction, or by `build`.

        Args:
            name: Letters, digits and _.
            columns: Column names, or `Column` with options of the index type.
            include: Columns whose values are stored beside the index, with those of `columns`: a
                query that mentions only such columns reads no base file.
            using: One or several index types; each builds its own entries with all the columns.
            if_not_exists: Return the existing definition if the name is taken.
            since: The first instant (requested time) for INCREMENTAL builds, or another time in
                one of the forms of `instant_of`; None for the first one after the completed
                instants.
            owner: Who changes the index without being asked; see `IndexDefinition`.

        Raises:
            IndexServiceError: IndexExists, IndexTypeUnknown, ColumnNotFound,
                ColumnNotIndexable, IndexDefinitionInvalid, PermissionDenied.
            ConfigInvalid: `columns` or `using` is not a list, or `since` is not a time.
            NativeModuleMissing: an index type cannot work here, for lack of a module or of Java.
            TableFeatureUnsupported: the table cannot be read without Spark, so no query could use
                the index.
        """
        existing = next((each for each in self.indexes() if each.name == name), None)
        if existing is not None:
            if if_not_exists:
                return existing
            raise IndexExists(f"The table has an index named {name}.")
        defined = undefined_index(self._table, name, columns, include=include, using=using)
        for kind in index_types(defined.index_types):
            kind.check_runtime()
        seen = _seen_timeline(self._table, since)
        return self._definitions.create(
            name, defined.index_types, defined.columns, seen, owner=owner
        )

    def alter_index(
        self,
        name: str,
        *,
        add: Sequence[str | Column] = (),
        drop: Sequence[str] = (),
        options: Mapping[str, Mapping[str, str]] | None = None,
        options_for_all: Mapping[str, str] | None = None,
        rename_to: str | None = None,
    ) -> IndexDefinition:
        """Changes an index. Existing entries keep serving the columns that still match; `refresh`
        updates the entries.

        Args:
            add: New columns, or present ones with other options.
            drop: Names of present columns.
            options: Column → its new options.
            options_for_all: Options for every column, in addition to its own; those of `add` and
                `options` override them.
            rename_to: The new name. The index keeps its entries; see `DefinitionStore.rename`.

        Raises:
            IndexNotFound, PermissionDenied.
            IndexExists: `rename_to` is taken.
            ColumnNotFound, ColumnAmbiguous: no such column, in the schema (add, options) or in the
                index (drop, options).
            ColumnNotIndexable: the index type does not support it.
            IndexDefinitionInvalid: nothing would change, a column named twice or already present
                with these options, no column left, or invalid options.
            IndexTypeUnknown: an index type of the definition is not installed here.
            ConfigInvalid: `add` or `drop` is not a list, or `options` not a dictionary.
            IndexChanged: the index was changed concurrently; this call changed nothing.
        """
        current = self._definitions.get(name)
        columns = _altered_columns(
            current, self._table.schema(), add, drop, options or {}, options_for_all or {}
        )
        if rename_to is not None and rename_to != name:
            return self._definitions.rename(current, rename_to, columns)
        if columns == current.columns:
            raise IndexDefinitionInvalid(
                f"Nothing about index {name} would change.",
                remedy="Name columns to add or drop, other options, or another name.",
            )
        return self._definitions.change(current, columns)

    def indexes(self) -> tuple[IndexDefinition, ...]:
        """The live index definitions, by name."""
        return self._read_definitions().live

    def _read_definitions(self) -> Definitions:
        definitions = self._definitions.read()
        self._overwrites.see(definitions.live)
        return definitions

    def disable(self) -> None:
        """Keeps every reader from the table's indexes until `enable`: their queries scan, from the
        next one on. Entries are still built and cleaned. Raises PermissionDenied."""
        self._definitions.disable(disabled=True)

    def enable(self) -> None:
        """Lets readers use the table's indexes again, after `disable`. Raises PermissionDenied."""
        self._definitions.disable(disabled=False)

    @property
    def is_disabled(self) -> bool:
        """Whether `disable` keeps readers from the table's indexes."""
        return self._definitions.read().disabled


def undefined_index(
    table: HudiTable,
    name: str,
    columns: Sequence[str | Column],
    *,
    include: Sequence[str | Column] = (),
    using: str | Sequence[str] = "lucene",
) -> IndexDefinition:
    """An index as `DefinedIndexes.create_index` would define it now. Stores nothing, and does not
    check that its types can work in this process. Arguments and errors are the same."""
    check_index_name(name)
    reason = table.unsupported_feature()
    if reason is not None:
        raise TableFeatureUnsupported(
            f"{table.storage.uri} cannot be indexed: {reason}",
            remedy="Query it through Spark: an index would never serve it.",
        )
    if not isinstance(using, str):
        require_list(using, "using")
    kinds = index_types([using] if isinstance(using, str) else using)
    return IndexDefinition(
        name=name,
        version=1,
        index_types=tuple(kind.name for kind in kinds),
        columns=_new_columns(name, columns, include, kinds, table.schema()),
        seen=_seen_timeline(table, None),
        created=utc_now(),
    )


def _seen_timeline(table: HudiTable, since: str | None) -> SeenTimeline:
    """The timeline up to now, or up to the first instant for INCREMENTAL builds."""
    instants = [instant.requested for instant in table.completed_instants()]
    first = _first_instant(since, instants) if since else since
    seen = tuple(each for each in instants if first is None or each < first)
    return SeenTimeline(start=min(seen, default=first or ""), instants=seen)


def _first_instant(since: str, instants: Sequence[str]) -> str:
    """An instant, which need not have happened: the next one after second 59 may be second 60.
    Raises ConfigInvalid."""
    if isinstance(since, str) and _INSTANT.fullmatch(since):
        instant_of(f"{since[:12]}00", "since")
        return since
    return since if since in instants else instant_of(since, "since")


def _new_columns(
    index: str,
    columns: Iterable[str | Column],
    include: Iterable[str | Column],
    kinds: Sequence[IndexType],
    schema: pa.Schema,
) -> tuple[Column, ...]:
    """The columns, named as in the schema, each with options that every index type accepts. The
    values of those to `include` are stored, see `including`."""
    require_list(columns, "columns")
    require_list(include, "include")
    resolved = including(
        [_resolved(column, schema) for column in columns],
        [_resolved(column, schema) for column in include],
    )
    if not resolved:
        raise IndexDefinitionInvalid(
            f"Index {index} names no column.", remedy="Name at least one column."
        )
    _refuse_repeated(index, [column.name for column in resolved])
    if not _has_indexed(resolved, [kind.name for kind in kinds]):
        raise IndexDefinitionInvalid(
            f"Index {index} would only store values: none of its columns is indexed.",
            remedy="Name at least one column to look up.",
        )
    for column in resolved:
        _refuse_unfit(column, resolved, kinds, schema)
    return resolved


def _altered_columns(
    definition: IndexDefinition,
    schema: pa.Schema,
    add: Iterable[str | Column],
    drop: Iterable[str],
    options: Mapping[str, Mapping[str, str]],
    options_for_all: Mapping[str, str],
) -> tuple[Column, ...]:
    """The definition's columns after the change; present columns keep their positions."""
    require_list(add, "add")
    require_list(drop, "drop")
    _refuse_other_options(options_for_all, None)
    if not isinstance(options, Mapping):
        raise ConfigInvalid(
            f"options is {options!r}, not a dictionary.",
            remedy='Write options={"msg": {"analyzer": "standard"}}.',
        )
    columns = {column.name: column for column in definition.columns}
    dropped = [_match_or_raise(columns, definition, name) for name in drop]
    _refuse_repeated(definition.name, dropped)
    for name in dropped:
        del columns[name]
    changed: dict[str, Column] = {}
    for column in [_resolved(each, schema) for each in add]:
        if column.name in [*dropped, *changed]:
            _refuse_repeated(definition.name, [column.name] * 2)
        if columns.get(column.name) == column:
            raise IndexDefinitionInvalid(
                f"Index {definition.name} has column {column.name} already, with these options.",
                remedy="Leave it out.",
            )
        changed[column.name] = _with_defaults(column, options_for_all)
    if options_for_all:
        for name in [each for each in columns if each not in changed]:
            changed[name] = Column(name=name, options={**columns[name].options, **options_for_all})
    columns |= changed
    for column_name, values in options.items():
        match = _match_or_raise(columns, definition, column_name)
        _refuse_other_options(values, match)
        column = _with_defaults(Column(name=match, options=dict(values)), options_for_all)
        columns[match] = changed[match] = column
    after = tuple(columns.values())
    if not _has_indexed(after, definition.index_types):
        raise IndexDefinitionInvalid(
            f"Index {definition.name} would be left without an indexed column.",
            remedy="Drop the index instead.",
        )
    if changed:
        kinds = index_types(definition.index_types)
        for column in changed.values():
            _refuse_unfit(column, after, kinds, schema)
    return after


def without_columns(
    definitions: Iterable[IndexDefinition], names: Iterable[str]
) -> list[tuple[IndexDefinition, tuple[Column, ...]]]:
    """The definitions that have any of the columns, each with its remaining columns; none if no
    indexed column remains."""
    affected = []
    for definition in definitions:
        columns = {column.name: column for column in definition.columns}
        for name in names:
            match = _match(columns, name)
            if match is not None:
                del columns[match]
        if len(columns) < len(definition.columns):
            remaining = tuple(columns.values())
            is_left = _has_indexed(remaining, definition.index_types)
            affected.append((definition, remaining if is_left else ()))
    return affected


def _resolved(column: str | Column, schema: pa.Schema) -> Column:
    text = column.name if isinstance(column, Column) else column
    name, _ = find_column(schema, column_path(text))
    options = column.options if isinstance(column, Column) else {}
    return Column(name=name, options=options)


def _refuse_other_options(options: object, column: str | None) -> None:
    """Refuses what is no dictionary from text to text as the options of a column; None for all."""
    if isinstance(options, Mapping) and all(
        isinstance(each, str) for pair in options.items() for each in pair
    ):
        return
    example = '{"analyzer": "standard"}'
    raise IndexDefinitionInvalid(
        f"The options of {'every column' if column is None else f'column {column}'} are "
        f"{options!r}.",
        remedy=f"Write options_for_all={example}."
        if column is None
        else f'Write options={{"{column}": {example}}}.',
    )


def _with_defaults(column: Column, options: Mapping[str, str]) -> Column:
    return column.model_copy(update={"options": {**options, **column.options}})


def _has_indexed(columns: Iterable[Column], index_types: Iterable[str]) -> bool:
    names = tuple(index_types)
    return any(is_indexed(column, name) for column in columns for name in names)


def _refuse_unfit(
    column: Column, columns: Sequence[Column], kinds: Sequence[IndexType], schema: pa.Schema
) -> None:
    """Refuses a column, one of the index's `columns`, that an index type does not support."""
    _, type = find_column(schema, column_path(column.name))
    refuse_special(column.name, schema)
    names = [kind.name for kind in kinds]
    for option in column.options:
        prefix, dot, own_name = option.partition(".")
        if dot and prefix not in names:
            raise IndexDefinitionInvalid(
                f"Column {column.name}: the option {option!r} is for an index type {prefix!r}, "
                "which the index does not have.",
                remedy=f"Prefix the option with one of its types: {', '.join(names)}.",
            )
        if dot and not own_name:
            raise IndexDefinitionInvalid(
                f"Column {column.name}: the option {option!r} has no name.",
                remedy=f"Write a name after the dot, such as {prefix}.analyzer.",
            )
    for kind in kinds:
        try:
            column_fields(column, type, kind, key_of(columns, kind.name))
            if is_in_key(column.options_of(kind.name)):  # even if it is the only one
                kind.key_field(column.name, type, (column.name,))
        except IndexDefinitionInvalid as error:
            if len(kinds) == 1:
                raise
            raise IndexDefinitionInvalid(
                f"Index type {kind.name}: {error.message}",
                remedy=error.remedies
                + "To set an option for one index type only, prefix its name, as in "
                f"{_prefixed_example(column, kind, names)!r}.",
            ) from error


def _prefixed_example(column: Column, kind: IndexType, names: Sequence[str]) -> str:
    """An example: an option for every type, written for another type only."""
    option = next((each for each in column.options if "." not in each), "option")
    return f"{next(name for name in names if name != kind.name)}.{option}"


def _refuse_repeated(index: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise IndexDefinitionInvalid(
                f"Index {index} names column {name} twice.", remedy="Name each column once."
            )


def _match_or_raise(columns: Mapping[str, Column], definition: IndexDefinition, name: str) -> str:
    match = _match(columns, name)
    if match is None:
        names = ", ".join(column.name for column in definition.columns)
        raise ColumnNotFound(
            f"Index {definition.name} has no column {name}.",
            remedy=f"Name one of its columns: {names}.",
        )
    return match


def _match(columns: Mapping[str, Column], name: str) -> str | None:
    """The matching name among the index's columns, which the table may no longer have."""
    require_name(name)
    if name in columns:
        return name
    matches = [each for each in columns if each.lower() == name.lower()]
    return matches[0] if len(matches) == 1 else None
