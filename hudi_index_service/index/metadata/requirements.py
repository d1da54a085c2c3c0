"""What the live definitions require of an entry: columns and fields, per index type.

All definitions of one index type share one entry per base file, as RFC-51 specifies ("multi-column
index data in one file").
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_index_service.columns import column_field, has_millis
from hudi_index_service.errors import ColumnNotIndexable, IndexDefinitionInvalid, IndexTypeUnknown
from hudi_index_service.index.contract import ColumnSpec, IndexType
from hudi_index_service.index.factory import index_type
from hudi_index_service.index.metadata.column_fields import column_fields, indexed, key_of
from hudi_index_service.index.metadata.definitions import Column, IndexDefinition
from hudi_index_service.index.scores import TextRanker
from hudi_index_service.predicate.expression import AnalyzedText

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one definition requires of the entries of one of its index types."""

    definition: IndexDefinition
    index_type: str
    columns: tuple[ColumnSpec, ...]


def requirement(definition: IndexDefinition, name: str, schema: pa.Schema) -> Requirement:
    """The definition's columns in the table's present schema. Columns that were dropped are left
    out, and columns whose new type cannot be indexed as the definition specifies.

    Args:
        name: The name of one of the definition's index types.

    Raises:
        IndexTypeUnknown: the index type is not installed here.
    """
    kind = index_type(name)
    fields = {
        column.name: field
        for column in definition.columns
        if (field := column_field(schema, column.name)) is not None
    }
    present = [each for each in definition.columns if each.name in fields]
    specs = _specs(definition.name, present, fields, kind)
    return Requirement(definition, name, tuple(specs) if indexed(specs) else ())


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
    """One requirement per definition and index type. What cannot be met here is logged and serves
    no query here: an index type that is not installed, a column that changed its type."""
    result = []
    for definition in definitions:
        for name in definition.index_types:
            try:
                result.append(requirement(definition, name, schema))
            except IndexTypeUnknown as error:
                log.warning("Index %s is skipped: %s", definition.name, error)
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
