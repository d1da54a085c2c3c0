"""What the live definitions ask of an entry: columns and fields, per index type.

All definitions of one index type share one entry per base file, as RFC-51 wants ("multi-column
index data in one file").
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudi_index_service.columns import column_type
from hudi_index_service.definitions import IndexDefinition
from hudi_index_service.errors import ColumnNotIndexable, IndexDefinitionInvalid, IndexTypeUnknown
from hudi_index_service.index.contract import ColumnSpec
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.scores import TextRanker
from hudi_index_service.predicate.expression import AnalyzedText

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one definition asks of the entries of one of its index types."""

    definition: IndexDefinition
    index_type: str
    columns: tuple[ColumnSpec, ...]


def requirement(definition: IndexDefinition, name: str, schema: pa.Schema) -> Requirement:
    """The definition's columns in the table's present schema. Left out are columns since dropped,
    and those whose type changed to one that cannot be held as the definition has it.

    Args:
        name: Which of the definition's index types.

    Raises:
        IndexTypeUnknown: the index type is not installed here.
    """
    kind = index_type(name)
    specs = []
    for column in definition.columns:
        type = column_type(schema, column.name)
        if type is None:
            continue
        try:
            fields = kind.fields(column.name, type, column.options_of(kind.name))
        except (ColumnNotIndexable, IndexDefinitionInvalid) as error:
            log.warning("Index %s passes over a column: %s", definition.name, error)
            continue
        specs.append(ColumnSpec(column.name, type, fields))
    return Requirement(definition, name, tuple(specs))


def requirements(definitions: Iterable[IndexDefinition], schema: pa.Schema) -> list[Requirement]:
    """What the definitions ask for, one requirement for each and each of its index types. An index
    type that is not installed here builds and serves nothing here, and the log says so."""
    found = []
    for definition in definitions:
        for name in definition.index_types:
            try:
                found.append(requirement(definition, name, schema))
            except IndexTypeUnknown as error:
                log.warning("Index %s is passed over: %s", definition.name, error)
    return found


def analyzed_texts(asked: Iterable[Requirement]) -> Mapping[str, tuple[AnalyzedText, ...]]:
    """By column, how indexes find the words of its texts; several ways if definitions differ. An
    index type without `analyzed_text` finds none."""
    found: dict[str, list[AnalyzedText]] = {}
    for each in asked:
        way = getattr(index_type(each.index_type), "analyzed_text", None)
        for spec in each.columns:
            text = None if way is None else way(spec)
            if text is not None and text not in found.setdefault(spec.name, []):
                found[spec.name].append(text)
    return {name: tuple(ways) for name, ways in found.items()}


def text_rankers(asked: Iterable[Requirement]) -> Mapping[str, TextRanker]:
    """By column, what scores full-text searches; columns whose indexes cannot are left out."""
    found: dict[str, TextRanker] = {}
    for each in asked:
        make = getattr(index_type(each.index_type), "text_ranker", None)
        for spec in each.columns:
            ranker = None if make is None else make(spec)
            if ranker is not None:
                found[spec.name] = ranker
    return found


def merged(specs: Iterable[ColumnSpec]) -> tuple[ColumnSpec, ...]:
    """One spec a column, with the fields of all specs for it; columns sorted by name. Of specs that
    differ in type, the last counts: another type may need other fields."""
    by_name: dict[str, ColumnSpec] = {}
    for spec in specs:
        known = by_name.get(spec.name)
        fields = spec.fields
        if known is not None and known.type == spec.type:
            fields = tuple(sorted({*known.fields, *spec.fields}))
        by_name[spec.name] = ColumnSpec(spec.name, spec.type, fields)
    return tuple(by_name[name] for name in sorted(by_name))


def by_index_type(requirements: Iterable[Requirement]) -> Mapping[str, list[Requirement]]:
    """The requirements grouped by index type."""
    groups: dict[str, list[Requirement]] = {}
    for each in requirements:
        groups.setdefault(each.index_type, []).append(each)
    return groups
