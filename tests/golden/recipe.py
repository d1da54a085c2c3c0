"""How golden tables are written: a recipe is a function that writes with Spark and keeps steps."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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
        rows: The rows that Spark read at each step.
        answers: Step and predicate → the rows for which Spark evaluates the predicate to TRUE.
    """

    spark: "SparkSession"
    path: Path
    folder: Path
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


Recipe = Callable[[Writing], None]

_recipes: dict[str, Recipe] = {}


def recipe(function: Recipe) -> Recipe:
    """Registers a function as the recipe of the golden table of the same name."""
    assert function.__name__ not in _recipes, f"two recipes are named {function.__name__}"
    _recipes[function.__name__] = function
    return function


def recipes() -> Mapping[str, Recipe]:
    """All recipes by name."""
    from tests.golden import recipes as folder

    for module in iter_modules(folder.__path__):
        import_module(f"{folder.__name__}.{module.name}")
    return _recipes


def write(spark: "SparkSession", name: str, folder: Path) -> Writing:
    """Writes a golden table from its recipe, with its steps in `folder`."""
    scratch = folder / "being_written"
    writing = Writing(spark, scratch / "table", folder)
    recipes()[name](writing)
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
