"""What the live definitions require of entries: columns and fields, per index type, and the content
of an entry's next generation.

All definitions of one index type share one entry per base file, as RFC-51 specifies ("multi-column
index data in one file"), and they change while builders work. A task therefore reads them again
just before it builds and just after it publishes, so that no required column is lost and no column
stays that was dropped in the meantime.

Two options of a column are not the index type's own, but understood for every type:

- ``stored``: with ``true``, the column's values are stored beside the index, so that queries on
  such columns alone read no base file; with ``only`` (INCLUDE in SQL), they are stored and the
  column is not indexed.
- ``key``: with ``composite``, the columns that have it are indexed by one key of all of them.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from hudi_index_service.columns import column_field, column_path, has_millis
from hudi_index_service.errors import ColumnNotIndexable, IndexDefinitionInvalid, IndexTypeUnknown
from hudi_index_service.index.contract import ColumnSpec, IndexType, StoredColumn, TextRanker
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.definitions import Column, DefinitionStore, IndexDefinition
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.index.stored_column import is_known_type
from hudi_index_service.predicate.expression import AnalyzedText
from hudi_index_service.storage.store import Storage

STORED = "stored"
"""The field of a column whose values are stored, and the option that asks for it."""

KEY = "key"
"""The option of columns that make one key."""

_CHOICES = {STORED: ("false", "true", "only"), KEY: ("single", "composite")}

_Column = TypeVar("_Column", ColumnSpec, StoredColumn)

log = logging.getLogger(__name__)


def key_of(columns: Iterable[Column], index_type: str) -> tuple[str, ...]:
    """The names of the columns that make the composite key of an index type, in order; empty
    without such a key. One column alone has its own key."""
    names = tuple(each.name for each in columns if is_in_key(each.options_of(index_type)))
    return names if len(names) > 1 else ()


def column_fields(
    column: Column, type: pa.DataType, kind: IndexType, key: Sequence[str]
) -> tuple[str, ...]:
    """The fields that an entry needs for a column of a definition.

    Args:
        type: The column's type in the table's schema.
        key: The definition's composite key, see `key_of`.

    Raises:
        ColumnNotIndexable: the index type cannot hold the column.
        IndexDefinitionInvalid: an option is unknown or has a wrong value.
    """
    options = column.options_of(kind.name)
    stored, _ = (_choice(column, options, name) for name in _CHOICES)
    own_options = {name: value for name, value in options.items() if name not in _CHOICES}
    if stored != "false" and len(column_path(column.name)) > 1:
        raise IndexDefinitionInvalid(
            f"Column {column.name}: the values of a struct's field cannot be stored by themselves.",
            remedy=f"Store the whole column {column_path(column.name)[0]}.",
        )
    if stored != "false" and not is_known_type(type):
        raise ColumnNotIndexable(
            f"Column {column.name}: values of type {type} cannot be stored beside an index.",
            remedy="Leave it out of INCLUDE, or set stored = 'false'.",
        )
    if stored == "only":
        surplus = min((name for name in options if name != STORED), default=None)
        if surplus is not None:
            raise IndexDefinitionInvalid(
                f"Column {column.name} is stored and not indexed: it has no option {surplus!r}.",
                remedy=f"Leave {surplus} out, or index the column with stored = 'true'.",
            )
        return (STORED,)
    if column.name in key:
        if own_options:
            raise IndexDefinitionInvalid(
                f"Column {column.name}: a column of a composite key has no option "
                f"{min(own_options)!r}.",
                remedy="Leave it out.",
            )
        fields: tuple[str, ...] = (kind.key_field(column.name, type, key),)
    else:
        fields = kind.fields(column.name, type, own_options)
    return (*fields, STORED) if stored == "true" else fields


def including(columns: Iterable[Column], include: Iterable[Column]) -> tuple[Column, ...]:
    """The columns of a definition that also stores the values of others: INCLUDE in SQL. Those of
    indexed columns are stored too, so that queries may mention them, unless an option forbids it or
    they are fields of structs."""
    included = tuple(_with(each, {STORED: "only"}) for each in include)
    if not included:
        return tuple(columns)
    indexed = (
        _with(each, {STORED: "true"}) if len(column_path(each.name)) == 1 else each
        for each in columns
    )
    return (*indexed, *included)


def is_indexed(column: Column, index_type: str) -> bool:
    """Whether an index type indexes a column of a definition, and not only stores its values."""
    return column.options_of(index_type).get(STORED) != "only"


def names_by_use(definition: IndexDefinition) -> tuple[list[str], list[str]]:
    """The names of a definition's columns: of those that any of its index types indexes, and of
    those whose values are only stored."""
    of_indexed: list[str] = []
    of_stored: list[str] = []
    for column in definition.columns:
        is_any = any(is_indexed(column, each) for each in definition.index_types)
        (of_indexed if is_any else of_stored).append(column.name)
    return of_indexed, of_stored


def indexed(columns: Iterable[_Column]) -> tuple[_Column, ...]:
    """The columns as an index type knows them: without stored values, and without the columns of
    which nothing else is held."""
    return tuple(
        _with_fields(each, [name for name in each.fields if name != STORED])
        if STORED in each.fields
        else each
        for each in columns
        if each.fields != (STORED,)
    )


def stored_names(columns: Iterable[ColumnSpec | StoredColumn]) -> tuple[str, ...]:
    """The names of the columns whose values are stored."""
    return tuple(each.name for each in columns if STORED in each.fields)


def _with_fields(column: _Column, fields: Sequence[str]) -> _Column:
    if isinstance(column, StoredColumn):
        return column.model_copy(update={"fields": tuple(fields)})
    return replace(column, fields=tuple(fields))


def _with(column: Column, options: Mapping[str, str]) -> Column:
    return Column(name=column.name, options={**options, **column.options})


def is_in_key(options: Mapping[str, str]) -> bool:
    """Whether a column with these options (see `Column.options_of`) is to be in a composite key."""
    return options.get(KEY) == "composite" and options.get(STORED) != "only"


def _choice(column: Column, options: Mapping[str, str], name: str) -> str:
    choices = _CHOICES[name]
    value = options.get(name, choices[0])
    if value not in choices:
        raise IndexDefinitionInvalid(
            f"Column {column.name}: the option {name} cannot be {value!r}.",
            remedy=f"Use one of: {', '.join(choices)}.",
        )
    return value


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one definition requires of the entries of one of its index types."""

    definition: IndexDefinition
    index_type: str
    columns: tuple[ColumnSpec, ...]


def _specs(
    index: str, columns: Sequence[Column], fields: Mapping[str, pa.Field], kind: IndexType
) -> list[ColumnSpec]:
    """The columns without those that an index type cannot hold; a composite key is then made of the
    others."""
    key = key_of(columns, kind.name)
    specs = []
    for column in columns:
        field = fields[column.name]
        try:
            own = column_fields(column, field.type, kind, key)
            specs.append(ColumnSpec(column.name, field.type, own, has_millis(field)))
        except (ColumnNotIndexable, IndexDefinitionInvalid) as error:
            log.warning("Index %s skips a column: %s", index, error)
            others = [each for each in columns if each is not column]
            return _specs(index, others, fields, kind)
    return specs


def requirements(definitions: Iterable[IndexDefinition], schema: pa.Schema) -> list[Requirement]:
    """One requirement per definition and index type, with the columns that the table's schema still
    has. What cannot be met here is logged and serves no query here: an index type that is not
    installed, a column whose new type cannot be indexed as the definition specifies."""
    result = []
    for definition in definitions:
        fields = {
            column.name: field
            for column in definition.columns
            if (field := column_field(schema, column.name)) is not None
        }
        present = [each for each in definition.columns if each.name in fields]
        for name in definition.index_types:
            try:
                specs = _specs(definition.name, present, fields, index_type(name))
            except IndexTypeUnknown as error:
                log.warning("Index %s is skipped: %s", definition.name, error)
            else:
                columns = tuple(specs) if indexed(specs) else ()
                result.append(Requirement(definition, name, columns))
    return result


def analyzed_texts(requirements: Iterable[Requirement]) -> Mapping[str, tuple[AnalyzedText, ...]]:
    """How indexes split each column's texts into words, by column; several ways if definitions
    differ."""
    texts: dict[str, list[AnalyzedText]] = {}
    for each in requirements:
        kind = index_type(each.index_type)
        for spec in indexed(each.columns):
            text = kind.analyzed_text(spec)
            if text is not None and text not in texts.setdefault(spec.name, []):
                texts[spec.name].append(text)
    return {name: tuple(ways) for name, ways in texts.items()}


def text_rankers(requirements: Iterable[Requirement]) -> Mapping[str, TextRanker]:
    """The scorer of full-text searches, by column; columns whose indexes cannot score are left
    out."""
    rankers: dict[str, TextRanker] = {}
    for each in requirements:
        kind = index_type(each.index_type)
        for spec in indexed(each.columns):
            ranker = kind.text_ranker(spec)
            if ranker is not None:
                rankers[spec.name] = ranker
    return rankers


def merged(specs: Iterable[ColumnSpec]) -> tuple[ColumnSpec, ...]:
    """One spec per column, with the fields of all its specs; columns sorted by name. If the specs
    differ in type, the last one wins: another type may need other fields."""
    by_name: dict[str, ColumnSpec] = {}
    for spec in specs:
        earlier = by_name.get(spec.name)
        fields = spec.fields
        if earlier is not None and earlier.type_name == spec.type_name:
            fields = tuple(sorted({*earlier.fields, *spec.fields}))
        by_name[spec.name] = replace(spec, fields=fields)
    return tuple(by_name[name] for name in sorted(by_name))


def by_index_type(requirements: Iterable[Requirement]) -> Mapping[str, list[Requirement]]:
    """The requirements grouped by index type."""
    groups: dict[str, list[Requirement]] = {}
    for each in requirements:
        groups.setdefault(each.index_type, []).append(each)
    return groups


@dataclass(frozen=True, slots=True)
class EntryContent:
    """The columns of a generation, and its definitions (name → fingerprint)."""

    columns: tuple[ColumnSpec, ...]
    definitions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DesiredEntry:
    """What is required of the entries of one index type, at one moment.

    Attributes:
        requirements: The requirements of the live definitions for this index type.
        complete: False if a definition cannot be read here. It may require any column, so every
            column that an entry holds is kept.
    """

    index_type: str
    requirements: tuple[Requirement, ...]
    complete: bool = True

    @classmethod
    def now(cls, index_type: str, storage: Storage, schema: pa.Schema) -> "DesiredEntry":
        """What the definitions require at this moment.

        Args:
            schema: The table's schema.
        """
        live, complete, _ = DefinitionStore(storage).read()
        matching = (each for each in requirements(live, schema) if each.index_type == index_type)
        return cls(index_type, tuple(matching), complete)

    def content(self, names: Collection[str], present: Manifest | None) -> EntryContent:
        """The content of an entry's next generation: what the named definitions require now, and
        what the present generation holds and any live definition requires.

        Args:
            names: The definitions that require this entry; those dropped since require nothing.
            present: The manifest that serves now, if any.
        """
        own = [each for each in self.requirements if each.definition.name in names]
        definitions = {
            each.definition.name: each.definition.fingerprint(self.index_type) for each in own
        }
        columns = [spec for each in own for spec in each.columns]
        if present is not None:
            live = {each.definition.name for each in self.requirements}
            earlier = {
                name: fingerprint
                for name, fingerprint in present.definitions.items()
                if name in live or not self.complete
            }
            definitions = {**earlier, **definitions}
            columns = [*self._kept_columns(present), *columns]
        return EntryContent(merged(columns), definitions)

    def has_extra_columns(self, manifest: Manifest) -> bool:
        """Whether the entry certainly holds columns or fields that no live definition requires."""
        return self.complete and bool(self.excess(manifest))

    def excess(self, manifest: Manifest) -> tuple[str, ...]:
        """The columns of an entry that no live definition requires with all their fields."""
        specs = self._required_specs()
        return tuple(
            column.name
            for column in manifest.columns
            if column.name not in specs or not _within(column, specs[column.name])
        )

    def _kept_columns(self, manifest: Manifest) -> Iterable[ColumnSpec]:
        specs = self._required_specs()
        for column in manifest.columns:
            spec = specs.get(column.name)
            if not self.complete:
                yield column.spec
            if spec is not None and column.type_name != spec.type_name:
                yield spec  # its type changed: built anew with the new type
            elif spec is not None:
                fields = tuple(field for field in column.fields if field in spec.fields)
                yield replace(spec, fields=fields)
        for skipped in manifest.skipped:  # what the base file's next entry will skip again
            if skipped.name in specs:
                yield specs[skipped.name]

    def _required_specs(self) -> dict[str, ColumnSpec]:
        specs = merged(spec for each in self.requirements for spec in each.columns)
        return {spec.name: spec for spec in specs}


def holds_all(manifest: Manifest, columns: Iterable[ColumnSpec]) -> bool:
    """Whether an entry has every column with the required fields, as far as its base file can be
    read."""
    return all(map(manifest.settles, columns))


def _within(column: StoredColumn, spec: ColumnSpec) -> bool:
    return column.type_name != spec.type_name or set(column.fields) <= set(spec.fields)
