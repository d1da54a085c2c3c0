"""The tables that every Hudi release writes, and how each came to be."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tests.versions.writing.table import CLUSTER, COMPACT, Table


class NewTable(Protocol):
    """Begins a table: see `Table`."""

    def __call__(
        self,
        name: str,
        table_type: str = "COPY_ON_WRITE",
        partition_columns: str = "",
        **options: str,
    ) -> Table: ...


SMALL_FILES_STAY = {"hoodie.parquet.small.file.limit": "0"}
HIVE_STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
NO_METADATA_TABLE = {"hoodie.metadata.enable": "false"}
FEW_COMMITS = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
MERGE_ON_READ = "MERGE_ON_READ"


def copy_on_write(new: NewTable) -> None:
    """Clustered, upserted, clustered again; not partitioned."""
    table = new("copy_on_write", **SMALL_FILES_STAY)
    table.write(0, 40, operation="insert")
    table.write(40, 80, operation="insert")
    table.keep("written")
    table.cluster("schedule")
    table.keep("clustering_pending")
    table.cluster("execute")
    table.keep("clustered")
    table.write(0, 10, 1)
    table.write(80, 90, 1, "insert")
    table.keep("upserted")
    table.cluster()
    table.keep("clustered_again")


def clustered_inline(new: NewTable) -> None:
    """Clustered by the write itself, every second commit."""
    table = new(
        "clustered_inline",
        partition_columns="region",
        **NO_METADATA_TABLE,
        **SMALL_FILES_STAY,
        **{"hoodie.clustering.inline.max.commits": "2"},
    )
    table.write(0, 40, operation="insert")
    table.keep("written")
    inline = {"hoodie.clustering.inline": "true"}
    table.write(40, 60, operation="insert", inline=CLUSTER, **inline)
    table.keep("clustered")
    table.write(0, 5, 1, where="region = 'north'")
    table.keep("upserted")


def one_partition_column(new: NewTable) -> None:
    """Hive style, encoded; clustered, a partition overwritten, another deleted."""
    table = new("one_partition_column", partition_columns="dt", **HIVE_STYLE, **ENCODED)
    table.write(0, 60)
    table.keep("written")
    table.cluster()
    table.keep("clustered")
    table.write(0, 30, 1, "insert_overwrite", where="dt = '2026/01 02'")
    table.keep("overwritten")
    table.delete_partition("dt=2026-01-03")
    table.keep("partition_deleted")
    table.write(10, 20, 2)
    table.keep("upserted")


def two_partition_columns(new: NewTable) -> None:
    """Plain paths, encoded; clustered and upserted."""
    table = new("two_partition_columns", partition_columns="region,dt", **ENCODED)
    table.write(0, 60)
    table.keep("written")
    table.cluster()
    table.keep("clustered")
    table.write(0, 12, 1, where="region = 'north'")
    table.keep("upserted")


def archived(new: NewTable) -> None:
    """Clustered; then so many upserts to one partition that the cleaner removed its clustered file
    and the clustering was archived, while the other partition's clustered file lives on."""
    table = new("archived", partition_columns="region", **FEW_COMMITS)
    table.write(0, 40)
    table.keep("written")
    table.cluster()
    table.keep("clustered")
    for version in range(1, 7):
        table.write(0, 40, version, where="region = 'north'")
    table.keep("archived")


def merge_on_read(new: NewTable) -> None:
    """Compacted, with later log files, then with base files that delta commits add."""
    table = new("merge_on_read", MERGE_ON_READ, **SMALL_FILES_STAY)
    table.write(0, 40)
    table.keep("written")
    table.write(0, 10, 1)
    table.keep("logged")
    table.compact()
    table.keep("compacted")
    table.write(5, 15, 2)
    table.write(3, 5, 3, "delete")
    table.keep("logged_again")
    table.write(40, 60, 2)
    table.keep("base_file_added")
    table.compact()
    table.keep("compacted_again")


def compaction_pending(new: NewTable) -> None:
    """A compaction that is scheduled while delta commits go on."""
    table = new("compaction_pending", MERGE_ON_READ, "region", **HIVE_STYLE)
    table.write(0, 40)
    table.write(0, 10, 1)
    table.keep("logged")
    table.compact("schedule")
    table.keep("scheduled")
    table.write(5, 15, 2)
    table.keep("pending")
    table.compact("run")
    table.keep("compacted")


def compacted_inline(new: NewTable) -> None:
    """Compacted by the write itself, until that compaction is archived."""
    table = new("compacted_inline", MERGE_ON_READ, "region", **NO_METADATA_TABLE, **FEW_COMMITS)
    table.write(0, 40)
    table.keep("written")
    inline = {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "2",
    }
    table.write(0, 40, 1, inline=COMPACT, **inline)
    table.keep("compacted")
    for version in range(2, 8):
        table.write(0, 10, version, where="region = 'north'")
        table.compact()
    table.keep("archived")


def merge_on_read_clustered(new: NewTable) -> None:
    """Log files merged by clustering instead of compaction."""
    table = new("merge_on_read_clustered", MERGE_ON_READ, "dt", **ENCODED)
    table.write(0, 40)
    table.write(0, 10, 1)
    table.keep("logged")
    table.cluster()
    table.keep("clustered")
    table.write(5, 15, 2)
    table.keep("logged_again")


def log_files_alone(new: NewTable) -> None:
    """An index of keys that finds rows in log files too lets new rows go there first; base files
    come by compaction."""
    table = new("log_files_alone", MERGE_ON_READ, **{"hoodie.index.type": "INMEMORY"})
    table.write(0, 40)
    table.keep("written")
    table.compact()
    table.keep("compacted")
    table.write(0, 5, 1)
    table.keep("logged")


def to_be_upgraded(new: NewTable) -> None:
    """What a later release upgrades in place: see `upgrade`."""
    table = new("upgraded_copy_on_write", partition_columns="region", **SMALL_FILES_STAY)
    table.write(0, 40)
    table.keep("written")
    table.cluster()
    table.keep("clustered")
    table = new("upgraded_merge_on_read", MERGE_ON_READ)
    table.write(0, 40)
    table.keep("written")
    table.write(0, 10, 1)
    table.compact()
    table.keep("compacted")
    table.write(5, 15, 2)
    table.keep("logged")


def upgrade(new: NewTable, earlier: Path) -> None:
    """The tables of `to_be_upgraded`, as another release wrote them below `earlier`; the first
    write upgrades them."""
    table = new("upgraded_copy_on_write", partition_columns="region", **SMALL_FILES_STAY)
    table.go_on_from(earlier / "upgraded_copy_on_write" / "clustered")
    table.write(0, 10, 1, where="region = 'north'")
    table.keep("upgraded")
    table.write(40, 60, 1, "insert")
    table.cluster()
    table.keep("clustered_again")
    table = new("upgraded_merge_on_read", MERGE_ON_READ)
    table.go_on_from(earlier / "upgraded_merge_on_read" / "logged")
    # The upgrade compacts first: log files of before have other names.
    table.write(10, 20, 3, inline=COMPACT)
    table.keep("upgraded")
    table.compact()
    table.keep("compacted_again")


TABLES: tuple[Callable[[NewTable], None], ...] = (
    copy_on_write,
    clustered_inline,
    one_partition_column,
    two_partition_columns,
    archived,
    merge_on_read,
    compaction_pending,
    compacted_inline,
    merge_on_read_clustered,
    log_files_alone,
)
