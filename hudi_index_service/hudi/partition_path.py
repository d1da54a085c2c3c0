"""Values of the partition columns, derived from a partition's path.

Spark reads them from the path, whatever the files hold. They differ if a record stays in its
partition although a later version of it names another, as a global index does with
``hoodie.record.index.update.partition.path=false``, the default.

Only key generators that write a column's value unchanged into the path (SIMPLE, COMPLEX) are
supported. Timestamp and custom ones write another form, and Spark reads the files. NULL and ''
share a folder. Uncertain values are left out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from hudi_index_service.arrow import text_scalar
from hudi_index_service.hudi.properties import is_true, split_columns

# Two characters that Java's Integer.parseInt accepts, including %+1.
_ENCODED = re.compile(r"%([0-9A-Fa-f]{2}|\+[0-9A-Fa-f]|-0)")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_PLAIN = ("SIMPLE", "COMPLEX")
_PLAIN_CLASSES = ("SimpleKeyGenerator", "ComplexKeyGenerator")
_PLAIN_CLASSES_AVRO = ("SimpleAvroKeyGenerator", "ComplexAvroKeyGenerator")


@dataclass(frozen=True, slots=True)
class PartitionPaths:
    """The format of a table's partition paths.

    Attributes:
        columns: The partition columns, in the path's order; empty if paths give no values.
        hive_style: Whether a part of the path is ``column=value``.
    """

    columns: tuple[str, ...] = ()
    hive_style: bool = False

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """The format that hoodie.properties defines."""
        if not _is_plain(properties):
            return cls()
        return cls(
            split_columns(properties.get("hoodie.table.partition.fields", "")),
            is_true(properties, "hoodie.datasource.write.hive_style_partitioning"),
        )

    def values(self, path: str, schema: pa.Schema) -> dict[str, pa.Scalar]:
        """Column → its value in every row of the partition, if certain."""
        values = {}
        for column, part in self._parts(path).items():
            if part in ("", _NO_VALUE) or column not in schema.names:
                continue
            value = _value(_decoded(part), schema.field(column).type)
            if value is not None:
                values[column] = value
        return values

    def without_value(self, path: str) -> frozenset[str]:
        """The columns that are NULL or an empty text in the rows of the partition: these share a
        folder."""
        parts = self._parts(path)
        return frozenset(each for each, part in parts.items() if part in ("", _NO_VALUE))

    def _parts(self, path: str) -> dict[str, str]:
        """Column → its part of the path; empty if the parts cannot be assigned."""
        parts = path.split("/")
        if len(parts) != len(self.columns):  # a value with a slash in it
            return {}
        by_column = {}
        for column, part in zip(self.columns, parts, strict=True):
            if self.hive_style and not part.startswith(f"{column}="):
                return {}
            by_column[column] = part[len(column) + 1 :] if self.hive_style else part
        return by_column


def _decoded(part: str) -> str:
    """A part of a path as Spark decodes it, even if the table does not encode paths: ``%XX`` is the
    character with that code (``ExternalCatalogUtils.unescapePathName``)."""
    return _ENCODED.sub(lambda match: chr(int(match[1], 16)), part)


def _is_plain(properties: Mapping[str, str]) -> bool:
    kind = properties.get("hoodie.table.keygenerator.type")
    if kind is not None:
        return kind.removesuffix("_AVRO") in _PLAIN
    name = properties.get("hoodie.table.keygenerator.class", "").rpartition(".")[2]
    return name in (*_PLAIN_CLASSES, *_PLAIN_CLASSES_AVRO)


def _value(text: str, kind: pa.DataType) -> pa.Scalar | None:
    """The text as a value of a type with one spelling per value; None for another spelling."""
    has_one_spelling = (
        pa.types.is_string(kind) or pa.types.is_signed_integer(kind) or pa.types.is_date32(kind)
    )
    if not has_one_spelling:
        return None
    try:
        value = text_scalar(text).cast(kind)
    except pa.ArrowInvalid:
        return None
    return value if str(value.cast(pa.string()).as_py()) == text else None
