"""Selects partitions by a condition on the partition columns."""

from collections.abc import Sequence

import pyarrow as pa

from hudi_index_service.columns import root_column
from hudi_index_service.config import ReadSettings
from hudi_index_service.errors import PredicateInvalid, PredicateUnsupported, Remedy
from hudi_index_service.hudi.partition_path import PartitionPaths
from hudi_index_service.hudi.protocol import HudiTable
from hudi_index_service.predicate import evaluate, parse_predicate
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.predicate.text.lex import name_value, position, tokenize

_BY_PATH = Remedy(
    "Name partitions by path or pattern: build(partitions=…), `hudi-index build --partition`.",
    command="Name partitions by path or pattern: `hudi-index build --partition`.",
)


def partitions_where(
    table: HudiTable,
    where: str | None,
    *,
    time_zone: str,
    settings: ReadSettings | None = None,
) -> tuple[str, ...]:
    """The partitions with base files for which a condition holds, sorted; all without a condition.

    The folder for rows without a partition value holds rows with NULL and with an empty string; in
    both, Spark reads NULL.

    Args:
        where: A Spark SQL predicate on the table's partition columns.
        time_zone: The time zone of literals that name none.
        settings: The settings that limit the condition's length; None for the process's own.

    Raises:
        PredicateInvalid: the condition does not parse, or uses other columns.
        PredicateUnsupported: the condition is not supported here, or the partitions' paths do not
            contain the values of its columns.
        ColumnNotFound: the table has no such column.
        TableFeatureUnsupported: the table cannot be read completely here.
    """
    snapshot = table.snapshot()
    partitions = sorted({file.partition for file in snapshot.base_files()})
    if where is None:
        return tuple(partitions)
    predicate = parse_predicate(where, snapshot.schema, time_zone=time_zone, settings=settings)
    _refuse_others(where, predicate, table.partition_columns())
    paths = table.partition_paths()
    columns = sorted(predicate.columns())
    schema = pa.schema([snapshot.schema.field(name) for name in columns])
    return tuple(each for each in partitions if _holds(predicate, schema, each, paths))


def _refuse_others(where: str, predicate: Predicate, columns: Sequence[str]) -> None:
    others = predicate.columns() - set(columns)
    if not others:
        return
    roots = {root_column(each).lower() for each in others}
    token = next(
        each
        for each in tokenize(where)
        if each.kind in ("word", "quoted") and name_value(each).lower() in roots
    )
    names = ", ".join(columns)
    raise PredicateInvalid(
        f"Partition column expected at {position(where, token.start)} of the predicate, found "
        f"{token.text!r}.",
        remedy=f"Use only the partition columns: {names}."
        if names
        else "Leave the condition out: the table is not partitioned.",
    )


def _holds(predicate: Predicate, schema: pa.Schema, path: str, paths: PartitionPaths) -> bool:
    """Whether the predicate is TRUE of the values in a partition's path."""
    values = paths.values(path, schema)
    for name in schema.names:
        if name not in values:
            raise PredicateUnsupported(
                f"The path {path!r} does not contain the value of column {name}.", remedy=_BY_PATH
            )
    arrays = [pa.repeat(values[name], 1) for name in schema.names]
    table = pa.table([pa.nulls(1), *arrays], ["", *schema.names])
    return evaluate(predicate, table)[0].as_py() is True
