"""Rewrites golden tables: ``python -m tests.golden`` for all, or with the names of some."""

import argparse
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.golden import inputs, recipe
from tests.golden.table import TABLES
from tests.spark_session import spark_session


def main() -> None:
    known = recipe.recipes()
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help="a recipe's name; all by default")
    names = parser.parse_args().names or list(known)
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no recipe is named {', '.join(unknown)}; there are {', '.join(known)}")
    with TemporaryDirectory() as scratch, spark_session(Path(scratch, "warehouse")) as spark:
        for number, name in enumerate(names, 1):
            folder = Path(scratch, name)
            recipe.store(recipe.write(spark, name, folder), name, TABLES)
            shutil.rmtree(folder)
            size = sum(file.stat().st_size for file in (TABLES / name).iterdir())
            print(f"{number:3} of {len(names)}  {name}: {size / 1024:.0f} KiB", flush=True)
    inputs.record(names)
    if len(names) == len(known):
        for stale in {each.name for each in TABLES.iterdir()} - set(known):
            shutil.rmtree(TABLES / stale)
            print(f"removed {stale}: no recipe has that name", flush=True)


if __name__ == "__main__":
    main()
