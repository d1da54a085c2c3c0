"""The Spark session of the tests: Hudi's extensions, UTC, two cores."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from dev.jars import bundle_path
from hudi_index_service.hudi.spark import local_session

_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    # Dates before 1582 as they are, in today's calendar.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    # Without it, Hudi's upserts cannot write an array that has a NULL.
    "spark.hadoop.parquet.avro.write-old-list-structure": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
}


PATIENT = {
    # Machines under test are busy.
    "spark.hudi.index.decideMillis": "60000",
    "spark.hudi.index.readMillis": "120000",
    "hoodie.enable.data.skipping": "false",
    "spark.sql.session.timeZone": "UTC",
}
"""Settings of sessions whose queries may use the index."""


@contextmanager
def spark_session(warehouse: Path) -> Iterator[SparkSession]:
    """The process's Spark session, stopped at the end of the block."""
    session = local_session(
        "hudi-index-tests",
        warehouse,
        cores=2,
        memory="2g",
        bundle=bundle_path(),
        settings=_SETTINGS,
    )
    # Hudi 1.2.0 loses rows of LIKE 'prefix%' when it skips files by column statistics; what the
    # tests compare with has to be right.
    session.conf.set("hoodie.enable.data.skipping", "false")
    # What they compare with is Spark's own answer, whatever sessions beside it are enabled.
    session.conf.set("spark.hudi.index.enabled", "false")
    yield session
    session.stop()
