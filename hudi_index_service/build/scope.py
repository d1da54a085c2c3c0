"""What a build is limited to: the base files of an instant, the partitions of paths, patterns, or a
condition on the partition columns."""

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from urllib.parse import unquote

import pyarrow as pa

from hudi_index_service.columns import require_list, root_column
from hudi_index_service.config import ReadSettings
from hudi_index_service.errors import ConfigInvalid, PredicateInvalid, PredicateUnsupported, Remedy
from hudi_index_service.hudi.partition_path import PartitionPaths
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.predicate import evaluate, parse_predicate
from hudi_index_service.predicate.expression import Predicate
from hudi_index_service.predicate.text.lex import name_value, position, tokenize

_SHOWN = 10


def base_files_in_scope(
    table: HudiTable,
    base_files: Sequence[BaseFile],
    instant: str | None,
    partitions: Sequence[str] | None,
) -> list[BaseFile]:
    """The base files that the instant wrote, in the partitions; None for no limit.

    Raises:
        ConfigInvalid: the instant never completed, or a partition does not exist.
    """
    if instant is not None and not table.ever_completed(instant):
        raise ConfigInvalid(
            f"The table has no completed instant {instant!r}.",
            remedy="Give an instant's requested time, as in the names of base files.",
        )
    all_partitions = {file.partition for file in base_files}
    scope = (
        all_partitions if partitions is None else partitions_in_scope(all_partitions, partitions)
    )
    return [
        file
        for file in base_files
        if (instant is None or file.instant == instant) and file.partition in scope
    ]


def partitions_in_scope(partitions: Collection[str], selectors: Sequence[str]) -> frozenset[str]:
    """The requested partitions.

    Each of `selectors` is one of these:

    - a partition's path relative to the table, as on disk or with its ``%xx`` decoded
    - the path of a folder above partitions (``region=eu``)
    - a shell pattern (``*``, ``?``, ``[…]``) per folder (``region=*/dt=2026-01-*``)

    An existing path is never read as a pattern, whatever characters it contains.

    Args:
        partitions: The table's partitions with base files, "" for a table without partitions.

    Raises:
        ConfigInvalid: one of `selectors` matches no partition.
    """
    require_list(selectors, "partitions")
    selected: set[str] = set()
    for text in selectors:
        if not isinstance(text, str):
            raise ConfigInvalid(
                f"{text!r} is not a partition path.", remedy="Give paths or patterns as text."
            )
        selector = text.strip("/")
        matches = _matches(partitions, selector)
        if not matches:
            raise ConfigInvalid(
                f"The table has no base files in a partition {selector!r}.",
                remedy=f"Name one of its partitions: {_listing(partitions)}.",
            )
        selected |= matches
    return frozenset(selected)


def _matches(partitions: Collection[str], selector: str) -> set[str]:
    if selector in partitions:
        return {selector}
    parts = selector.split("/")
    decoded = {path for path in partitions if unquote(path) == selector}
    below = {path for path in partitions if path.split("/")[: len(parts)] == parts}
    return decoded or below or {path for path in partitions if _fits(path.split("/"), parts)}


def _fits(folders: list[str], patterns: list[str]) -> bool:
    """Whether the leading folders match the patterns one by one, as they are or decoded."""
    if len(folders) < len(patterns):
        return False
    return all(
        fnmatchcase(folder, pattern) or fnmatchcase(unquote(folder), pattern)
        for folder, pattern in zip(folders, patterns, strict=False)
    )


def _listing(partitions: Collection[str]) -> str:
    names = [repr(path) if path else "'' (not partitioned)" for path in sorted(partitions)]
    if len(names) > _SHOWN:
        return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
    return ", ".join(names) or "none yet"


BY_PATH = Remedy(
    "Name partitions by path or pattern: build(partitions=…), `hudi-index build --partition`.",
    command="Name partitions by path or pattern: `hudi-index build --partition`.",
)


def partitions_where(
    table: HudiTable, where: str | None, *, time_zone: str, settings: ReadSettings | None = None
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
                f"The path {path!r} does not contain the value of column {name}.", remedy=BY_PATH
            )
    arrays = [pa.repeat(values[name], 1) for name in schema.names]
    table = pa.table([pa.nulls(1), *arrays], ["", *schema.names])
    return evaluate(predicate, table)[0].as_py() is True
