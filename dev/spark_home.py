"""A Spark with Scala 2.13: `python -m dev.spark_home` puts it together, and prints where it lies.

PySpark comes with jars for Scala 2.12. Those that depend on Scala are replaced by the pinned ones
for 2.13, fetched once into the user's cache; all else is PySpark's own, by links. It lacks Hive,
machine learning and streams of RDDs, of which no jars for 2.13 are at hand.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from dev.jars import fetch_all, pinned
from dev.paths import ROOT

NAME = "spark-scala-2.13"
"""The folder's name in the virtual environment, which has the files it links to."""

PINS = ROOT / "native" / "spark_rule" / "scala-2.13-jars.txt"
OF_SCALA = re.compile(r".+_2\.12-.+|scala-(compiler|library|reflect)-.+")
MADE_OF = "made-of"


def spark_home() -> Path:
    """The folder for ``SPARK_HOME``, in the running virtual environment; makes it if it is absent
    or made of other jars.

    Raises:
        JarRefused: a fetched jar is not the pinned one.
    """
    spec = find_spec("pyspark")
    assert spec is not None, "the set-up installs PySpark"
    assert spec.origin is not None, "it is a package"
    pyspark = Path(spec.origin).parent
    own = sorted((pyspark / "jars").glob("*.jar"))
    inputs = hashlib.sha256(PINS.read_bytes() + "\n".join(map(str, own)).encode()).hexdigest()
    home = Path(sys.prefix, NAME)
    made_of = home / MADE_OF
    if not made_of.is_file() or made_of.read_text() != inputs:
        shutil.rmtree(home, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
            draft = Path(scratch, NAME)
            (draft / "jars").mkdir(parents=True)
            fetched = fetch_all(pinned(PINS), say=lambda line: print(line, file=sys.stderr))
            for jar in (*fetched, *(each for each in own if not OF_SCALA.fullmatch(each.name))):
                (draft / "jars" / jar.name).symlink_to(jar)
            for folder in ("bin", "python"):
                (draft / folder).symlink_to(pyspark / folder)
            (draft / MADE_OF).write_text(inputs)
            draft.rename(home)
    return home


if __name__ == "__main__":
    print(spark_home())
