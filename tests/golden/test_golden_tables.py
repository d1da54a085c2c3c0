"""Golden tables equal what Spark and Hudi write today, with the same answers: those are rewritten
whose inputs have changed since that was last checked, and one of each module of recipes."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.golden import inputs, recipe
from tests.golden.table import TABLES, Golden, layout
from tests.same_rows import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_KIB = 15 * 1024


def rewritten() -> list[str]:
    """The names of the tables to be rewritten."""
    checked = inputs.checked()
    of_modules = {each.module: name for name, each in recipe.recipes().items()}
    changed = [name for name, digest in inputs.digests().items() if checked.get(name) != digest]
    return sorted({*changed, *of_modules.values()})


@pytest.mark.parametrize("name", rewritten())
def test_rewritten_golden_table_is_the_same(
    name: str, spark: "SparkSession", golden: Golden, tmp_path: Path
) -> None:
    kept = golden(name)
    writing = recipe.write(spark, name, tmp_path)
    assert list(writing.rows) == kept.steps
    for step, rows in writing.rows.items():
        assert layout(writing.folder / step) == layout(kept.folder / step), step
        assert_same_rows(_data(rows), _data(kept.rows(step)))
    for (step, where), rows in writing.answers.items():
        answer = writing.rows[step].take(pa.array(rows, pa.int32()))
        assert_same_rows(_data(answer), _data(kept.answer(where, step)))


def test_tables_match_the_recipes_and_are_small() -> None:
    assert {folder.name for folder in TABLES.iterdir()} == set(recipe.recipes())
    size = sum(file.stat().st_size for file in TABLES.rglob("*") if file.is_file())
    assert size < MOST_KIB * 1024


def _data(rows: pa.Table) -> pa.Table:
    """The columns other than Hudi's own, which contain times and numbers of writes. Texts are
    compared as bytes, since not all are UTF-8."""
    data = rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")])
    fields = (f.with_type(pa.binary()) if pa.types.is_string(f.type) else f for f in data.schema)
    return data.cast(pa.schema(fields))
