"""One table while it is written: steps, and states of it that are kept with Spark's answers.

Everything here runs under every Hudi release that the tests know, in a process of its own, and uses
nothing of the service: what is kept is the truth that the service is compared with.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

# Every one is asked of every state. The rows are those of `numbered_rows`.
PREDICATES = (
    "msg = 'Buying car 3'",
    "msg LIKE 'Buying%' AND amount < 60",
    "msg LIKE '%car 5' OR city = 'Zürich'",
    "city IS NULL",
    "city IN ('Aarau', 'Basel') AND NOT ok",
    "amount BETWEEN 30 AND 90",
    "amount >= 120 AND amount <> 123",
    "price = 12.50 OR price > 100",
    "rate > 1000",
    "rate = 0.0",
    "day >= DATE'2020-02-15' AND msg IS NOT NULL",
    "at < TIMESTAMP'2026-01-01 00:20:00'",
    "ts > 0",
    "ts = 0 AND id < '5'",
    "region = 'north' AND amount < 45",
    "dt = '2026/01 02' OR id = '7'",
    "dt LIKE '2026%' AND region <> 'north' AND city = 'Basel'",
    "amount < 0",
)

_COMPLETED = re.compile(r"([0-9]+)(?:_[0-9]+)?\.(commit|deltacommit|replacecommit)")
# What a service's own index folder must look like to Hudi: a file that no step may take away.
_WITNESS = Path(".hoodie", ".index", "lucene", "20260101000000000", "witness")

NONE, CLUSTER, COMPACT = "NONE", "CLUSTER", "COMPACT"


def numbered_rows(spark: SparkSession, start: int, stop: int, version: int = 0) -> DataFrame:
    """Rows for keys [start, stop). `amount` and `price` tell the version of a row, `ts` is it;
    `region` has two values, `dt` three, one of them with a slash and a space."""
    n = F.col("n")
    cities = F.array(*(F.lit(c) for c in ("Aarau", "Basel", "Chur", "Zürich", "")))
    return (
        spark.range(start, stop)
        .select(F.col("id").alias("n"))
        .select(
            n.cast("string").alias("id"),
            F.when(n % 11 != 10, F.concat(F.lit("Buying car "), (n % 7).cast("string"))).alias(
                "msg"
            ),
            F.when(n % 13 != 12, cities[(n % 5).cast("int")]).alias("city"),
            (n * 3 + version).alias("amount"),
            (n * 1.25 + version).cast("decimal(10,2)").alias("price"),
            F.when(n % 17 == 16, F.lit(float("nan")))
            .when(n % 19 == 18, F.lit(-0.0))
            .otherwise(n * 0.5)
            .alias("rate"),
            F.expr("date_add(DATE'2020-01-01', CAST(n % 90 AS INT))").alias("day"),
            F.timestamp_micros(F.lit(1767225600000000) + n * 60000001).alias("at"),
            (n % 3 == 0).alias("ok"),
            F.lit(version).cast("long").alias("ts"),
            F.when(n % 2 == 0, "north").otherwise("south east").alias("region"),
            F.when(n % 3 == 0, "2026-01-01")
            .when(n % 3 == 1, "2026/01 02")
            .otherwise("2026-01-03")
            .alias("dt"),
        )
    )


class Table:
    """A table being written below `folder`/name.

    Args:
        folder: Receives ``<name>/<state>/{table,rows,answers.json}``.
        workplace: Where the table lies while it is written.
        partition_columns: Columns that partition it, separated by commas; "" for none.
        options: Hudi write options besides the common ones.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        workplace: Path,
        name: str,
        table_type: str = "COPY_ON_WRITE",
        partition_columns: str = "",
        **options: str,
    ) -> None:
        self.spark = spark
        self.path = workplace / name
        self._kept = folder / name
        self._options = {
            "hoodie.table.name": name,
            "hoodie.datasource.write.table.type": table_type,
            "hoodie.table.type": table_type,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": partition_columns,
            "hoodie.datasource.write.keygenerator.class": _key_generator(partition_columns),
            # Releases 0.15.1 and 1.1.0 refuse one key column under this generator without it.
            "hoodie.write.complex.keygen.validation.enable": "false",
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.insert.shuffle.parallelism": "2",
            "hoodie.bulkinsert.shuffle.parallelism": "2",
            "hoodie.delete.shuffle.parallelism": "2",
            "hoodie.metadata.index.column.stats.enable": "false",
            "hoodie.compact.inline": "false",
            "hoodie.clustering.inline": "false",
            **options,
        }
        self._instants: dict[str, str] = {}

    def go_on_from(self, state: Path) -> None:
        """Begins with a state that another release's run has kept."""
        shutil.copytree(state / "table", self.path)
        self._place_witness()
        self._instants = json.loads((state / "answers.json").read_text())["instants"]

    def write(
        self,
        start: int,
        stop: int,
        version: int = 0,
        operation: str = "upsert",
        *,
        where: str = "true",
        inline: str = NONE,
        **options: str,
    ) -> None:
        """One Hudi write of `numbered_rows` that fulfil `where`.

        Args:
            inline: The table service that this write runs after it, if any.
            options: Further options of this write.
        """
        rows = numbered_rows(self.spark, start, stop, version).where(where).coalesce(1)
        (
            rows.write.format("hudi")
            .options(**{**self._options, **options})
            .option("hoodie.datasource.write.operation", operation)
            .mode("append")
            .save(str(self.path))
        )
        if not self._instants:
            self._place_witness()
        service_action = {CLUSTER: "replacecommit", COMPACT: "commit"}.get(inline)
        self._note({} if service_action is None else {service_action: inline}, inline)

    def delete_partition(self, partition: str) -> None:
        """Takes a partition's file groups away: `partition` is its path."""
        option = {"hoodie.datasource.write.partitions.to.delete": partition}
        self.write(0, 1, operation="delete_partition", **option)

    def cluster(self, op: str = "scheduleAndExecute") -> None:
        """Clusters: `op` is ``schedule``, ``execute`` or ``scheduleAndExecute``."""
        self._call(f"run_clustering(path => '{self.path}', op => '{op}')")
        self._note({"replacecommit": CLUSTER}, NONE if op == "schedule" else CLUSTER)

    def compact(self, op: str = "scheduleAndExecute") -> None:
        """Compacts, however few delta commits there are: `op` is ``schedule``, ``run``, or both."""
        options = "hoodie.compact.inline.max.delta.commits=1"
        self._call(f"run_compaction(op => '{op}', path => '{self.path}', options => '{options}')")
        self._note({"commit": COMPACT}, NONE if op == "schedule" else COMPACT)

    def _call(self, procedure: str) -> None:
        # Options of the session hold for the services that procedures run.
        for key, value in self._options.items():
            if key.startswith(("hoodie.clean", "hoodie.keep", "hoodie.metadata")):
                self.spark.conf.set(key, value)
        self.spark.sql(f"call {procedure}").collect()
        for key in self._options:
            if key.startswith(("hoodie.clean", "hoodie.keep", "hoodie.metadata")):
                self.spark.conf.unset(key)

    def _note(self, kinds: dict[str, str], expected: str) -> None:
        """Remembers what the new instants are; the step had to bring one of its service."""
        new = {k: v for k, v in self._completed().items() if k not in self._instants}
        noted = {requested: kinds.get(action, NONE) for requested, action in new.items()}
        assert expected == NONE or expected in noted.values(), f"{self.path}: no {expected}"
        self._instants.update(noted)

    def _completed(self) -> dict[str, str]:
        folder = self.path / ".hoodie" / "timeline"
        folder = folder if folder.is_dir() else folder.parent
        names = (_COMPLETED.fullmatch(file.name) for file in folder.iterdir())
        return {match[1]: match[2] for match in names if match}

    def _place_witness(self) -> None:
        witness = self.path / _WITNESS
        witness.parent.mkdir(parents=True)
        witness.write_text("stays")

    def keep(self, state: str) -> None:
        """Keeps the table as it is now under this name, with Spark's rows and answers."""
        assert (self.path / _WITNESS).read_text() == "stays", "Hudi touched the index folder"
        kept = self._kept / state
        shutil.copytree(self.path, kept / "table", ignore=shutil.ignore_patterns(".index"))
        rows = self._read()
        rows.coalesce(1).write.parquet(str(kept / "rows"))
        answers = rows.agg(
            *(
                F.sort_array(F.collect_list(F.when(F.expr(predicate), F.col("id")))).alias(
                    predicate
                )
                for predicate in PREDICATES
            )
        )
        content: dict[str, Any] = {
            "instants": self._instants,
            "active": sorted(self._completed()),
            "base_files": self._base_files(),
            "answers": answers.first().asDict(),  # type: ignore[union-attr]
        }
        (kept / "answers.json").write_text(json.dumps(content, ensure_ascii=False, indent=1))

    def _read(self, **options: str) -> DataFrame:
        # With data skipping on, Hudi 1.2.0 loses rows for LIKE 'prefix%'.
        reader = self.spark.read.format("hudi").option("hoodie.enable.data.skipping", "false")
        return reader.options(**options).load(str(self.path))

    def _base_files(self) -> list[str]:
        """The snapshot's base files by their paths in the table, which hold a row each at least."""
        read = self._read(**{"hoodie.datasource.query.type": "read_optimized"})
        names = read.select("_hoodie_partition_path", "_hoodie_file_name").distinct().collect()
        return sorted(f"{partition}/{name}".lstrip("/") for partition, name in names)


def _key_generator(partition_columns: str) -> str:
    number = len(partition_columns.split(",")) if partition_columns else 0
    name = {0: "Nonpartitioned", 1: "Simple"}.get(number, "Complex")
    return f"org.apache.hudi.keygen.{name}KeyGenerator"
