"""Hudi's bundle for Spark: a jar from a Maven repository, which no package brings."""

import os
from importlib.util import find_spec
from pathlib import Path

from hudi_index_service import config
from hudi_index_service.errors import ConfigInvalid

BUNDLE_VARIABLE = "HUDI_INDEX_HUDI_JAR"
"""The environment variable with the path of the bundle."""

GROUP, ARTIFACT, VERSION = "org.apache.hudi", "hudi-spark3.5-bundle_2.12", "1.2.0"
"""The release that is tested, and that the demo downloads."""

_COORDINATES = f"{GROUP}:{ARTIFACT}:{VERSION}"

BY_HAND = f"{_COORDINATES} from a Maven repository and set {BUNDLE_VARIABLE} to its path"
"""What to download instead, and where to name it: the end of a remedy."""


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
    return config.settings().cache_folder / "jars" / f"{ARTIFACT}-{VERSION}.jar"


def how_to_get_it() -> str:
    """What to do where a session has no Hudi: a full sentence."""
    if downloaded_bundle().is_file():
        return f"The demo has downloaded it: export {BUNDLE_VARIABLE}={downloaded_bundle()}."
    return f"Download {BY_HAND}, or pass --conf spark.jars.packages={_COORDINATES}."
