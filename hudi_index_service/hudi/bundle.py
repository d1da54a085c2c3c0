"""Hudi's bundle for Spark: a jar from a Maven repository, which no package brings."""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from hudi_index_service import config
from hudi_index_service.errors import ConfigInvalid

BUNDLE_VARIABLE = "HUDI_INDEX_HUDI_JAR"
"""The environment variable with the path of the bundle."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A jar by its Maven coordinates, and its SHA-256 in hexadecimal."""

    artifact: str
    version: str
    sha256: str
    group: str = "org.apache.hudi"

    @property
    def coordinates(self) -> str:
        """As Maven writes them."""
        return f"{self.group}:{self.artifact}:{self.version}"


_TESTED = {
    "2.12": Bundle(
        "hudi-spark3.5-bundle_2.12",
        "1.2.0",
        "cc79fba00822f3a6c3a860df99375c2e3d4a034d037dbf4213a4966a706a7676",
    ),
    "2.13": Bundle(
        "hudi-spark3.5-bundle_2.13",
        "1.1.1",
        "762f1a43d29e13ec210b9b0c187dc7ee548e49fc950a5f4703f072ac3de25365",
    ),
}


def tested_bundle() -> Bundle:
    """The release that is tested with the version of Scala of the Spark that a session would start,
    and that the demo downloads."""
    from hudi_index_spark import scala_of_spark

    return _TESTED.get(scala_of_spark(), _TESTED["2.12"])


def by_hand() -> str:
    """What to download instead, and where to name it: the end of a remedy."""
    bundle = tested_bundle().coordinates
    return f"{bundle} from a Maven repository and set {BUNDLE_VARIABLE} to its path"


def named_bundle() -> Path | None:
    """The jar that the variable names; None if it is not set.

    Raises:
        ConfigInvalid: the variable names no file.
    """
    named = os.environ.get(BUNDLE_VARIABLE)
    if not named:
        return None
    if not Path(named).is_file():
        raise ConfigInvalid(
            f"{BUNDLE_VARIABLE} is {named}, which is not a file.",
            remedy="Set it to the path of Hudi's bundle, or unset it.",
        )
    return Path(named)


def bundle_of_spark() -> Path | None:
    """A bundle among the jars of the Spark that a session would start: that of ``SPARK_HOME``, else
    PySpark's own; None if it has none."""
    if home := os.environ.get("SPARK_HOME"):
        jars = Path(home, "jars")
    else:
        pyspark = find_spec("pyspark")
        assert pyspark is not None, "PySpark is installed"
        assert pyspark.origin is not None, "it is a package"
        jars = Path(pyspark.origin).with_name("jars")
    return next(iter(sorted(jars.glob("hudi-spark*-bundle_*.jar"))), None)


def downloaded_bundle() -> Path:
    """Where the demo keeps the bundle that it downloads; it need not exist."""
    bundle = tested_bundle()
    return config.settings().cache_folder / "jars" / f"{bundle.artifact}-{bundle.version}.jar"


def how_to_get_it() -> str:
    """What to do where a session has no Hudi: a full sentence."""
    if downloaded_bundle().is_file():
        return f"The demo has downloaded it: export {BUNDLE_VARIABLE}={downloaded_bundle()}."
    packages = f"--conf spark.jars.packages={tested_bundle().coordinates}"
    return f"Download {by_hand()}, or pass {packages}."
