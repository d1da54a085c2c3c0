"""Plans of slices whose entries have the manifests of given rows; nothing is built."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from hudi_index_service.build.entry.column_facts import Extremes
from hudi_index_service.hudi.snapshot import BaseFile, FileSlice
from hudi_index_service.index.contract import StoredColumn
from hudi_index_service.optimizer.plan import Access, SlicePlan
from hudi_index_service.predicate import evaluate, negation_normal_form, parse_predicate
from hudi_index_service.predicate.expression import Predicate
from tests.optimizer.tables import serving_entry


def described(name: str, column: pa.ChunkedArray, distinct: int | None) -> StoredColumn:
    """A column's description in a manifest, as a build writes it."""
    extremes = Extremes()
    for chunk in column.chunks:
        extremes.add(chunk)
    return StoredColumn(
        name=name,
        type=str(column.type),
        fields=("keyword",),
        null_count=column.null_count,
        distinct=distinct,
        minimum=extremes.minimum,
        maximum=extremes.maximum,
    )


def slice_of(
    data: pa.Table,
    *,
    distinct: Mapping[str, int] | None = None,
    values: Mapping[str, pa.Scalar] | None = None,
    path: str = "part/file.parquet",
) -> SlicePlan:
    """The plan of a base file with these rows, whose columns are all in an entry."""
    columns = tuple(
        described(name, data.column(name), (distinct or {}).get(name)) for name in data.column_names
    )
    partition = path.rpartition("/")[0]
    file = BaseFile(path, partition, "file", "20260101000000000", 1)
    serving = serving_entry("lucene", file, len(data), columns)
    return SlicePlan(
        FileSlice(partition, "file", file), Access.INDEX, (serving,), values=values or {}
    )


def normal(where: str, schema: pa.Schema) -> Predicate:
    """The normal form of a where text, as rules and readers get it."""
    return negation_normal_form(parse_predicate(where, schema, time_zone="UTC"))


def count_where(predicate: Predicate, data: pa.Table) -> int:
    """How many rows the predicate is TRUE for."""
    truth = evaluate(predicate, data).fill_null(False)
    return int(np.count_nonzero(truth.to_numpy(zero_copy_only=False)))
