"""Values of the partition columns, derived from a partition's path.

Spark shows the value that it reads from the path, whatever the files hold. They differ if a record
stays in its partition although a later version of it names another, as a global index does with
``hoodie.record.index.update.partition.path=false``, the default.

It does so whatever key generator the properties name, unless that writes another form of the value
(timestamp and custom ones, which the gate refuses). NULL and '' share a folder, whose value is
NULL. A column with a path that is not known to give the same value here as in Spark
(``HoodieSparkUtils.parsePartitionColumnValues``) is left to Spark.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from hudi_index_service.arrow import float_scalar, scalar, text_scalar, truth_scalar
from hudi_index_service.hudi.properties import is_true, split_columns

# Two characters that Java's Integer.parseInt accepts, including %+1.
_ENCODED = re.compile(r"%([0-9A-Fa-f]{2}|\+[0-9A-Fa-f]|-0)")
# What Hudi encodes where paths are encoded (``PartitionPathEncodeUtils.escapePathName``).
_TO_ENCODE = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
# Of Java's Double.toString.
_FLOATING = re.compile(r"-?([0-9]+\.[0-9]+(E-?[0-9]+)?|Infinity)|NaN")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# They write another form of the value: "TIMESTAMP", "CustomAvroKeyGenerator" and so on.
_OTHER_FORM = ("TIMESTAMP", "CUSTOM")


@dataclass(frozen=True, slots=True)
class PartitionPaths:
    """The format of a table's partition paths.

    Attributes:
        columns: The partition columns, in the path's order; empty if paths give no values.
        hive_style: Whether a part of the path is ``column=value``.
        encoded: Whether Hudi encodes values in paths.
    """

    columns: tuple[str, ...] = ()
    hive_style: bool = False
    encoded: bool = False

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """The format that hoodie.properties defines."""
        if _has_other_form(properties):
            return cls()
        return cls(
            split_columns(properties.get("hoodie.table.partition.fields", "")),
            is_true(properties, "hoodie.datasource.write.hive_style_partitioning"),
            is_true(properties, "hoodie.datasource.write.partitionpath.urlencode"),
        )

    def values(self, path: str, schema: pa.Schema) -> dict[str, pa.Scalar]:
        """Column → its value in every row of the partition, if it is known what Spark takes from
        the path; NULL is such a value."""
        values = {}
        for column, part in self._parts(path).items():
            if column not in schema.names:
                continue
            kind = schema.field(column).type
            if part == _NO_VALUE:
                values[column] = scalar(None, kind)
            elif (value := _value(part, kind)) is not None:
                values[column] = value
        return values

    def ambiguous_texts(self, path: str) -> Iterator[tuple[str, str]]:
        """Columns, each with a text for which ``column = text`` may find this partition, or leave
        it out, against the partition's value: Spark makes the folder's name from the text if all
        columns, or the first ones, are fixed so (``SparkHoodieTableFileIndex``)."""
        for column, part in self._parts(path).items():
            if part == _NO_VALUE:
                texts = ["", _NO_VALUE]
            else:
                text = _decoded(part)
                texts = [] if part == (_encoded(text) if self.encoded else text) else [part, text]
            for each in texts:
                yield column, each

    def _parts(self, path: str) -> dict[str, str]:
        """Column → its part of the path, or '' if it has none that can be assigned."""
        parts = path.split("/")
        if len(self.columns) == 1:
            parts = [path]  # a value with slashes in it
        if len(parts) != len(self.columns):
            return dict.fromkeys(self.columns, "")
        by_column = {}
        for column, part in zip(self.columns, parts, strict=True):
            name = f"{column}=" if self.hive_style else ""
            by_column[column] = part[len(name) :] if part.startswith(name) else ""
        return by_column


def _decoded(part: str) -> str:
    """A part of a path as Spark decodes it, even if the table does not encode paths: ``%XX`` is the
    character with that code (``ExternalCatalogUtils.unescapePathName``)."""
    return _ENCODED.sub(lambda match: chr(int(match[1], 16)), part)


def _encoded(text: str) -> str:
    return _TO_ENCODE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def _has_other_form(properties: Mapping[str, str]) -> bool:
    kind = properties.get("hoodie.table.keygenerator.type")
    if kind is None:
        kind = properties.get("hoodie.table.keygenerator.class", "").rpartition(".")[2]
    return kind.upper().startswith(_OTHER_FORM)


def _value(part: str, kind: pa.DataType) -> pa.Scalar | None:
    """A part of a path as a value of a type, if it is spelled as Hudi's writers spell it; else
    None."""
    if not part or ("/" in part and "%" in part):  # Spark decodes no value with slashes
        return None
    text = _decoded(part)
    if pa.types.is_boolean(kind):
        return truth_scalar(text == "true") if text in ("true", "false") else None
    if pa.types.is_floating(kind):
        # Spark reads a float as a double, then rounds.
        return float_scalar(float(text), kind) if _FLOATING.fullmatch(text) else None
    if not (
        pa.types.is_string(kind)
        or pa.types.is_signed_integer(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_decimal(kind)
    ):
        return None
    try:
        value = text_scalar(text).cast(kind)
    except pa.ArrowInvalid:
        return None
    return value if str(value.cast(pa.string()).as_py()) == text else None
