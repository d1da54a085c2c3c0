"""What the live definitions ask of an entry: columns and fields, per index type.

All definitions of one index type share one entry per base file, as RFC-51 wants ("multi-column
index data in one file").
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudi_index_service.definitions import IndexDefinition
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one definition asks of an entry."""

    definition: IndexDefinition
    columns: tuple[ColumnSpec, ...]


def requirement(definition: IndexDefinition, schema: pa.Schema) -> Requirement:
    """The definition's columns in the table's present schema; columns since dropped are left out.

    Raises:
        IndexTypeUnknown: the definition's index type is not installed here.
        ColumnNotIndexable: a column's type changed to one that the index type cannot hold.
    """
    kind = index_type(definition.index_type)
    specs = []
    for column in definition.columns:
        if column.name in schema.names:
            type = schema.field(column.name).type
            fields = kind.fields(column.name, type, column.options)
            specs.append(ColumnSpec(column.name, type, fields))
    return Requirement(definition, tuple(specs))


def merged(specs: Iterable[ColumnSpec]) -> tuple[ColumnSpec, ...]:
    """One spec a column, with the fields of all specs for it; columns sorted by name."""
    by_name: dict[str, ColumnSpec] = {}
    for spec in specs:
        known = by_name.get(spec.name)
        fields = spec.fields if known is None else tuple(sorted({*known.fields, *spec.fields}))
        by_name[spec.name] = ColumnSpec(spec.name, spec.type, fields)
    return tuple(by_name[name] for name in sorted(by_name))


def by_index_type(requirements: Iterable[Requirement]) -> Mapping[str, list[Requirement]]:
    """The requirements grouped by index type."""
    groups: dict[str, list[Requirement]] = {}
    for each in requirements:
        groups.setdefault(each.definition.index_type, []).append(each)
    return groups
