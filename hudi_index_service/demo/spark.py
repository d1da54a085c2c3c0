"""The demo's Spark session with Hudi's bundle, which is found or downloaded, and the measurements
of plain Spark."""

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.hudi.bundle import (
    bundle_of_spark,
    by_hand,
    downloaded_bundle,
    named_bundle,
    tested_bundle,
)
from hudi_index_service.hudi.spark import local_session
from hudi_index_service.sql.call import Argument, call_statement


def hudi_bundle() -> Path:
    """The jar that ``HUDI_INDEX_HUDI_JAR`` names; else one among Spark's own jars; else the pinned
    release, which is downloaded once into the folder for copies.

    Raises:
        ConfigInvalid: the variable names no file; the package jgo is missing; the jar cannot be
            downloaded, or is not the pinned one.
    """
    if found := named_bundle() or bundle_of_spark():
        return found
    jar = downloaded_bundle()
    if not _is_pinned(jar):
        jar.parent.mkdir(parents=True, exist_ok=True)
        _download(jar)
    return jar


def _download(jar: Path) -> None:
    """Downloads the pinned jar to this path."""
    try:
        from jgo.maven import MavenContext
    except ImportError as error:
        raise ConfigInvalid(
            "Hudi's bundle for Spark is not on this machine, and the package jgo, which downloads "
            "it, is not installed.",
            remedy=f"pip install 'hudi-index-service[demo]'; or download {by_hand()}.",
        ) from error
    with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
        try:
            maven = MavenContext(repo_cache=Path(scratch))
            tested = tested_bundle()
            component = maven.project(tested.group, tested.artifact).at_version(tested.version)
            download = Path(component.artifact().resolve())
        except OSError as error:  # the errors of its HTTP client derive from it
            raise ConfigInvalid(
                f"Hudi's bundle for Spark cannot be downloaded: {error}.",
                remedy=f"Try again where the network allows it; or download {by_hand()}.",
            ) from error
        if not _is_pinned(download):
            raise ConfigInvalid(
                f"The downloaded {jar.name} does not have the SHA-256 {tested.sha256}.",
                remedy=f"Try again; or download {by_hand()}.",
            )
        download.replace(jar)


def _is_pinned(jar: Path) -> bool:
    if not jar.is_file():
        return False
    with jar.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == tested_bundle().sha256


@dataclass(frozen=True, slots=True)
class SparkAnswer:
    """Plain Spark's answer: rows as tuples of the requested columns, sorted by their text; seconds;
    bytes that its tasks read from files."""

    rows: list[tuple[Any, ...]]
    seconds: float
    bytes_read: int


class DemoSpark:
    """A local Spark session with Hudi."""

    def __init__(self, folder: Path) -> None:
        self.session = local_session(
            "hudi-index-demo",
            folder / "warehouse",
            cores=2,
            memory="3g",
            bundle=str(hudi_bundle()),
            settings={
                "spark.sql.shuffle.partitions": "2",
                "spark.ui.showConsoleProgress": "false",
                # A minute is too short for Java's optimizing compiler: all steps, plain queries
                # too, are faster without it.
                "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            },
        )
        # Hudi 1.2.0 loses rows of LIKE 'prefix%' when it skips files by column statistics.
        self.session.conf.set("hoodie.enable.data.skipping", "false")

    def write(
        self, rows: DataFrame, table: Path, options: Mapping[str, str], operation: str
    ) -> None:
        """Runs one Hudi write."""
        (
            rows.write.format("hudi")
            .options(**options)
            .option("hoodie.datasource.write.operation", operation)
            .mode("append")
            .save(str(table))
        )

    def call(self, procedure: str, table: Path, options: Mapping[str, str]) -> None:
        """Runs a table service: ``run_clustering`` or ``run_compaction``."""
        listed = ",".join(f"{name}={value}" for name, value in options.items())
        self._call(procedure, table, op="scheduleAndExecute", options=listed)

    def archive(self, table: Path) -> None:
        """Archives all but the latest instants of the table."""
        commits = {"min_commits": 2, "max_commits": 3, "retain_commits": 1}
        self._call("archive_commits", table, **commits, enable_metadata=False)

    def _call(self, procedure: str, table: Path, **arguments: Argument) -> None:
        self.session.sql(call_statement(procedure, {"path": str(table), **arguments})).collect()

    def answer(self, table: Path, where: str, columns: list[str]) -> SparkAnswer:
        """Runs the query with plain Spark on the Hudi table."""
        before = self._bytes_read()
        started = perf_counter()
        frame = self.session.read.format("hudi").load(str(table)).where(where).select(*columns)
        rows = sorted((tuple(row) for row in frame.collect()), key=repr)
        seconds = perf_counter() - started
        return SparkAnswer(rows, seconds, self._bytes_read() - before)

    def _bytes_read(self) -> int:
        """Bytes read so far from local files by this session's JVM, which runs driver and tasks."""
        gateway: Any = self.session.sparkContext._jvm
        statistics = gateway.org.apache.hadoop.fs.FileSystem.getAllStatistics()
        return sum(int(each.getBytesRead()) for each in statistics)

    def stop(self) -> None:
        """Ends the session."""
        self.session.stop()
