"""The columns of a request, in the types of Spark's plan; full-text calls compute some of them from
the texts that are read.

Spark reads only the struct fields that a query needs, also within arrays and maps: its rule
SchemaPruning removes the others from the relation's types.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from hudi_index_service.columns import column_name, column_values
from hudi_index_service.predicate.values import identifier_sql
from hudi_index_service.sql.rule.full_text import FullTextCalls, spark_function
from hudi_index_service.sql.rule.request import Call, Computed, Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a result.

    Attributes:
        request: Names the columns.
        met: The searches that all rows match which are read.
        calls: Evaluates the other calls.
    """

    request: Request
    met: Sequence[Computed]
    calls: FullTextCalls

    @property
    def texts(self) -> list[str]:
        """The table's columns that have to be read beside those that are wanted."""
        needed = [each.of[0] for each in self.request.computed if each not in self.met]
        return [each for each in dict.fromkeys(needed) if each not in self.request.names]

    def table(self, rows: pa.Table, known: Sequence[tuple[Call, pa.ChunkedArray]] = ()) -> pa.Table:
        """The result from rows that are in the driver.

        Args:
            rows: With the columns wanted first.
            known: Calls whose values are known already.

        Raises:
            IndexServiceError: a call cannot be evaluated.
        """
        if not self.request.computed:
            return rows
        read = zip(rows.column_names, rows.columns, strict=True)
        columns: list[tuple[str, Any]] = [
            next(read)
            if each.computed is None
            else (each.name, self._values(each.computed, rows, known))
            for each in self.request.columns
        ]
        names, arrays = zip(*columns, strict=True)
        return pa.Table.from_arrays(list(arrays), names=list(names))

    def frame(self, rows: "DataFrame") -> "DataFrame":
        """The result from rows that tasks read. Raises what `table` raises."""
        if not self.request.computed:
            return rows
        return rows.select(
            [
                F.col(identifier_sql(each.name))
                if each.computed is None
                else self._column(each.computed).alias(each.name)
                for each in self.request.columns
            ]
        )

    def _values(
        self, each: Computed, rows: pa.Table, known: Sequence[tuple[Call, pa.ChunkedArray]]
    ) -> Any:
        if each in self.met:
            return pa.repeat(True, rows.num_rows)
        for call, values in known:
            if call == each.call:
                return values
        texts = column_values(rows, column_name(each.of))
        if isinstance(texts, pa.ChunkedArray):
            texts = texts.combine_chunks()
        return self.calls.evaluator(each.call)(texts)

    def _column(self, each: Computed) -> Column:
        if each in self.met:
            return F.lit(True)
        function = spark_function(each.call, self.calls.evaluator(each.call))
        return function(".".join(map(identifier_sql, each.of)))


def as_spark_sees(columns: Iterable[pa.Field], types: Sequence[Any]) -> pa.Schema | None:
    """The columns in Spark's types, which may lack struct fields; None if a type differs otherwise.

    Args:
        types: Spark's types, one for each column: `DataType.jsonValue` of each.
    """
    fields = []
    for each, spark_type in zip(columns, types, strict=True):
        kind = _prune(each.type, spark_type)
        if kind is None:
            return None
        fields.append(each if isinstance(spark_type, str) else each.with_type(kind))
    return pa.schema(fields)


def _prune(kind: pa.DataType, spark_type: Any) -> pa.DataType | None:
    """The type with only the struct fields that Spark needs; None if it is another type."""
    if isinstance(spark_type, str):
        return kind if _plain_type(kind) == spark_type else None
    match spark_type["type"]:
        case "struct" if pa.types.is_struct(kind):
            return _prune_struct(kind, spark_type["fields"])
        case "array" if pa.types.is_list(kind):
            values = _prune(kind.value_type, spark_type["elementType"])
            return None if values is None else pa.list_(kind.value_field.with_type(values))
        case "map" if pa.types.is_map(kind):
            keys = _prune(kind.key_type, spark_type["keyType"])
            items = _prune(kind.item_type, spark_type["valueType"])
            if keys is None or items is None:
                return None
            return pa.map_(kind.key_field.with_type(keys), kind.item_field.with_type(items))
    return None


@lru_cache(maxsize=256)
def _plain_type(kind: pa.DataType) -> str | None:
    """Spark's type, as JSON has it; None for nested types."""
    if pa.types.is_nested(kind):
        return None
    return str(from_arrow_type(kind, prefer_timestamp_ntz=True).jsonValue())


def _prune_struct(struct: pa.StructType, spark_fields: list[Any]) -> pa.DataType | None:
    fields = []
    for each in spark_fields:
        place = struct.get_field_index(each["name"])
        kind = None if place < 0 else _prune(struct.field(place).type, each["type"])
        if kind is None:
            return None
        fields.append(struct.field(place).with_type(kind))
    return pa.struct(fields)
