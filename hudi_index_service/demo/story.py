"""The demo's acts, from the first write to the cleaner."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.table import Table
from rich.tree import Tree

from hudi_index_service import Column, IndexedTable, IndexHook, open_table
from hudi_index_service.config import settings
from hudi_index_service.demo.spark import DemoSpark
from hudi_index_service.doctor.installation import sparks_python
from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.files import SERVICE_SETTINGS, WRITE_OPTIONS
from hudi_index_service.hudi.properties import parse_properties
from hudi_index_service.wording import counted

_NO_SERVICES = {
    "hoodie.clustering.inline": "false",
    "hoodie.write.commit.callback.on": "false",
}
_NO_METADATA_TABLE = {"hoodie.metadata.enable": "false"}
"""For the small tables: Hudi's metadata table would take half of the time of each write."""
_COMPACT_EACH = {"hoodie.compact.inline.max.delta.commits": "1"}
_QUERY_REPEATS = 3
_TREE_LINES = 14


@dataclass
class Story:
    """One run of the demo.

    Attributes:
        differences: Queries whose answer differed from plain Spark's; any of them fails the demo.
    """

    console: Console
    folder: Path
    spark: DemoSpark
    write_config: Mapping[str, str]
    rows: int
    differences: list[str] = field(default_factory=list)

    def tell(self) -> None:
        """Runs all acts in order."""
        self._rfc_table()
        self._large_table()
        self._merge_on_read_table()

    # --- the acts ------------------------------------------------------------------------------

    def _rfc_table(self) -> None:
        self._title("1. RFC-51's own table: three messages")
        path = self.folder / "rfc"
        messages = [
            ("1", "Summer is coming", "UserA"),
            ("2", "Buying a new car", "UserA"),
            ("3", "Buying a new home", "UserB"),
        ]
        rows = self.spark.session.createDataFrame(messages, "id string, msg string, sender string")
        with self._step("write the table"):
            options = _table_options("rfc") | _NO_METADATA_TABLE
            options["hoodie.datasource.write.precombine.field"] = "id"
            self.spark.write(rows.coalesce(1), path, options, "bulk_insert")
        table = open_table(path, spark=self.spark.session)
        table.create_index("messages", ["msg", "sender"])
        with self._step("cluster it"):
            self.spark.call("run_clustering", path, _NO_METADATA_TABLE)
        self._build(table)
        where = "msg LIKE 'Buying%' AND sender = 'UserA'"
        scan = table.scan(where, columns=["id", "msg", "sender"], use_index="require")
        for base_file, row_ids in scan.row_ids().items():
            numbers = ", ".join(str(row_id + 1) for row_id in row_ids)
            self._say(f"  row {numbers} of {base_file}: {scan.to_arrow().to_pylist()}")
        matches = [(row["id"], row["msg"]) for row in scan.to_arrow().to_pylist()]
        if matches != [("2", "Buying a new car")]:
            self.differences.append(f"{where}: expected row 2 alone, found {matches}")
        self._compare(table, path, [where], ["id", "msg", "sender"])

    def _large_table(self) -> None:
        self._title(f"2. A partitioned copy-on-write table of {self.rows:,} rows")
        path = self.folder / "messages"
        options = {
            **_table_options("messages", partition_column="day"),
            **self.write_config,
            # Nothing here reads Hudi's column statistics, which each write would update.
            "hoodie.metadata.index.column.stats.enable": "false",
            # Keep no old file versions, since the cleaner's act follows immediately.
            "hoodie.clean.commits.retained": "1",
        }
        with self._step("bulk-insert the rows"):
            self.spark.write(
                self._messages(0, self.rows), path, {**options, **_NO_SERVICES}, "bulk_insert"
            )
        table = open_table(path, spark=self.spark.session)
        table.create_index(
            "messages",
            ["sender", "city", "amount", Column(name="msg", options={"analyzer": "standard"})],
        )
        self._write_with_hook(table, path, options)
        self._show_tree(path)
        self._compare(
            table,
            path,
            [
                "sender = 'User4242'",
                "sender = 'User4242' AND msg LIKE 'buying%'",
                "amount BETWEEN 500000 AND 500010",
                "city = 'city7' AND amount < 1000",
                "sender IN ('User1', 'User2') OR amount IS NULL AND city = 'city5'",
            ],
            ["id", "msg", "sender", "city", "amount"],
        )
        self._say(str(table.scan("sender = 'User4242'").explain(analyze=True)))
        self._clean_after_upserts(table, path, options)

    def _write_with_hook(self, table: IndexedTable, path: Path, options: Mapping[str, str]) -> None:
        """Writes with inline clustering; Hudi calls the hook, which builds."""
        with (
            self._step("insert with inline clustering; Hudi's callback wakes the hook"),
            IndexHook([str(path)], spark=self.spark.session, wait=120) as hook,
        ):
            more = self._messages(self.rows, self.rows + 1000)
            self.spark.write(more, path, {**options, **hook.write_options(str(path))}, "insert")
        for status in table.status():
            self._say(
                f"  index {status.definition.name}: {status.covered} of {status.base_files} "
                f"base files covered, {status.index_bytes:,} bytes"
            )
            if status.covered == 0:
                self.differences.append("the hook built no entry")

    def _clean_after_upserts(
        self, table: IndexedTable, path: Path, options: Mapping[str, str]
    ) -> None:
        upserts = {**options, **_NO_SERVICES}
        with self._step("upsert into one partition twice: Hudi's cleaner removes old base files"):
            for start in (0, 40):
                updates = self._messages(start, start + 40, bump=1).where("day = 'day0'")
                self.spark.write(updates, path, upserts, "upsert")
        with self._step("archive the older instants"):
            self.spark.archive(path)
        table.retain("instant")
        self._clean(table, "would remove by instant", dry_run=True)
        table.retain("file-slice")
        self._clean(table, "removed")
        self._build(table, strategy="all")
        self._compare(table, path, ["sender = 'User4242'"], ["id", "msg", "sender", "amount"])

    def _clean(self, table: IndexedTable, what: str, *, dry_run: bool = False) -> None:
        cleaning = table.clean(dry_run=dry_run)
        reasons = sorted({each.reason for each in cleaning.removals})
        self._say(
            f"  index cleaner: {what} {counted(len(cleaning.removals), 'file')} "
            f"({cleaning.bytes:,} bytes): {'; '.join(reasons)}"
        )
        if dry_run != ("its instant has left the active timeline" in reasons) or not reasons:
            self.differences.append(f"the cleaner {what} other entries than expected: {reasons}")

    def _merge_on_read_table(self) -> None:
        self._title("3. A merge-on-read table with log files")
        path = self.folder / "updates"
        options = _table_options("updates", "MERGE_ON_READ", partition_column="day")
        options |= _NO_METADATA_TABLE
        rows = max(self.rows // 10, 1000)
        with self._step(f"insert {rows:,} rows, update some: log files"):
            self.spark.write(self._messages(0, rows).coalesce(1), path, options, "bulk_insert")
            self.spark.write(self._messages(0, 100, bump=1), path, options, "upsert")
        table = open_table(path, spark=self.spark.session)
        table.create_index("messages", ["sender", "amount"])
        with self._step("compact"):
            self.spark.call("run_compaction", path, _NO_METADATA_TABLE | _COMPACT_EACH)
        self._build(table)
        with self._step("update one partition again: log files above an indexed base file"):
            updates = self._messages(0, 100, bump=2).where("day = 'day0'")
            self.spark.write(updates, path, options, "upsert")
        self._compare(
            table,
            path,
            ["sender LIKE 'User42%'", "amount BETWEEN 1000 AND 2000"],
            ["id", "msg", "sender", "amount", "ts"],
        )
        self._say(str(table.scan("sender LIKE 'User42%'").explain(analyze=True)))

    # --- parts of the acts ---------------------------------------------------------------------

    def _messages(self, start: int, end: int, *, bump: int = 0) -> Any:
        words = "array('buying','selling','new','old','car','home','boat','summer')"
        # Pseudo-random but the same in every run: the hash of the id and a constant.
        number = "pmod(xxhash64(id, {}), {})"
        return self.spark.session.range(start, end, 1, 4).selectExpr(
            "cast(id as string) AS id",
            "concat_ws(' ', "
            + ", ".join(f"element_at({words}, int({number.format(k, 8)}) + 1)" for k in range(5))
            + f", concat('tag', {number.format(9, 500_000)})) AS msg",
            f"concat('User', {number.format(20, 100_000)}) AS sender",
            f"concat('city', {number.format(21, 300)}) AS city",
            f"if(id % 1000 = 7, null, {number.format(22, 1_000_000)} + {bump}) AS amount",
            f"cast({bump} AS bigint) AS ts",
            "concat('day', id % 4) AS day",
        )

    def _build(self, table: IndexedTable, strategy: str = "incremental") -> None:
        with Progress(
            TextColumn("  {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            Elapsed(),
            console=self.console,
        ) as bar:
            task = bar.add_task("build the index", total=None)
            build = table.build(
                strategy="all" if strategy == "all" else "incremental",
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
        build.raise_for_failures()
        if not build.built:
            self.differences.append(f"{table.name}: nothing was built")
        self._say(f"  {counted(len(build.built), 'entry')} built in {build.seconds:.1f} s")

    def _compare(
        self, table: IndexedTable, path: Path, queries: list[str], columns: list[str]
    ) -> None:
        """Runs every query with plain Spark and through the index, and prints both."""
        comparison = Table("query", "rows", "Spark", "index", "Spark read", "index read", "equal")
        for where in queries:
            with self._step(where):
                by_spark = self.spark.answer(path, where, columns)
                seconds = []
                for _ in range(_QUERY_REPEATS):
                    started = perf_counter()
                    scan = table.scan(where, columns=columns)
                    result = scan.to_arrow()
                    seconds.append(perf_counter() - started)
            statistics = scan.statistics
            rows = sorted((tuple(row.values()) for row in result.to_pylist()), key=repr)
            equal = rows == by_spark.rows and scan.count() == len(rows)
            if not equal:
                self.differences.append(f"{table.name}: {where}")
            comparison.add_row(
                where,
                f"{len(rows):,}",
                f"{by_spark.seconds * 1000:,.0f} ms",
                f"{sorted(seconds)[len(seconds) // 2] * 1000:,.1f} ms",
                f"{by_spark.bytes_read:,}",
                f"{statistics.bytes_read:,}" if statistics is not None else "",
                "[green]yes[/]" if equal else "[red]NO[/]",
            )
        self.console.print(comparison)

    def _show_tree(self, path: Path) -> None:
        root = path / ".hoodie" / ".index"
        tree = Tree(f"{path.name}/.hoodie/.index")
        nodes = {root: tree}
        files = sorted(p for p in root.rglob("*") if not p.name.endswith(".crc"))
        for file in files[:_TREE_LINES]:
            label = f"{file.name}  {file.stat().st_size:,} bytes" if file.is_file() else file.name
            nodes[file] = nodes[file.parent].add(label)
        if len(files) > _TREE_LINES:
            tree.add(f"… and {len(files) - _TREE_LINES} more")
        self.console.print(tree)

    def _title(self, text: str) -> None:
        self.console.rule(f"[bold]{text}", align="left")

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    @contextmanager
    def _step(self, text: str) -> Iterator[None]:
        """Shows the step while it runs, and its duration afterwards."""
        started = perf_counter()
        if self.console.is_terminal:
            with Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                Elapsed(),
                console=self.console,
                transient=True,
            ) as bar:
                bar.add_task(text, total=None)
                yield
        else:
            yield
        self._say(f"  {text}: {perf_counter() - started:.1f} s")


def run_demo(console: Console, folder: Path | None, rows: int) -> bool:
    """Runs the demo; False if any answer differed from plain Spark's.

    Args:
        folder: Folder for the tables, which is kept; None for a temporary folder.
        rows: Number of rows of the large table.

    Raises:
        ConfigInvalid: the folder exists and is not empty, PySpark does not run on this Python, or
            Hudi's bundle is not to be had.
    """
    for wrong in sparks_python():
        raise ConfigInvalid(f"{wrong.name}: {wrong.detail}", remedy=wrong.remedy)
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise ConfigInvalid(f"{folder} is not empty.", remedy="Name a new folder for the demo.")
    # As an operator would set it: every part of the service in this process reads this variable.
    os.environ.setdefault("HUDI_INDEX_CONFIG", str(SERVICE_SETTINGS))
    settings.cache_clear()
    place = folder or Path(tempfile.mkdtemp(prefix="hudi-index-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    started = perf_counter()
    console.print(f"Starting Spark; tables go to {place}.", highlight=False)
    try:
        spark = DemoSpark(place.absolute())
        try:
            story = Story(
                console, place.absolute(), spark, parse_properties(WRITE_OPTIONS.read_bytes()), rows
            )
            story.tell()
        finally:
            spark.stop()
    finally:
        if folder is None:
            shutil.rmtree(place)
    for difference in story.differences:
        console.print(f"[red]DIFFERENT[/] {difference}", highlight=False)
    if not story.differences:
        console.print(
            f"All answers equal plain Spark's. {perf_counter() - started:.0f} s in total.\n"
            "Next, for a table of your own: hudi-index init <table>",
            highlight=False,
        )
    return not story.differences


def _table_options(
    name: str, table_type: str = "COPY_ON_WRITE", *, partition_column: str = ""
) -> dict[str, str]:
    options = {
        "hoodie.table.name": name,
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": partition_column,
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.insert.shuffle.parallelism": "2",
        "hoodie.bulkinsert.shuffle.parallelism": "4",
    }
    if not partition_column:
        options["hoodie.datasource.write.keygenerator.class"] = (
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
        )
    return options
