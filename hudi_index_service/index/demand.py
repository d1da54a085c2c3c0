"""What the live definitions make of one entry: which columns its next generation has, and whether
the present one holds what nobody asks for any more.

Definitions of one index type share an entry. They change while builders work: a task asks anew
just before it builds and just after it has published, so that no column that a live definition
asks for is lost, and none stays that was dropped meanwhile.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudi_index_service.definitions import DefinitionStore
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.manifest import Manifest, ManifestColumn
from hudi_index_service.index.requirements import Requirement, merged, requirements
from hudi_index_service.storage import Storage


@dataclass(frozen=True, slots=True)
class EntryContent:
    """What a generation is built with: its columns, and the definitions that it is built for
    (name → fingerprint)."""

    columns: tuple[ColumnSpec, ...]
    definitions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of the entries of one index type, at one moment.

    Attributes:
        requirements: Of the live definitions, those of this index type.
        complete: False if a definition cannot be read here. It may ask for any column, so every
            column that an entry holds is kept.
    """

    index_type: str
    requirements: tuple[Requirement, ...]
    complete: bool = True

    @classmethod
    def now(cls, index_type: str, storage: Storage, schema: pa.Schema) -> "Demand":
        """What the definitions ask for as they stand at this moment.

        Args:
            schema: The table's.
        """
        live, complete = DefinitionStore(storage).read()
        asked = (each for each in requirements(live, schema) if each.index_type == index_type)
        return cls(index_type, tuple(asked), complete)

    def content(self, names: Collection[str], present: Manifest | None) -> EntryContent:
        """What an entry's next generation holds: what the named definitions ask for now, and of
        what the present generation holds whatever any live definition asks for.

        Args:
            names: The definitions that want this entry; those dropped since ask for nothing.
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
            columns = [*self._kept(present), *columns]
        return EntryContent(merged(columns), definitions)

    def superfluous(self, manifest: Manifest) -> bool:
        """Whether the entry surely holds what no live definition asks for."""
        return self.complete and bool(self.excess(manifest))

    def excess(self, manifest: Manifest) -> tuple[str, ...]:
        """The columns of an entry that no live definition asks for, or not with all its fields."""
        asked = self._asked()
        return tuple(
            column.name
            for column in manifest.columns
            if column.name not in asked or not _within(column, asked[column.name])
        )

    def _kept(self, manifest: Manifest) -> Iterable[ColumnSpec]:
        asked = self._asked()
        for column in manifest.columns:
            spec = asked.get(column.name)
            if not self.complete:
                yield ColumnSpec(column.name, column.arrow_type(), column.fields)
            if spec is not None and column.type != str(spec.type):
                yield spec  # its type changed: built anew as it is now
            elif spec is not None:
                fields = tuple(field for field in column.fields if field in spec.fields)
                yield ColumnSpec(column.name, spec.type, fields)

    def _asked(self) -> dict[str, ColumnSpec]:
        every = merged(spec for each in self.requirements for spec in each.columns)
        return {spec.name: spec for spec in every}


def holds_all(manifest: Manifest, columns: Iterable[ColumnSpec]) -> bool:
    """Whether an entry has every column under the fields asked for."""
    return all(manifest.holds(spec.name, spec.type, spec.fields) for spec in columns)


def _within(column: ManifestColumn, spec: ColumnSpec) -> bool:
    return column.type != str(spec.type) or set(column.fields) <= set(spec.fields)
