"""How a table is made: what is written in which way, and what has index entries.

A layout is the recipe of a table: with its family and its seed it makes the same table again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from hudi_index_service import Column, open_table
from hudi_index_service.columns import root_column
from hudi_index_service.hudi.files.log_file import BlockType, HeaderKey
from tests.golden.recipes.shapes import STAYS
from tests.hudi.log_blocks import block
from tests.hudi_tables import NO_METADATA_TABLE, hudi_options, timeline_folder, write
from tests.proof.families import BROKEN, Family, Place

# Hudi would add rows to a small base file; here each write makes its own files. Their Bloom filters
# would have room for 60,000 keys, and make each footer 430 KB long, as in the golden tables. So few
# files need no server of Hudi's own.
NEW_FILES = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.index.bloom.num_entries": "400",
    "hoodie.embed.timeline.server": "false",
}
PARTITIONS = 2
NO_UTF8 = (b"a\xff", b"\xed\xa0\x80", b"ab", b"\xffa", b"a\xc3")


@dataclass(frozen=True)
class Write:
    """One write.

    Attributes:
        operation: Hudi's write operation.
        keys: The first key, and the one after the last.
        partitions: The number of partitions, from the first, that rows are written to.
        build: Whether the index is built afterwards.
        grow: Whether columns are added to the index before that.
        tasks: The number of Spark's tasks, each of which writes files of its own.
    """

    operation: str
    keys: tuple[int, int]
    partitions: int = PARTITIONS
    build: bool = False
    grow: bool = False
    tasks: int = 1


@dataclass(frozen=True)
class Layout:
    """A table's recipe.

    Attributes:
        name: The shape, one of `SHAPES`.
        version: The table version.
        timestamps: How Parquet stores them.
        analyzer: Whether strings are analyzed too, and keys indexed.
        words_only: … and messages are not indexed as whole values.
        unindexed: One in this many columns is not indexed; 0: all are indexed.
        segments: What becomes of segments after builds, one of `SEGMENTS`.
        first_schema: How the first of several writes differs from the last, one of `SCHEMAS`.
        stay: Whether updates name the other partition, while records stay in theirs.
        broken: Whether some texts are not UTF-8.
        two_levels: Whether updates write arrays in the older of Parquet's two layouts, which has no
            NULL in an array.
        log_blocks: How log files hold rows: ``avro`` or ``parquet``.
        rolled_back: Whether a block of a log file rolls back the first update, as releases before
            1.0 wrote it.
        seed: The seed of the rows.
    """

    name: str
    table_type: str
    partitioned: bool
    writes: tuple[Write, ...]
    hive_style: bool
    codec: str
    page_bytes: int
    row_group_bytes: int
    dictionary: bool
    meta_fields: bool
    version: str
    timestamps: str
    analyzer: bool
    words_only: bool
    unindexed: int
    segments: str
    first_schema: str
    stay: bool
    broken: bool
    two_levels: bool
    log_blocks: str
    rolled_back: bool
    seed: int

    @property
    def has_logs(self) -> bool:
        """Whether file groups have log files."""
        return self.table_type == MOR and any(
            each.operation != "bulk_insert" for each in self.writes
        )

    @property
    def stays(self) -> bool:
        """Whether records stay in their partition; without Hudi's own columns none are found."""
        return self.stay and self.partitioned and self.meta_fields

    @property
    def breaks_texts(self) -> bool:
        """Whether some texts are not UTF-8. hudi-rs cannot merge log files with such a base file,
        and its error is reported as a storage failure."""
        return self.broken and not self.has_logs

    @property
    def rolls_back(self) -> bool:
        """Whether an update is rolled back."""
        return self.rolled_back and self.has_logs and self.version == "6"

    @property
    def searchable(self) -> bool:
        """Whether an index holds the words of the messages."""
        return self.analyzer and not self.unindexed


SEGMENTS = ("as built", "missing", "damaged", "of each build")
"""Segments may be lost or damaged; those that later ones replace may be there still."""

SCHEMAS = ("same", "fewer columns", "narrower")
NARROWER, FEWER = {"big": pa.int32()}, ("n", "day", "codes")

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
FIRST_HALF, SECOND_HALF = Write("bulk_insert", (0, 150)), Write("bulk_insert", (150, 320))

# By shape: the table's type, whether it is partitioned, what is written. Each has only two file
# groups or a few more, since every file costs time in each of thousands of queries.
SHAPES: dict[str, list[tuple[str, bool, tuple[Write, ...]]]] = {
    "covered": [
        (COW, True, (Write("bulk_insert", (0, 320), build=True),)),
        (COW, False, (FIRST_HALF, replace(SECOND_HALF, build=True))),
        (MOR, False, (FIRST_HALF, replace(SECOND_HALF, build=True))),
    ],
    "partly built": [
        (COW, False, (replace(SECOND_HALF, build=True), FIRST_HALF)),
        (COW, True, (Write("bulk_insert", (0, 320), build=True), Write("upsert", (0, 30), 1))),
        (MOR, False, (replace(SECOND_HALF, build=True), FIRST_HALF)),
    ],
    "with logs": [
        (
            MOR,
            True,
            (
                Write("bulk_insert", (0, 330), build=True),
                Write("upsert", (20, 60), partitions=1),
                Write("delete", (10, 25), partitions=1),
            ),
        ),
    ],
    "some columns": [
        (
            COW,
            False,
            (
                Write("bulk_insert", (0, 240), build=True),
                Write("upsert", (0, 40)),
                Write("bulk_insert", (240, 330), build=True, grow=True),
            ),
        ),
    ],
}


MANY_FILES: dict[str, list[tuple[str, bool, tuple[Write, ...]]]] = {
    "many files": [
        (COW, True, (Write("bulk_insert", (0, 1_500), build=True, tasks=600),)),
    ],
}
"""One more shape, in which queries take seconds: some 870 base files of a row or two."""


def layouts(shape: str) -> st.SearchStrategy[Layout]:
    """Recipes of one of `SHAPES`, or of `MANY_FILES`."""
    return st.builds(
        lambda made, **others: Layout(shape, *made, **others),
        st.sampled_from((SHAPES | MANY_FILES)[shape]),
        hive_style=st.booleans(),
        codec=st.sampled_from(("gzip", "snappy", "zstd", "uncompressed")),
        page_bytes=st.sampled_from((200, 1_000, 1 << 20)),
        row_group_bytes=st.sampled_from((4_000, 120 << 20)),
        dictionary=st.booleans(),
        meta_fields=st.booleans(),
        version=st.sampled_from(("6", "8", "9")),
        timestamps=st.sampled_from(("TIMESTAMP_MICROS", "INT96")),
        analyzer=st.booleans(),
        words_only=st.booleans(),
        unindexed=st.just(3 if shape == "some columns" else 0),
        segments=st.sampled_from(SEGMENTS),
        first_schema=st.sampled_from(SCHEMAS),
        stay=st.booleans(),
        broken=st.booleans(),
        two_levels=st.booleans(),
        log_blocks=st.sampled_from(("avro", "parquet")),
        rolled_back=st.booleans(),
        seed=st.integers(0, 2**32),
    )


def make_table(spark: SparkSession, family: Family, layout: Layout, folder: Path) -> Path:
    """Writes the table of the recipe, and builds its index as the recipe says."""
    path = folder / "table"
    options = hudi_options(
        "proof",
        layout.table_type,
        partition_column="part" if layout.partitioned else None,
        **NEW_FILES,
        **{
            "hoodie.parquet.compression.codec": layout.codec,
            "hoodie.parquet.page.size": str(layout.page_bytes),
            "hoodie.parquet.block.size": str(layout.row_group_bytes),
            "hoodie.parquet.dictionary.enabled": str(layout.dictionary).lower(),
            "hoodie.parquet.outputtimestamptype": layout.timestamps,
            "hoodie.populate.meta.fields": str(layout.meta_fields).lower(),
            "hoodie.write.table.version": layout.version,
            "hoodie.datasource.write.hive_style_partitioning": str(layout.hive_style).lower(),
            "hoodie.bulkinsert.shuffle.parallelism": str(layout.writes[0].tasks),
            "hoodie.bulkinsert.sort.mode": "NONE",
            "hoodie.logfile.data.block.format": layout.log_blocks,
            **(STAYS if layout.stays else NO_METADATA_TABLE),
        },
    )
    earlier: dict[Path, bytes] = {}
    for version, each in enumerate(layout.writes):
        staged = folder / f"{version}.parquet"
        pq.write_table(_rows(family, layout, each, version), staged)
        rows = spark.read.parquet(str(staged))
        rows = rows.coalesce(1) if each.tasks == 1 else rows.repartition(each.tasks, "id")
        with _arrays(spark, layout):
            write(rows, path, options, each.operation)
        if each.build:
            _define(path, family, layout, grow=each.grow)
            with open_table(path) as table:
                table.build(strategy="all").raise_for_failures()
            _treat_segments(path, layout.segments, earlier)
    if layout.rolls_back:
        _roll_back(path)
    return path


@contextmanager
def _arrays(spark: SparkSession, layout: Layout) -> Iterator[None]:
    """Hudi's Avro writer, which writes updates, uses the layout of arrays that the recipe says."""
    name, hadoop = "parquet.avro.write-old-list-structure", spark._jsc.hadoopConfiguration()
    hadoop.set(name, str(layout.two_levels).lower())
    try:
        yield
    finally:
        hadoop.set(name, "false")


def _roll_back(path: Path) -> None:
    """Appends a block that rolls back the table's first update to the log file that holds it."""
    logs = (each for each in path.rglob(".*.log.*") if each.suffix != ".crc")
    log = min(logs, key=lambda each: each.stat().st_mtime_ns)
    instant = sorted(each.name for each in timeline_folder(path).glob("*.deltacommit"))[1]
    header = {
        HeaderKey.INSTANT_TIME: b"20990101000000000",
        HeaderKey.TARGET_INSTANT_TIME: instant.split(".")[0].encode(),
        HeaderKey.COMMAND_BLOCK_TYPE: b"0",
    }
    with log.open("ab") as file:
        file.write(block(BlockType.COMMAND, header=header))
    log.with_name(f".{log.name}.crc").unlink(missing_ok=True)  # Hadoop's checksum


def _treat_segments(path: Path, how: str, earlier: dict[Path, bytes]) -> None:
    """Does to segments what the recipe says.

    Args:
        earlier: Those after earlier builds.
    """
    for segment in (path / ".hoodie/.index/_service/segments").rglob("*.segment"):
        content = segment.read_bytes()
        if how == "missing":
            segment.unlink()
        elif how == "damaged":
            middle = len(content) // 2
            segment.write_bytes(content[:middle] + b"damage" + content[middle + 6 :])
        else:
            earlier[segment] = content
    if how == "of each build":
        for segment, content in earlier.items():
            segment.write_bytes(content)


def _rows(family: Family, layout: Layout, each: Write, version: int) -> pa.Table:
    """The rows of one write. `row` is unique among all rows ever written."""
    keys = [k for k in range(*each.keys) if _partition(k, layout) < each.partitions]
    values = family.rows(layout.seed + version, len(keys))
    other = int(layout.stays and each.operation == "upsert")
    paths = [(_partition(k, layout) + other) % PARTITIONS for k in keys]
    columns: dict[str, pa.Array] = {
        "id": pa.array([f"key {k}" for k in keys]),
        "row": pa.array([k * 10 + version for k in keys], pa.int32()),
        "part": pa.array([family.part.pool[each] for each in paths], family.part.kind.arrow),
        "ts": pa.array([version] * len(keys), pa.int64()),
    }
    for field in family.schema:
        columns[field.name] = pa.array(
            [_stored(row[field.name], layout) for row in values], field.type
        )
    if layout.breaks_texts:
        texts = [
            NO_UTF8[k % 5] if k % 3 == 0 else row[BROKEN]
            for k, row in zip(keys, values, strict=True)
        ]
        encoded = [each.encode() if isinstance(each, str) else each for each in texts]
        columns[BROKEN] = pa.array(encoded, pa.binary()).cast(pa.string(), safe=False)
    if version == 0 and len(layout.writes) > 1 and layout.first_schema == "fewer columns":
        columns = {name: it for name, it in columns.items() if name not in FEWER}
    if version == 0 and len(layout.writes) > 1 and layout.first_schema == "narrower":
        for name, narrow in NARROWER.items():
            fits = pc.and_(pc.less(columns[name], 2**31), pc.greater(columns[name], -(2**31)))
            columns[name] = pc.if_else(fits, columns[name], None).cast(narrow)
    return pa.table(columns)


def _stored(value: Any, layout: Layout) -> Any:
    """Without NULL in arrays, if these have two levels."""
    if layout.two_levels and isinstance(value, list):
        return [each for each in value if each is not None]
    return value


def _partition(key: int, layout: Layout) -> int:
    return key % PARTITIONS if layout.partitioned else 0


def _define(path: Path, family: Family, layout: Layout, *, grow: bool) -> None:
    places = family.predicate_places if layout.analyzer else tuple(family.places.values())
    left_out = places[:: layout.unindexed] if layout.unindexed else ()
    with open_table(path) as table:
        if grow:
            table.alter_index("proof", add=[place.name for place in left_out[::2]])
            return
        present = {root_column(name) for name in table.schema().names}
        columns = [
            Column(name=place.name, options=_options(place, layout))
            for place in places
            if place not in left_out and root_column(place.name) in present
        ]
        table.create_index("proof", columns)


def _options(place: Place, layout: Layout) -> dict[str, str]:
    """Some tables have their strings analyzed, and some of these `msg` without whole values."""
    if not (layout.analyzer and place.type_name == "string"):
        return {}
    only_words = layout.words_only and place.name == "msg"
    return {"analyzer": "standard"} | ({"keyword": "false"} if only_words else {})
