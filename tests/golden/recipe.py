"""How golden tables are written: a recipe lists writes and services of Hudi, and what is kept."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests import hudi_tables
from tests.golden.table import pack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ANSWERS = pa.schema(
    {"step": pa.string(), "where": pa.string(), "rows": pa.list_(pa.int32())},
)


@dataclass
class Writing:
    """A golden table while its recipe writes it.

    Attributes:
        path: The table's path.
        folder: The folder of the kept steps.
        options: Of every write.
        rows: The rows that Spark read at each step.
        answers: Step and predicate → the rows for which Spark evaluates the predicate to TRUE.
    """

    spark: "SparkSession"
    path: Path
    folder: Path
    options: Mapping[str, str]
    rows: dict[str, pa.Table] = field(default_factory=dict)
    answers: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def keep(self, step: str = "written", predicates: Sequence[str] = ()) -> None:
        """Keeps the table in its current state, with its rows and Spark's answers to these
        predicates."""
        from hudi_index_service.hudi.spark import collected

        shutil.copytree(self.path, self.folder / step)
        frame = self.spark.read.format("hudi").load(str(self.path))
        columns = frame.columns
        flags = [
            f"coalesce({where}, false) AS `predicate {i}`" for i, where in enumerate(predicates)
        ]
        read = collected(_ordered(frame).selectExpr(*[f"`{name}`" for name in columns], *flags))
        self.rows[step] = read.select(columns)
        for i, where in enumerate(predicates):
            flag = read.column(len(columns) + i).to_numpy(zero_copy_only=False)
            self.answers[step, where] = np.flatnonzero(flag).tolist()

    def keep_if(self, step: str, predicates: Sequence[str]) -> None:
        """`keep`, if there is something to be kept."""
        if step or predicates:
            self.keep(step or "written", predicates)


Step = Callable[[Writing], object]


class Recipe:
    """How a golden table is written: Hudi's options of its writes, and what is done in turn. A
    table of which no step is kept is kept at the end, as ``written``."""

    module: str

    def __init__(self, options: Mapping[str, str], *steps: Step) -> None:
        self.options, self.steps = options, steps


def put(
    rows: "Callable[..., DataFrame]",
    *arguments: Any,
    operation: str = "bulk_insert",
    where: str = "",
    files: int = 0,
    options: Mapping[str, str] = MappingProxyType({}),
    keep: str = "",
    answers: Sequence[str] = (),
    **keywords: Any,
) -> Step:
    """A write of ``rows(spark, *arguments, **keywords)``.

    Args:
        where: Which of the rows; by default all.
        files: In how many partitions of the frame; by default as it is.
        options: More of Hudi's options.
        keep: The name under which the table is kept after that, by default ``written`` if there are
            predicates in `answers`, else not at all.
    """

    def step(table: Writing) -> None:
        frame = rows(table.spark, *arguments, **keywords)
        frame = frame.where(where) if where else frame
        frame = frame.coalesce(files) if files else frame
        hudi_tables.write(frame, table.path, {**table.options, **options}, operation)
        table.keep_if(keep, answers)

    return step


insert = partial(put, operation="insert")
upsert = partial(put, operation="upsert")
delete = partial(put, operation="delete")


def _service(
    run: Callable[..., object],
    op: str = "scheduleAndExecute",
    *,
    keep: str = "",
    answers: Sequence[str] = (),
) -> Step:
    def step(table: Writing) -> None:
        run(table.spark, table.path, op)
        table.keep_if(keep, answers)

    return step


cluster = partial(_service, hudi_tables.run_clustering)
compact = partial(_service, hudi_tables.run_compaction)


def numbers(spark: "SparkSession", end: int, *columns: str, slices: int | None = 1) -> "DataFrame":
    """Rows of `columns`, which are expressions over the number ``id``, in [0, end)."""
    return spark.range(0, end, 1, slices).selectExpr(*columns)


def recipes() -> Mapping[str, Recipe]:
    """All recipes by name: what is one in the modules of the folder ``recipes``."""
    from tests.golden import recipes as folder

    found: dict[str, Recipe] = {}
    for each in iter_modules(folder.__path__):
        module = import_module(f"{folder.__name__}.{each.name}")
        own = {name: it for name, it in vars(module).items() if isinstance(it, Recipe)}
        assert not found.keys() & own.keys(), f"two recipes are named {found.keys() & own.keys()}"
        for recipe in own.values():
            recipe.module = module.__name__
        found |= own
    return found


def write(spark: "SparkSession", name: str, folder: Path) -> Writing:
    """Writes a golden table from its recipe, with its steps in `folder`."""
    scratch = folder / "being_written"
    recipe = recipes()[name]
    writing = Writing(spark, scratch / "table", folder, recipe.options)
    for step in recipe.steps:
        step(writing)
    if not writing.rows:
        writing.keep()
    shutil.rmtree(scratch)
    (folder / "steps").write_text("".join(f"{step}\n" for step in writing.rows), "utf-8")
    return writing


def store(writing: Writing, name: str, tables: Path) -> None:
    """Puts a written table into the repository's folder of golden tables."""
    target = tables / name
    if target.exists():
        shutil.rmtree(target)
    pack(writing.folder, target / "table.tar.xz")
    for step, rows in writing.rows.items():
        rows_file = target / f"{step}.rows.parquet"
        pq.write_table(rows, rows_file, compression="zstd", compression_level=19)
    if writing.answers:
        steps, predicates = zip(*writing.answers, strict=True)
        answers = pa.table([steps, predicates, list(writing.answers.values())], schema=_ANSWERS)
        pq.write_table(answers, target / "answers.parquet", compression="zstd")


def _ordered(frame: "DataFrame") -> "DataFrame":
    """In the same order in every run; unordered if the table has none of Hudi's own columns."""
    own = ("_hoodie_partition_path", "_hoodie_record_key", "_hoodie_commit_seqno")
    return frame.orderBy(*own) if set(own) <= set(frame.columns) else frame
