"""What the live definitions require of one entry: the columns of its next generation, and whether
the present generation holds columns that no definition requires any more.

Definitions of one index type share an entry, and they change while builders work. A task therefore
reads them again just before it builds and just after it publishes, so that no required column is
lost and no column stays that was dropped in the meantime.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_index_service.index.contract import ColumnSpec, StoredColumn
from hudi_index_service.index.metadata.definitions import DefinitionStore
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.index.metadata.requirements import Requirement, merged, requirements
from hudi_index_service.storage.store import Storage


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
